package io.ratelimited.redis.internals.limiter;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.internals.connection.GuardedConnection;
import io.ratelimited.redis.internals.connection.KeyNames;
import io.ratelimited.redis.internals.connection.RedisConnector;
import io.ratelimited.redis.internals.connection.RedisLink;
import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import io.ratelimited.redis.internals.connection.SentArguments;
import io.ratelimited.redis.internals.connection.Threads;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Walks through the states of a call in flight, and lets every event happen in each that a few events lead to: commands run and
 * are answered, however late, or run and their replies are lost; and the caller waits, ends or gives up at any time. F1 to F6 of
 * {@link InFlightCall} hold, and in the end neither Redis nor the node counts the call.
 */
@Tag("once")
class FlightWalkTest {

    private static final Duration TIMEOUT = Duration.ofMillis(50);
    private static final Limit LIMIT =
            Limit.of("flights", Algorithm.CONCURRENCY).maxConcurrent(1).build();
    private static final Limit LEASED =
            LIMIT.toBuilder().lease(Duration.ofHours(1)).build();

    private enum Event {
        ANSWERED,
        RUN_WITHOUT_REPLY,
        FAILED,
        TIMEOUT_PASSES,
        PAUSE_PASSES,
        LONGEST_WAIT_PASSES,
        WAITED_FOR,
        RELEASED,
        CANCELLED,
        OTHER_COMES,
        OTHER_ENDS,
        LEASE_CHANGES
    }

    @ParameterizedTest
    @ValueSource(longs = {0, 1})
    void theInvariantsHoldAfterEachEventInEachState(long maxWaitSeconds) {
        walk(maxWaitSeconds, 3);
    }

    @ParameterizedTest
    @ValueSource(longs = {0, 1})
    @Tag("proof")
    void theInvariantsHoldOnLongerWalks(long maxWaitSeconds) {
        walk(maxWaitSeconds, 4);
    }

    /** What may have run is ended; what certainly has not need not be. */
    @ParameterizedTest
    @CsvSource({
        "ERR, true",
        "READONLY You can't write against a read only replica., false",
        "OOM command not allowed when used memory > 'maxmemory'., false"
    })
    void aCallThatRedisHasRefusedIsEndedThereIfItMayHaveRun(String error, boolean ended) {
        World world = new World(0);
        world.pending.remove().reply.completeExceptionally(new IllegalStateException(error));
        assertThat(world.pending.stream().map(Sent::operation))
                .containsExactlyElementsOf(ended ? List.of("cancel") : List.of());
    }

    /** @param longest events in a row */
    private static void walk(long maxWaitSeconds, int longest) {
        Set<String> known = new HashSet<>();
        Set<Event> happened = new TreeSet<>();
        Deque<List<Event>> walks = new ArrayDeque<>(List.of(List.of()));
        while (!walks.isEmpty()) {
            List<Event> walk = walks.remove();
            World world = World.after(maxWaitSeconds, walk);
            for (Event next : Event.values()) {
                if (world.mayHappen(next)) {
                    List<Event> longer = new ArrayList<>(walk);
                    longer.add(next);
                    world.happens(next, longer);
                    happened.add(next);
                    if (known.add(world.state()) && longer.size() < longest) {
                        walks.add(longer);
                    }
                    world.endsWell(longer);
                    world = World.after(maxWaitSeconds, walk);
                }
            }
        }
        assertThat(happened).containsExactly(Event.values());
    }

    /** One command that a server has been sent. */
    private record Sent(String operation, String id, CompletableFuture<List<Object>> reply) {}

    /** A node with one call, a server with one place, and another node's call that may hold it. */
    private static final class World implements RedisConnector, RedisLink {

        private final ManualTicker clock = new ManualTicker();
        private final Deque<Sent> pending = new ArrayDeque<>();
        /** The calls in flight that Redis counts. */
        private final Set<String> places = new HashSet<>();

        private final List<String> wrong = new ArrayList<>();
        private final GuardedConnection connection = new GuardedConnection(
                this,
                new KeyNames("rl"),
                TIMEOUT.toNanos(),
                clock,
                new Threads(clock, Runnable::run, line -> {}),
                false,
                UnaryOperator.identity());
        private final RedisConcurrencyLimiter limiter = new RedisConcurrencyLimiter(
                new LimiterContext(
                        connection,
                        new KeyNames("rl"),
                        clock,
                        Runnable::run,
                        new Nodes("node", 1),
                        IllegalStateException::new),
                LIMIT,
                "",
                failure -> null);
        private final CompletableFuture<Reservation> asked;
        private @Nullable CompletableFuture<Boolean> turn;
        private @Nullable String liveId;
        private boolean wasLive;
        private boolean ended;
        private boolean answersAll;

        private World(long maxWaitSeconds) {
            asked = limiter.reserveAsync("key", 1, maxWaitSeconds * 1_000_000_000L)
                    .toCompletableFuture();
        }

        private static World after(long maxWaitSeconds, List<Event> walk) {
            World world = new World(maxWaitSeconds);
            walk.forEach(event -> world.happens(event, walk));
            return world;
        }

        private @Nullable InFlightCall call() {
            return (InFlightCall) asked.getNow(null);
        }

        private boolean mayHappen(Event event) {
            InFlightCall call = call();
            return switch (event) {
                case ANSWERED, RUN_WITHOUT_REPLY, FAILED -> !pending.isEmpty();
                case WAITED_FOR -> call != null && turn == null;
                case RELEASED, CANCELLED -> call != null && !ended;
                case OTHER_COMES -> places.isEmpty();
                case OTHER_ENDS -> places.contains("other");
                case TIMEOUT_PASSES, PAUSE_PASSES, LONGEST_WAIT_PASSES, LEASE_CHANGES -> true;
            };
        }

