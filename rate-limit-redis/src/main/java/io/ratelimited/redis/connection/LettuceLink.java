package io.ratelimited.redis.connection;

import io.lettuce.core.RedisChannelHandler;
import io.lettuce.core.RedisConnectionStateListener;
import io.lettuce.core.RedisNoScriptException;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
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
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A connection of a Lettuce client that does not reconnect, so that Lettuce never sends a command again. Bounded: at most
 * {@value #MOST_UNDER_WAY} script calls are under way, including those that nobody waits for any more.
 */
final class LettuceLink implements RedisLink {

    private static final int MOST_UNDER_WAY = 8192;

    private final StatefulRedisConnection<String, String> connection;
    private final AtomicBoolean closed = new AtomicBoolean();
    private final CompletableFuture<Void> broken = new CompletableFuture<>();
    private final Queue<Call> unsent = new ConcurrentLinkedQueue<>();
    /** Calls written since the sender last looked; none while nobody sends. */
    private final AtomicInteger written = new AtomicInteger();
    /** Calls that have been neither answered nor dropped. */
    private final AtomicInteger underWay = new AtomicInteger();
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

    /** Script calls that have been neither answered nor dropped. */
    int underWay() {
        return underWay.get();
    }

    @Override
    public CompletionStage<List<Object>> eval(Script script, String[] keys, ScriptArguments args, boolean asking) {
        if (underWay.get() >= MOST_UNDER_WAY) {
            return CompletableFuture.failedFuture(Replies.notSent(MOST_UNDER_WAY + " calls are under way already"));
        }
        return write(new Call(
                CommandType.EVALSHA,
                args.behind(script.digest(), keys),
                asking,
                () -> args.behind(script.text(), keys)));
    }

    @Override
    public CompletionStage<List<Object>> time() {
        return write(new Call(CommandType.TIME, new CommandArgs<>(StringCodec.UTF8), false, null));
    }

    @Override
    public CompletionStage<Long> delete(String key) {
        Call call = new Call(CommandType.DEL, new CommandArgs<>(StringCodec.UTF8).addKey(key), false, null);
        CompletableFuture<Long> removed = write(call).thenApply(reply -> (Long) reply.get(0));
        // Given up like any other call.
        removed.whenComplete((number, failure) -> call.cancel(false));
        return removed;
    }

    @Override
    public void onBreak(Runnable task) {
        broken.thenRun(task);
    }

    /**
     * Sends a call after those that were written before. One thread sends, and all that it finds waiting at once: a call
     * waits for what that thread is at, never for company.
     */
    private Call write(Call call) {
        underWay.incrementAndGet();
        enqueue(call);
        return call;
    }

    private void enqueue(Call call) {
        unsent.add(call);
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
            for (Call next = unsent.poll(); next != null; next = unsent.poll()) {
                end(next, null, Replies.notSent("the client has been shut down"));
            }
        }
    }

    private void send() {
        int seen = written.get();
        List<AsyncCommand<String, String, ?>> commands = new ArrayList<>();
        try {
            collect(commands);
            if (commands.size() == 1) {
                connection.dispatch(commands.get(0));
            } else if (!commands.isEmpty()) {
                connection.dispatch(commands);
            }
        } catch (RuntimeException | Error ex) {
            // Whatever it is, callers must not wait for ever, and the next command must be sent.
            commands.forEach(command -> command.completeExceptionally(ex));
        }
        if (written.addAndGet(-seen) != 0) {
            // More has come meanwhile. An event loop reads what was answered before it goes on.
            callSender();
        }
    }

    /** Takes what is unsent and still wanted. */
    private void collect(List<AsyncCommand<String, String, ?>> commands) {
        for (Call next = unsent.poll(); next != null; next = unsent.poll()) {
            if (next.isDone()) {
                underWay.decrementAndGet();
                continue;
            }
            if (next.asking) {
                commands.add(new AsyncCommand<>(new Command<>(
                        CommandType.ASKING,
                        new StatusOutput<>(StringCodec.UTF8),
                        new CommandArgs<>(StringCodec.UTF8))));
            }
            commands.add(command(next));
        }
    }

    /** Not the future of the caller: a call counts as under way until it is answered, even if nobody waits any more. */
    private AsyncCommand<String, String, List<Object>> command(Call call) {
        AsyncCommand<String, String, List<Object>> command =
                new AsyncCommand<>(new Command<>(call.type, new NestedMultiOutput<>(StringCodec.UTF8), call.args));
        command.whenComplete((reply, failure) -> {
            Executor eventLoop = ThreadExecutorMap.currentExecutor();
            if (eventLoop != null && failure == null && eventLoop != sender) {
                sender = eventLoop;
            }
            Supplier<CommandArgs<String, String>> withText = call.withText;
            if (failure instanceof RedisNoScriptException && withText != null) {
                call.type = CommandType.EVAL;
                call.args = withText.get();
                call.withText = null;
                enqueue(call);
            } else {
                end(call, reply, failure);
            }
        });
        return command;
    }

    private void end(Call call, @Nullable List<Object> reply, @Nullable Throwable failure) {
        underWay.decrementAndGet();
        if (reply == null || failure != null) {
            call.completeExceptionally(Replies.cause(failure));
        } else {
            call.complete(reply);
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

    /** One call and its reply. Given up before it is sent, it never runs. */
    private static final class Call extends CompletableFuture<List<Object>> {

        private final boolean asking;
        private CommandType type;
        private CommandArgs<String, String> args;
        /** For a server that does not know the digest of the script. */
        private @Nullable Supplier<CommandArgs<String, String>> withText;

        private Call(
                CommandType type,
                CommandArgs<String, String> args,
                boolean asking,
                @Nullable Supplier<CommandArgs<String, String>> withText) {
            this.type = type;
            this.args = args;
            this.asking = asking;
            this.withText = withText;
        }
    }
}
