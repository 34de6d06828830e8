package io.ratelimited.redis.connection;

import io.lettuce.core.RedisChannelHandler;
import io.lettuce.core.RedisConnectionStateListener;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.IntegerOutput;
import io.lettuce.core.output.NestedMultiOutput;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.netty.util.internal.ThreadExecutorMap;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * A connection of a Lettuce client that does not reconnect, so that Lettuce never sends a command again. Bounded: at most
 * {@value #MOST_UNDER_WAY} scripts are under way, including those that nobody waits for any more.
 */
final class LettuceLink implements RedisLink {

    private static final int MOST_UNDER_WAY = 8192;

    private final StatefulRedisConnection<String, String> connection;
    private final AtomicBoolean closed = new AtomicBoolean();
    private final CompletableFuture<Void> broken = new CompletableFuture<>();
    private final AtomicInteger underWay = new AtomicInteger();
    private final Queue<AsyncCommand<String, String, ?>> unsent = new ConcurrentLinkedQueue<>();
    /** Commands written since the sender last looked; none while nobody sends. */
    private final AtomicInteger written = new AtomicInteger();
    /**
     * The event loop of the connection, once it is known. Never the thread that happens to write: what an event loop sends
     * overtakes what others have handed to it.
     */
    private volatile Executor sender;

    /** @param sender sends until the event loop of the connection is known */
    LettuceLink(StatefulRedisConnection<String, String> connection, Executor sender) {
        this.connection = connection;
        this.sender = sender;
        connection.addListener(new RedisConnectionStateListener() {
            @Override
            public void onRedisDisconnected(RedisChannelHandler<?, ?> disconnected) {
                broken.complete(null);
            }
        });
        if (!connection.isOpen()) {
            broken.complete(null);
        }
    }

    @Override
    public CompletionStage<List<Object>> eval(Script script, String[] keys, ScriptArguments args, boolean asking) {
        if (underWay.get() >= MOST_UNDER_WAY) {
            return CompletableFuture.failedFuture(
                    new NotSentException(MOST_UNDER_WAY + " scripts are under way already"));
        }
        Evaluation evaluation = new Evaluation(CommandType.EVALSHA, script, keys, args, asking);
        write(evaluation);
        return evaluation;
    }

    @Override
    public CompletionStage<List<Object>> time() {
        AsyncCommand<String, String, List<Object>> command = new AsyncCommand<>(new Command<>(
                CommandType.TIME, new NestedMultiOutput<>(StringCodec.UTF8), new CommandArgs<>(StringCodec.UTF8)));
        write(command);
        return command;
    }

    @Override
    public CompletionStage<Long> delete(String key) {
        AsyncCommand<String, String, Long> command = new AsyncCommand<>(new Command<>(
                CommandType.DEL,
                new IntegerOutput<>(StringCodec.UTF8),
                new CommandArgs<>(StringCodec.UTF8).addKey(key)));
        write(command);
        return command;
    }

    @Override
    public void onBreak(Runnable task) {
        broken.thenRun(task);
    }

    /**
     * Sends a command after those that were written before. One thread sends, and all that it finds waiting at once: a
     * command waits for what that thread is at, never for company.
     */
    private void write(AsyncCommand<String, String, ?> command) {
        unsent.add(command);
        if (written.getAndIncrement() == 0) {
            callSender();
        }
    }

    private void callSender() {
        try {
            sender.execute(this::send);
        } catch (RejectedExecutionException ex) {
            // The client is being shut down.
            written.set(0);
            for (AsyncCommand<String, String, ?> next = unsent.poll(); next != null; next = unsent.poll()) {
                drop(next);
                next.completeExceptionally(new NotSentException("the client has been shut down"));
            }
        }
    }

    private void send() {
        int seen = written.get();
        sendTogether();
        if (written.addAndGet(-seen) != 0) {
            // More has come meanwhile. An event loop reads what was answered before it goes on.
            callSender();
        }
    }

    private void sendTogether() {
        List<AsyncCommand<String, String, ?>> all = new ArrayList<>();
        try {
            collect(all);
            if (all.size() == 1) {
                connection.dispatch(all.get(0));
            } else if (!all.isEmpty()) {
                connection.dispatch(all);
            }
        } catch (RuntimeException | Error ex) {
            // Whatever it is, callers must not wait for ever, and the next command must be sent.
            all.forEach(command -> command.completeExceptionally(ex));
        }
    }

    /** Takes what is unsent and still wanted. */
    private void collect(List<AsyncCommand<String, String, ?>> all) {
        for (AsyncCommand<String, String, ?> next = unsent.poll(); next != null; next = unsent.poll()) {
            if (next.isDone()) {
                drop(next);
                continue;
            }
            if (next instanceof Evaluation evaluation && evaluation.asking) {
                all.add(asking());
            }
            all.add(next);
        }
    }

    private static AsyncCommand<String, String, String> asking() {
        return new AsyncCommand<>(new Command<>(
                CommandType.ASKING, new StatusOutput<>(StringCodec.UTF8), new CommandArgs<>(StringCodec.UTF8)));
    }

    private static void drop(AsyncCommand<String, String, ?> given) {
        if (given instanceof Evaluation evaluation) {
            evaluation.answered();
        }
    }

    @Override
    public void close() {
        // Also after a break: the client keeps the connection until it is closed. Lettuce fails what is under way.
        if (!closed.getAndSet(true)) {
            connection.closeAsync();
            broken.complete(null);
        }
    }

    /** A script call; giving it up also takes back what has not been sent, so that it cannot run later. */
    private final class Evaluation extends AsyncCommand<String, String, List<Object>> {

        private final CommandType type;
        private final Script script;
        private final String[] keys;
        private final ScriptArguments arguments;
        private final boolean asking;
        /** Counts as under way until the server has answered, even if nobody waits for the answer. */
        private final AtomicBoolean answered = new AtomicBoolean();

        private volatile @Nullable Evaluation withText;

        private Evaluation(CommandType type, Script script, String[] keys, ScriptArguments arguments, boolean asking) {
            super(new Command<>(
                    type,
                    new NestedMultiOutput<>(StringCodec.UTF8),
                    EncodedArguments.ofScript(
                            type == CommandType.EVAL ? script.text() : script.digest(), keys, arguments)));
            this.type = type;
            this.script = script;
            this.keys = keys;
            this.arguments = arguments;
            this.asking = asking;
            underWay.incrementAndGet();
        }

        private void answered() {
            if (!answered.getAndSet(true)) {
                underWay.decrementAndGet();
            }
        }

        /** On the event loop. What has been completed once could not fail any more. */
        @Override
        public void complete() {
            answered();
            Executor eventLoop = ThreadExecutorMap.currentExecutor();
            if (eventLoop != null && eventLoop != sender) {
                sender = eventLoop;
            }
            String error = getOutput().getError();
            if (error == null || type == CommandType.EVAL || !error.startsWith("NOSCRIPT") || isDone()) {
                super.complete();
                return;
            }
            Evaluation text = new Evaluation(CommandType.EVAL, script, keys, arguments, asking);
            text.whenComplete((reply, failure) -> {
                if (failure == null) {
                    complete(reply);
                } else {
                    completeExceptionally(failure);
                }
            });
            withText = text;
            if (isDone()) {
                text.cancel(false);
            }
            write(text);
        }

        @Override
        public boolean cancel(boolean mayInterruptIfRunning) {
            boolean cancelled = super.cancel(mayInterruptIfRunning);
            Evaluation text = withText;
            if (text != null) {
                text.cancel(mayInterruptIfRunning);
            }
            return cancelled;
        }
    }
}
