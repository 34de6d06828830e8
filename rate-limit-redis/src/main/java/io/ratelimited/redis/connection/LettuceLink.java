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
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
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
 * {@value #MOST_UNDER_WAY} script calls are under way, including those that nobody waits for any more.
 */
final class LettuceLink implements RedisLink {

    /** Keys of one command at the most, so that other clients of the server do not wait long. */
    private static final int MOST_KEYS = 64;

    private static final int MOST_UNDER_WAY = 8192;

    private final StatefulRedisConnection<String, String> connection;
    private final boolean cluster;
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
    LettuceLink(StatefulRedisConnection<String, String> connection, boolean cluster, Executor sender) {
        this.connection = connection;
        this.cluster = cluster;
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
        boolean shares = !cluster && keys.length == 1 && args.question() != null;
        return write(new Call(CommandType.EVALSHA, script, keys, args.end(), asking, shares));
    }

    @Override
    public CompletionStage<List<Object>> time() {
        return write(new Call(CommandType.TIME, null, new String[0], new ScriptArguments(), false, false));
    }

    @Override
    public CompletionStage<Long> delete(String key) {
        return write(new Call(CommandType.DEL, null, new String[] {key}, new ScriptArguments(), false, false))
                .thenApply(reply -> (Long) reply.get(0));
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
        List<AsyncCommand<String, String, ?>> commands = collect();
        try {
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

    /** Takes what is unsent and still wanted. A question of any key does not pass a command that may concern the same key. */
    private List<AsyncCommand<String, String, ?>> collect() {
        List<AsyncCommand<String, String, ?>> commands = new ArrayList<>();
        Map<Object, List<Call>> questions = new LinkedHashMap<>();
        for (Call next = unsent.poll(); next != null; next = unsent.poll()) {
            Object question = next.args.question();
            if (next.isDone()) {
                underWay.decrementAndGet();
            } else if (next.shares && question != null) {
                List<Call> same = questions.computeIfAbsent(question, unasked -> new ArrayList<>());
                same.add(next);
                if (same.size() == MOST_KEYS) {
                    add(same, commands);
                    questions.remove(question);
                }
            } else {
                questions.values().forEach(same -> add(same, commands));
                questions.clear();
                add(List.of(next), commands);
            }
        }
        questions.values().forEach(same -> add(same, commands));
        return commands;
    }

    /** Adds one command for a call, or for several that ask the same about different keys. */
    private void add(List<Call> calls, List<AsyncCommand<String, String, ?>> commands) {
        Call first = calls.get(0);
        try {
            String[] keys = calls.size() == 1
                    ? first.keys
                    : calls.stream().map(call -> call.keys[0]).toArray(String[]::new);
            AsyncCommand<String, String, List<Object>> command = new AsyncCommand<>(new Command<>(
                    first.type, new NestedMultiOutput<>(StringCodec.UTF8), first.args(keys)));
            command.whenComplete((reply, failure) -> answered(calls, reply, failure));
            if (first.asking) {
                commands.add(new AsyncCommand<>(new Command<>(
                        CommandType.ASKING, new StatusOutput<>(StringCodec.UTF8), new CommandArgs<>(StringCodec.UTF8))));
            }
            commands.add(command);
        } catch (RuntimeException | Error ex) {
            calls.forEach(call -> end(call, null, ex));
        }
    }

    /** On the event loop, unless the command could not be sent. */
    private void answered(List<Call> calls, @Nullable List<Object> reply, @Nullable Throwable failure) {
        Executor eventLoop = ThreadExecutorMap.currentExecutor();
        if (eventLoop != null && failure == null && eventLoop != sender) {
            sender = eventLoop;
        }
        for (int i = 0; i < calls.size(); i++) {
            Call call = calls.get(i);
            boolean unknown = failure instanceof RedisNoScriptException && call.type == CommandType.EVALSHA;
            try {
                if (unknown) {
                    call.type = CommandType.EVAL;
                    again(call);
                } else if (reply == null || calls.size() == 1) {
                    end(call, reply, failure);
                } else if ((Long) reply.get(4 * i + 4) < 0) {
                    // The script has left the key alone, as it does only among several.
                    again(call);
                } else {
                    List<Object> own = new ArrayList<>(reply.subList(4 * i + 1, 4 * i + 5));
                    own.add(0, reply.get(0));
                    end(call, own, null);
                }
            } catch (RuntimeException ex) {
                // Not a reply of the script: the caller must not wait for ever.
                end(call, null, ex);
            }
        }
    }

    private void again(Call call) {
        call.shares = false;
        enqueue(call);
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

        private final @Nullable Script script;
        private final String[] keys;
        private final ScriptArguments args;
        private final boolean asking;
        /** {@code EVAL} after the server has refused {@code EVALSHA}. */
        private CommandType type;
        /** May be sent together with calls that ask the same about other keys. */
        private boolean shares;

        private Call(
                CommandType type,
                @Nullable Script script,
                String[] keys,
                ScriptArguments args,
                boolean asking,
                boolean shares) {
            this.type = type;
            this.script = script;
            this.keys = keys;
            this.args = args;
            this.asking = asking;
            this.shares = shares;
        }

        private CommandArgs<String, String> args(String[] on) {
            if (script == null) {
                return new CommandArgs<>(StringCodec.UTF8).addKeys(on);
            }
            return args.behind(type == CommandType.EVAL ? script.text() : script.digest(), on);
        }
    }
}