        private void happens(Event event, List<Event> walk) {
            InFlightCall call = call();
            switch (event) {
                case ANSWERED -> answer(pending.remove());
                case RUN_WITHOUT_REPLY -> run(pending.remove());
                case FAILED -> pending.remove().reply.completeExceptionally(new IllegalStateException("ERR"));
                case TIMEOUT_PASSES -> advance(TIMEOUT);
                case PAUSE_PASSES -> advance(Duration.ofMillis(250));
                case LONGEST_WAIT_PASSES -> advance(Duration.ofSeconds(1));
                case WAITED_FOR -> turn = call.awaitAsync();
                case RELEASED -> {
                    ended = true;
                    call.release();
                }
                case CANCELLED -> {
                    ended = true;
                    call.cancel();
                }
                case OTHER_COMES -> places.add("other");
                case OTHER_ENDS -> places.remove("other");
                case LEASE_CHANGES -> limiter.update(limiter.limit().lease() == null ? LEASED : LIMIT);
            }
            check(() -> walk + " " + state());
        }

        private void check(Supplier<String> at) {
            assertThat(wrong).as(at).isEmpty();
            InFlightCall call = call();
            boolean live = call != null && call.mayGo();
            assertThat(limiter.keys()).as(() -> "F1, F2 " + at.get()).isEqualTo(live ? 1 : 0);
            if (live) {
                assertThat(liveId == null ? !wasLive : call.id().equals(liveId))
                        .as(() -> "F1, F5 " + at.get())
                        .isTrue();
                liveId = call.id();
                wasLive = true;
            } else {
                liveId = null;
            }
            if (turn != null && limiter.queues() == 0) {
                assertThat(turn).as(() -> "F6 " + at.get()).isDone();
            }
        }

        /** The caller ends the call, and Redis answers again and goes on until nothing is left to be done. */
        private void endsWell(List<Event> walk) {
            answersAll = true;
            while (!pending.isEmpty()) {
                answer(pending.remove());
            }
            advance(Duration.ofMillis(500));
            if (call() != null) {
                call().cancel();
            }
            advance(Duration.ofSeconds(2));
            check(() -> "in the end of " + walk);
            places.remove("other");
            assertThat(places).as(() -> "F3, F4: in the end of " + walk).isEmpty();
            assertThat(limiter.keys()).as(() -> "F1: in the end of " + walk).isZero();
            assertThat(limiter.queues()).as(() -> "F6: in the end of " + walk).isZero();
        }

        private void advance(Duration time) {
            clock.advance(time);
        }

        private void answer(Sent command) {
            command.reply.complete(List.of(run(command), 0L, 0L, ""));
        }

        /** Returns the outcome. */
        private long run(Sent command) {
            switch (command.operation) {
                case "take" -> {
                    return places.contains(command.id) || (places.isEmpty() && places.add(command.id))
                            ? 0L
                            : ScriptReply.UNKNOWN;
                }
                case "renew" -> places.add(command.id);
                case "cancel" -> places.remove(command.id);
                default -> {
                    return places.isEmpty() ? 0L : ScriptReply.UNKNOWN;
                }
            }
            return 0;
        }

        private String state() {
            InFlightCall call = call();
            String id = call == null ? "" : call.id();
            UnaryOperator<String> whose = other -> other.equals(id) ? "own" : other.equals("other") ? other : "old";
            return (call == null
                            ? asked.isDone() ? "failed" : "asked"
                            : limiter.queues() > 0 ? "queued" : call.mayGo() ? "live" : "over")
                    + (wasLive ? " was" : "")
                    + (ended ? " ended" : "")
                    + (turn == null ? "" : " waits" + turn.isDone())
                    + (connection.isDown("rl:key") ? " down " : " up ")
                    + pending.stream()
                            .map(sent -> sent.operation + whose.apply(sent.id))
                            .toList()
                    + new TreeSet<>(places.stream().map(whose).toList());
        }

        @Override
        public CompletionStage<List<Object>> eval(Script script, String[] on, ScriptArguments args, boolean asking) {
            if (!script.equals(Script.DECIDE)) {
                return CompletableFuture.completedFuture(List.of(1L));
            }
            List<String> words = SentArguments.of(args).stream()
                    .map(word -> new String(word, StandardCharsets.ISO_8859_1))
                    .toList();
            String operation = words.get(1).split(" ", 2)[0];
            String packed = words.get(words.size() - 1);
            Sent command = new Sent(operation, packed.substring(35), new CompletableFuture<>());
            if (operation.equals("renew") && limiter.keys() == 0) {
                wrong.add("F4");
            }
            if (answersAll) {
                answer(command);
            } else {
                pending.add(command);
            }
            return command.reply;
        }

        @Override
        public CompletionStage<Set<String>> discover() {
            return CompletableFuture.completedFuture(Set.of(""));
        }

        @Override
        public String address(String key) {
            return "";
        }

        @Override
        public CompletionStage<RedisLink> connect(String address) {
            return CompletableFuture.completedFuture(this);
        }

        @Override
        public boolean isCluster() {
            return false;
        }

        @Override
        public CompletionStage<List<Object>> time() {
            return CompletableFuture.completedFuture(List.of("1", "0"));
        }

        @Override
        public CompletionStage<Long> delete(String key) {
            return CompletableFuture.completedFuture(1L);
        }

        @Override
        public void onBreak(Runnable task) {}

        @Override
        public void close() {}
    }
}
