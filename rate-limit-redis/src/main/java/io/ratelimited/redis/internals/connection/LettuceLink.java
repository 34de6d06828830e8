package io.ratelimited.redis.internals.connection;

import io.lettuce.core.RedisChannelHandler;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisConnectionStateListener;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisNoScriptException;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.NestedMultiOutput;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.EventExecutor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A connection of a Lettuce client that does not reconnect, so that Lettuce never sends a command again. Bounded: at most
 * {@value #MAX_PENDING} script calls are pending, including those whose callers have given up.
 */
final class LettuceLink implements RedisLink {

    private static final int MAX_PENDING = 8192;

    /** Keys of one command at the most, so that other clients of the server do not wait long. */
    private static final int MAX_KEYS = 64;

    /** Calls that wait for a server with nothing to do, from which on it begins with half of them. */
    private static final int WORTH_HALVING = 8;

    /** Time that a sleeping server takes to begin. It then reads all commands that are there, and answers them together. */
    private static final long BEGINNING_NANOS = 20_000;

    private final StatefulRedisConnection<String, String> connection;
    private final AtomicBoolean closed = new AtomicBoolean();
    private final CompletableFuture<Void> broken = new CompletableFuture<>();
    private final Queue<Call> unsent = new ConcurrentLinkedQueue<>();
    /**
     * Digests of the scripts whose text has been sent. The first call sends it: one that the server did not know by its digest
     * would be sent again, and run after later calls for its key.
     */
    private final Set<String> known = ConcurrentHashMap.newKeySet();
    /** Calls written since the sender last looked; none while nobody sends. */
    private final AtomicInteger written = new AtomicInteger();
    /** Calls that have been neither answered nor dropped. */
    private final AtomicInteger pending = new AtomicInteger();
    /**
     * The event loop of the connection, once it is known. Never the thread that happens to write: commands that an event
     * loop sends overtake those that others have handed to it.
     */
    private volatile Executor sender;

    /** To find that one; null once it has been looked for. Only the event loop uses it. */
    private @Nullable Iterable<EventExecutor> eventLoops;

    private final ReplyCheck check = new ReplyCheck();
    private final AtomicBoolean separatesSlots;

    /**
     * @param separatesSlots whether the keys of one command must share a slot, so that each key has a command of its own; set
     *     when the server says so
     * @param sender sends until the event loop of the connection is known
     * @param eventLoops the event loop of the connection is one of them
     */
    LettuceLink(
            StatefulRedisConnection<String, String> connection,
            AtomicBoolean separatesSlots,
            Executor sender,
            Iterable<EventExecutor> eventLoops) {
        this.connection = connection;
        this.separatesSlots = separatesSlots;
        this.sender = sender;
        this.eventLoops = eventLoops;
        // A probe goes the way of the calls that follow it, so that it fails where they would.
        known.add(Script.PROBE.digest());
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

    /** For tests. */
    int pending() {
        return pending.get();
    }

    @Override
    public CompletionStage<List<Object>> eval(Script script, String[] keys, ScriptArguments args, boolean asking) {
        if (pending.get() >= MAX_PENDING) {
            return CompletableFuture.failedFuture(Replies.notSent(MAX_PENDING + " calls are pending already"));
        }
        return write(new Evaluation(script, keys, args, asking, separatesSlots.get() ? null : args.mergeKey()));
    }

    @Override
    public void takeBack(CompletionStage<?> call) {
        if (call instanceof Call unsentCall) {
            unsentCall.unwanted = true;
        }
    }

    @Override
    public CompletionStage<List<Object>> time() {
        return write(new Call(CommandType.TIME, new CommandArgs<>(StringCodec.UTF8)));
    }

    @Override
    public CompletionStage<Long> delete(String key) {
        Call call = new Call(CommandType.DEL, new CommandArgs<>(StringCodec.UTF8).addKey(key));
        return write(call).thenApply(reply -> (Long) reply.get(0));
    }

    @Override
    public void onBreak(Runnable task) {
        broken.thenRun(task);
    }

    /**
     * Sends a call after those that were written before. One thread sends, and all that it finds waiting at once: a call
     * waits for the present work of that thread, never for company.
     */
    private Call write(Call call) {
        pending.incrementAndGet();
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
            failUnsent("the client has been shut down");
        }
    }

    private void failUnsent(String reason) {
        for (Call next = unsent.poll(); next != null; next = unsent.poll()) {
            end(next, null, Replies.notSent(reason));
        }
    }

    /**
     * Where the server has nothing to do, half of the calls go first: it decides the others while the callers of the first half
     * go on. Callers that all ask again at once would else take turns with it for ever, one side always waiting.
     */
    private void send() {
        int seen = written.get();
        if (seen >= WORTH_HALVING && pending.get() <= seen) {
            sendFirst(seen / 2);
            Threads.spin(BEGINNING_NANOS);
        }
        sendFirst(Integer.MAX_VALUE);
        if (written.addAndGet(-seen) != 0) {
            // More has come meanwhile. An event loop reads the replies that are there before it goes on.
            callSender();
        }
    }

    /** Sends so many of the calls that wait, at the most. */
    private void sendFirst(int max) {
        List<AsyncCommand<String, String, ?>> commands = new ArrayList<>();
        try {
            collect(commands, max);
            check.sent(commands.size());
            if (commands.size() == 1) {
                connection.dispatch(commands.get(0));
            } else if (!commands.isEmpty()) {
                connection.dispatch(commands);
            }
        } catch (RuntimeException | Error ex) {
            // Callers must not wait for ever, whatever the failure, and the next command must be sent.
            commands.forEach(command -> command.completeExceptionally(ex));
            // Calls that are in no command yet would be pending for ever: the next connection counts anew.
            close();
        }
    }

    /**
     * Takes so many that are unsent and still wanted, at the most. Calls with the same merge key share a command for several
     * keys; none passes a command without one, which may concern the same key.
     */
    private void collect(List<AsyncCommand<String, String, ?>> commands, int max) {
        Call next = unsent.poll();
        if (next instanceof Evaluation evaluation && check.isDue()) {
            commands.add(check(evaluation.keys));
        }
        if (next != null && next.isWanted() && !next.asking && unsent.isEmpty()) {
            // Alone: nobody pays for company.
            commands.add(command(next));
            return;
        }
        Map<MergeKey, List<Evaluation>> groups = new LinkedHashMap<>();
        for (int taken = 1; next != null; next = taken++ < max ? unsent.poll() : null) {
            if (!next.isWanted()) {
                pending.decrementAndGet();
            } else if (next instanceof Evaluation evaluation && evaluation.mergeKey != null) {
                List<Evaluation> group = groups.computeIfAbsent(evaluation.mergeKey, unused -> new ArrayList<>());
                group.add(evaluation);
                if (group.size() == MAX_KEYS) {
                    commands.add(command(group));
                    groups.remove(evaluation.mergeKey);
                }
            } else {
                groups.values().forEach(group -> commands.add(command(group)));
                groups.clear();
                if (next.asking) {
                    commands.add(asking(next));
                }
                commands.add(command(next));
            }
        }
        groups.values().forEach(group -> commands.add(command(group)));
    }

    /** The command before a call that a server runs for a slot which moves there. Its error is why the call is redirected again. */
    private static AsyncCommand<String, String, String> asking(Call call) {
        AsyncCommand<String, String, String> command = new AsyncCommand<>(new Command<>(
                CommandType.ASKING, new StatusOutput<>(StringCodec.UTF8), new CommandArgs<>(StringCodec.UTF8)));
        command.whenComplete((reply, failure) -> {
            if (failure instanceof RedisCommandExecutionException) {
                call.refused = failure;
            }
        });
        return command;
    }

    /** @param keys of the command behind it; it goes the way of the first, if there is one */
    private AsyncCommand<String, String, List<Object>> check(String[] keys) {
        String number = check.next();
        CommandArgs<String, String> args = new ScriptArguments()
                .add(number)
                .behind(ReplyCheck.SCRIPT, Arrays.copyOf(keys, Math.min(1, keys.length)));
        return command(CommandType.EVAL, args, (reply, failure) -> {
            check.replied(number, reply, failure);
            if (check.isOutOfStep()) {
                close();
            }
        });
    }

    private AsyncCommand<String, String, List<Object>> command(List<Evaluation> group) {
        Evaluation first = group.get(0);
        if (group.size() == 1) {
            return command(first);
        }
        String[] keys = group.stream().map(one -> one.keys[0]).toArray(String[]::new);
        boolean isNew = known.add(first.script.digest());
        CommandType type = isNew ? CommandType.EVAL : CommandType.EVALSHA;
        String script = isNew ? first.script.text() : first.script.digest();
        return command(type, first.arguments.behind(script, keys), (reply, failure) -> {
            for (int i = 0; i < keys.length; i++) {
                Evaluation one = group.get(i);
                Object own = reply == null || reply.size() != keys.length ? null : reply.get(i);
                if (isApart(failure) || failure instanceof RedisNoScriptException || own instanceof Long) {
                    // Nothing has been done for this key.
                    one.mergeKey = null;
                    enqueue(one);
                } else {
                    end(one, own instanceof List<?> values ? new ArrayList<>(values) : null, failure);
                }
            }
        });
    }

    private static boolean isApart(@Nullable Throwable failure) {
        return failure != null && Replies.areKeysApart(failure);
    }

    private AsyncCommand<String, String, List<Object>> command(Call call) {
        if (call instanceof Evaluation evaluation && known.add(evaluation.script.digest())) {
            evaluation.sendText();
        }
        return command(call.type, call.args, (reply, failure) -> {
            if (failure instanceof RedisNoScriptException
                    && call instanceof Evaluation evaluation
                    && call.type == CommandType.EVALSHA) {
                evaluation.sendText();
                enqueue(call);
            } else {
                end(call, reply, failure == null || call.refused == null ? failure : call.refused);
            }
        });
    }

    /** Completed on the event loop. Not the future of a caller: a call is pending until it is answered, even if that has given up. */
    private AsyncCommand<String, String, List<Object>> command(
            CommandType type,
            CommandArgs<String, String> args,
            BiConsumer<@Nullable List<Object>, @Nullable Throwable> onReply) {
        EncodedCommand encoded = new EncodedCommand(type, args);
        AsyncCommand<String, String, List<Object>> command = new AsyncCommand<>(encoded);
        command.whenComplete((reply, failure) -> {
            Iterable<EventExecutor> all = failure == null ? eventLoops : null;
            if (all != null) {
                eventLoops = null;
                all.forEach(each -> sender = each.inEventLoop() ? each : sender);
            }
            if (isApart(failure)) {
                separatesSlots.set(true);
            }
            if (check.isOutOfStep()) {
                onReply.accept(null, ReplyCheck.failure());
            } else {
                onReply.accept(reply, encoded.failure(failure));
            }
        });
        return command;
    }

    private void end(Call call, @Nullable List<Object> reply, @Nullable Throwable failure) {
        pending.decrementAndGet();
        if (reply == null || failure != null) {
            call.completeExceptionally(Replies.cause(failure));
        } else {
            call.complete(reply);
        }
    }

    @Override
    public void close() {
        // Also after a break: the client keeps the connection until it is closed. Lettuce fails pending commands.
        if (!closed.getAndSet(true)) {
            connection.closeAsync();
            broken.complete(null);
        }
    }

    /**
     * Knows whether Lettuce has made bytes of it. Lettuce does so on the event loop, just before it writes, and never for a
     * command that has failed: one that fails earlier was not sent, as from the end of a socket until Lettuce reports it.
     */
    private static final class EncodedCommand extends Command<String, String, List<Object>> {

        private volatile boolean encoded;

        private EncodedCommand(CommandType type, CommandArgs<String, String> args) {
            super(type, new NestedMultiOutput<>(StringCodec.UTF8), args);
        }

        @Override
        public void encode(ByteBuf buffer) {
            encoded = true;
            super.encode(buffer);
        }

        private @Nullable Throwable failure(@Nullable Throwable failure) {
            return encoded || !(failure instanceof RedisException) ? failure : Replies.notSent(Replies.text(failure));
        }
    }

    /** Equal for calls that may share a command. */
    private record MergeKey(Script script, String arguments) {}

    /** One call and its reply. Given up before it is sent, it never runs. */
    private static class Call extends CompletableFuture<List<Object>> {

        CommandType type;
        CommandArgs<String, String> args;
        /** Sent behind a command that says so. */
        final boolean asking;
        /** Its caller has given up. */
        volatile boolean unwanted;
        /** The error of the command before it. Only the event loop uses it. */
        @Nullable
        Throwable refused;

        private Call(CommandType type, CommandArgs<String, String> args) {
            this(type, args, false);
        }

        private Call(CommandType type, CommandArgs<String, String> args, boolean asking) {
            this.type = type;
            this.args = args;
            this.asking = asking;
        }

        private boolean isWanted() {
            return !unwanted && !isDone();
        }
    }

    private static final class Evaluation extends Call {

        private final Script script;
        private final String[] keys;
        private final ScriptArguments arguments;
        /** Null when it needs a command of its own. */
        private @Nullable MergeKey mergeKey;

        private Evaluation(
                Script script, String[] keys, ScriptArguments arguments, boolean asking, @Nullable String mergeKey) {
            super(CommandType.EVALSHA, arguments.behind(script.digest(), keys), asking);
            this.script = script;
            this.keys = keys;
            this.arguments = arguments;
            this.mergeKey = mergeKey == null ? null : new MergeKey(script, mergeKey);
        }

        /** To a server that does not know the digest of the script. */
        private void sendText() {
            type = CommandType.EVAL;
            args = arguments.behind(script.text(), keys);
            mergeKey = null;
        }
    }
}
