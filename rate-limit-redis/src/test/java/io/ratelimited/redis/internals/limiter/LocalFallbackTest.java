package io.ratelimited.redis.internals.limiter;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.CallerLimit;
import io.ratelimited.core.DelegatingTicker;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.internals.connection.GuardedConnection;
import io.ratelimited.redis.internals.connection.KeyNames;
import io.ratelimited.redis.internals.connection.RedisConnector;
import io.ratelimited.redis.internals.connection.RedisLink;
import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import io.ratelimited.redis.internals.connection.SentArguments;
import io.ratelimited.redis.internals.connection.Threads;
import java.lang.ref.WeakReference;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** What Redis hears of what a node has admitted by itself. In one thread, on a time that the test moves. */
@Tag("slow")
class LocalFallbackTest {

    private static final Duration CHARGE = Duration.ofMillis(200);
    private static final Duration RENEWAL = Duration.ofSeconds(10);

    private final ManualTicker clock = new ManualTicker();
    private final OneServer server = new OneServer();
    private final KeyNames keys = new KeyNames("rl");
    private final GuardedConnection connection = new GuardedConnection(
            server,
            keys,
            Duration.ofMillis(50).toNanos(),
            clock,
            new Threads(clock, Runnable::run, Runnable::run),
            false,
            UnaryOperator.identity());
    private final LimiterContext context = new LimiterContext(
            connection, keys, clock, Runnable::run, new Nodes("node", 1), IllegalStateException::new);
    private final RedisRateLimiter limiter = new RedisRateLimiter(
            context, Limit.of("limit", Algorithm.FIXED_WINDOW).rate("100/d").build(), "", failure -> null, 0, 100_000);

    /** One script call. */
    private record Sent(Script script, String key, List<String> words) {

        /** The second number of the packed calls; see {@code decide.lua}. */
        private String permits() {
            long permits = 0;
            for (char part : words.get(words.size() - 1).substring(7, 14).toCharArray()) {
                permits = permits << 8 | part;
            }
            return Long.toString(permits);
        }

        /** What is behind the numbers. */
        private String tail() {
            return words.get(words.size() - 1).substring(35);
        }
    }

    /** A server whose scripts are answered by the test. */
    private static final class OneServer implements RedisConnector, RedisLink {

        private final List<Sent> sent = new ArrayList<>();
        private final Deque<CompletableFuture<List<Object>>> asked = new ArrayDeque<>();
        private Runnable whileLookingUp = () -> {};

        private void answer() {
            while (!asked.isEmpty()) {
                asked.remove().complete(List.of());
            }
        }

        @Override
        public CompletionStage<Set<String>> discover() {
            return CompletableFuture.completedFuture(Set.of(""));
        }

        @Override
        public String address(String key) {
            whileLookingUp.run();
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
        public CompletionStage<List<Object>> eval(Script script, String[] on, ScriptArguments args, boolean asking) {
            List<String> words = SentArguments.of(args).stream()
                    .map(word -> new String(word, StandardCharsets.ISO_8859_1))
                    .toList();
            CompletableFuture<List<Object>> reply = new CompletableFuture<>();
            sent.add(new Sent(script, on[0], words));
            asked.add(reply);
            return reply;
        }

        @Override
        public CompletionStage<List<Object>> time() {
            throw new UnsupportedOperationException();
        }

        @Override
        public CompletionStage<Long> delete(String key) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void onBreak(Runnable task) {}

        @Override
        public void close() {}
    }

    @AfterEach
    void close() {
        connection.close();
    }

    /** As where the system can start no more threads, and none keeps the time. */
    @Test
    void aCallWhoseWaitCannotBeTimedLeavesTheQueueAndLaterOnesAreLookedAfter() {
        Error noThread = new Error("unable to create native thread");
        AtomicBoolean broken = new AtomicBoolean();
        AtomicInteger looks = new AtomicInteger();
        Ticker breaking = new DelegatingTicker(clock) {
            @Override
            public Runnable schedule(long deadline, Runnable task) {
                if (broken.getAndSet(false)) {
                    throw noThread;
                }
                looks.incrementAndGet();
                return super.schedule(deadline, task);
            }
        };
        RedisConcurrencyLimiter flights = new RedisConcurrencyLimiter(
                new LimiterContext(
                        connection, keys, breaking, Runnable::run, new Nodes("node", 1), IllegalStateException::new),
                Limit.of("flights", Algorithm.CONCURRENCY).maxConcurrent(1).build(),
                "",
                failure -> null);
        while (!connection.isDown("rl:key")) {
            flights.reserveAsync("other", 1, 0);
            clock.advance(Duration.ofMillis(50));
        }
        long hour = Duration.ofHours(1).toNanos();
        Reservation first = flights.reserveLocally("key", 1, 0);

        broken.set(true);
        assertThatThrownBy(() -> flights.reserveLocally("key", 1, hour)).isSameAs(noThread);
        assertThat(flights.queues()).isZero();
        Reservation second = flights.reserveLocally("key", 1, hour);
        assertThat(looks).hasValue(1);

        broken.set(true);
        assertThatThrownBy(() -> clock.advance(Duration.ofMillis(100))).isSameAs(noThread);
        flights.reserveLocally("key", 1, hour).cancel();
        assertThat(looks).hasValue(2);

        first.release();
        assertThat(second.awaitAsync()).as("the second call is in flight").isCompletedWithValue(true);
        assertThat(flights.queues()).isZero();
        assertThat(flights.peekLocally("key", new Wanted(1, 0)).admitted()).isFalse();
    }

    @Test
    void noCallerWaitsWhileOthersAreCharged() {
        limiter.reserveLocally("one", 1, 0);
        List<Boolean> meanwhile = new ArrayList<>();
        server.whileLookingUp = () -> {
            server.whileLookingUp = () -> {};
            Thread caller = new Thread(() -> limiter.reserveLocally("two", 1, 0));
            caller.start();
            try {
                caller.join(10_000);
            } catch (InterruptedException ex) {
                throw new IllegalStateException(ex);
            }
            meanwhile.add(!caller.isAlive());
        };
        clock.advance(CHARGE);
        assertThat(meanwhile).containsExactly(true);
        server.answer();
        clock.advance(CHARGE);
        assertThat(server.sent).extracting(Sent::key).containsExactlyInAnyOrder(key("one"), key("two"));
    }

    @Test
    void theDearestAreChargedFirstAndWhatWasGivenBackIsNot() {
        limiter.reserveLocally("one", 1, 0);
        limiter.reserveLocally("three", 3, 0);
        limiter.reserveLocally("two", 1, 0);
        limiter.reserveLocally("two", 1, 0);
        limiter.reserveLocally("none", 1, 0).cancel();
        limiter.reserveLocally(null, 5, 0);
        clock.advance(CHARGE);
        assertThat(server.sent).extracting(Sent::key).containsExactly(key(null), key("three"), key("two"), key("one"));
        assertThat(server.sent).extracting(Sent::permits).containsExactly("5", "3", "2", "1");
    }

    @Test
    void aCallIsChargedWhatItHasCostOnceWheneverItIsSettled() {
        Reservation less = limiter.reserveLocally("before", 5, 0);
        Reservation more = limiter.reserveLocally("before", 5, 0);
        Reservation none = limiter.reserveLocally("none", 5, 0);
        Reservation late = limiter.reserveLocally("late", 5, 0);
        less.settle(2);
        none.settle(0);
        assertThat(server.sent).isEmpty();
        more.settle(9);
        assertThat(charged("before")).containsExactly("4");
        server.answer();
        clock.advance(CHARGE);
        assertThat(charged("before")).containsExactly("4", "7");
        assertThat(charged("none")).isEmpty();
        assertThat(charged("late")).containsExactly("5");
        server.answer();
        Reservation other = limiter.reserveLocally("late", 1, 0);
        late.settle(8);
        late.settle(9);
        server.answer();
        limiter.reserveLocally("before", 3, 0);
        less.cancel();
        clock.advance(CHARGE);
        // Who is charged already gives back nothing that another was admitted with.
        assertThat(charged("late")).containsExactly("5", "3", "1");
        assertThat(charged("before")).containsExactly("4", "7", "3");
        server.answer();
        other.settle(0);
        clock.advance(CHARGE);
        assertThat(server.sent).hasSize(6).allMatch(sent -> sent.words.get(1).startsWith("charge "));
    }

    @Test
    void callersHaveTheirNumbersInAnOutageAndRedisIsChargedByThem() {
        RedisRateLimiter small = (RedisRateLimiter) limiter.ofCallers(CallerLimit.of("3/d"));
        RedisRateLimiter large = (RedisRateLimiter) limiter.ofCallers(CallerLimit.of("1000/d"));
        int[] admitted = new int[3];
        for (int call = 0; call < 1_100; call++) {
            admitted[0] += small.reserveLocally("small", 1, 0).isRefused() ? 0 : 1;
            admitted[1] += large.reserveLocally("large", 1, 0).isRefused() ? 0 : 1;
            admitted[2] += limiter.reserveLocally("other", 1, 0).isRefused() ? 0 : 1;
        }
        assertThat(admitted).containsExactly(3, 1_000, 100);
        clock.advance(CHARGE);
        server.answer();
        assertThat(charged("small")).containsExactly("3");
        assertThat(charged("large")).containsExactly("1000");
        assertThat(charged("other")).containsExactly("100");
    }

    private String key(@Nullable String caller) {
        return limiter.parameters().fullName(limiter.name(caller));
    }

    private List<String> charged(String caller) {
        return server.sent.stream()
                .filter(sent -> sent.key.equals(key(caller)))
                .map(Sent::permits)
                .toList();
    }

    @Test
    void ofMoreCallersThanAreRememberedTheDearestAre() {
        for (int i = 0; i < 40_002; i++) {
            limiter.reserveLocally("caller" + i, i % 2 + 1, 0);
        }
        clock.advance(CHARGE);
        for (int i = 0; i < 20; i++) {
            server.answer();
            clock.advance(Duration.ofMillis(20));
        }
        assertThat(server.sent)
                .extracting(Sent::permits)
                .hasSizeBetween(20_000, 20_002)
                .startsWith("2");
        assertThat(server.sent.subList(0, 19_999))
                .allMatch(charge -> charge.permits().equals("2"));
    }

    @Test
    void aChargeThatWaitsIsSentAsItWasMeantWhenTheAlgorithmChanges() {
        for (int i = 0; i < 300; i++) {
            limiter.reserveLocally("caller" + i, 1, 0);
        }
        clock.advance(CHARGE);
        limiter.update(Limit.of("limit", Algorithm.TOKEN_BUCKET).rate("100/d").build());
        server.answer();
        assertThat(server.sent)
                .hasSize(300)
                .allMatch(charge -> charge.words.get(1).endsWith(" f"));
    }

    @Test
    void moreCallsInFlightThanAreKeptForRedisAreAllRegistered() {
        int calls = 20_500;
        RedisConcurrencyLimiter flights = new RedisConcurrencyLimiter(
                context,
                Limit.of("flights", Algorithm.CONCURRENCY).maxConcurrent(calls).build(),
                "",
                failure -> null);
        for (int i = 0; i < calls; i++) {
            assertThat(flights.reserveLocally("key", 1, 0).isRefused()).isFalse();
        }
        clock.advance(RENEWAL);
        for (int i = 0; i < 30; i++) {
            server.answer();
            clock.advance(Duration.ofMillis(20));
        }
        assertThat(server.sent.stream().map(Sent::tail).distinct()).hasSize(calls);
    }

    @Test
    void aCallOfSeveralLimitsIsAdmittedWhenItsRejectionSaysAfterItsNumbersHaveGrown() {
        connection.close();
        RedisRateLimiter slow = new RedisRateLimiter(
                context, Limit.of("slow", Algorithm.TOKEN_BUCKET).rate("1/h").build(), "", failure -> null, 0, 100);
        Claim beside = Claim.of(limiter, "k", 1, 0);
        assertThat(AllOf.reserve(List.of(Claim.of(slow, "k", 1, 0), beside)).isRefused())
                .isFalse();
        List<Claim> call = List.of(Claim.of(slow.ofCallers(CallerLimit.of("1/s burst 2")), "k", 1, 0), beside);
        Reservation rejected = AllOf.reserve(call);
        assertThat(rejected.decision().retryAfter()).isLessThanOrEqualTo(Duration.ofSeconds(1));
        clock.advance(rejected.decision().retryAfter());
        assertThat(AllOf.reserve(call).isRefused()).isFalse();
    }

    /** Another call comes between the check and the charge. */
    @Test
    void aLimitThatWouldHaveLetACallWaitIsNotNamedWhenAnotherOneRejectsIt() {
        connection.close();
        RedisConcurrencyLimiter flights = new RedisConcurrencyLimiter(
                context,
                Limit.of("flights", Algorithm.CONCURRENCY).maxConcurrent(1).build(),
                "",
                failure -> null);
        flights.reserveLocally("key", 1, 0);
        Deque<RedisRateLimiter> between = new ArrayDeque<>();
        RedisRateLimiter rate = new RedisRateLimiter(
                context,
                Limit.of("rate", Algorithm.FIXED_WINDOW).rate("1/d").build(),
                "",
                failure -> {
                    // The second time it is charged.
                    RedisRateLimiter self = between.removeFirst();
                    if (between.isEmpty()) {
                        self.reserveLocally("key", 1, 0);
                    }
                    return null;
                },
                0,
                10);
        between.addAll(List.of(rate, rate));
        Reservation refused = AllOf.reserve(List.of(Claim.of(flights, "key", 1, 1_000), Claim.of(rate, "key", 1, 0)));
        assertThat(AllOf.refusals(refused)[0]).isNull();
        assertThat(AllOf.refusals(refused)[1]).isNotNull();
        assertThat(flights.waiting()).isZero();
    }

    /** As those of budgets that no caller has any more. */
    @Test
    void aLimiterThatNobodyUsesIsForgottenOnceRedisHasWhatItOwes() throws InterruptedException {
        Set<WeakReference<?>> dropped = Set.of(useAndDropFallback(), useAndDropFlights(), useAndDropBlocks());
        for (int i = 0; i < 3; i++) {
            server.answer();
            clock.advance(RENEWAL);
        }
        server.answer();
        for (int i = 0; i < 1_000 && dropped.stream().anyMatch(each -> each.get() != null); i++) {
            System.gc();
            Thread.sleep(10);
        }
        assertThat(dropped).extracting(WeakReference::get).containsOnlyNulls();
    }

    private WeakReference<?> useAndDropFallback() {
        RedisRateLimiter used = new RedisRateLimiter(
                context,
                Limit.of("own", Algorithm.TOKEN_BUCKET).rate("5/d").build(),
                "=rate=5%2Fd",
                failure -> null,
                0,
                1);
        used.reserveLocally("k", 1, 0);
        return new WeakReference<>(used);
    }

    private WeakReference<?> useAndDropFlights() {
        RedisConcurrencyLimiter used = new RedisConcurrencyLimiter(
                context,
                Limit.of("own", Algorithm.CONCURRENCY).maxConcurrent(5).build(),
                "=maxConcurrent=5",
                failure -> null);
        used.reserveLocally("k", 1, 0).release();
        return new WeakReference<>(used);
    }

    private WeakReference<?> useAndDropBlocks() {
        RedisRateLimiter used = new RedisRateLimiter(
                context,
                Limit.of("own", Algorithm.TOKEN_BUCKET)
                        .rate("1/d")
                        .block(RENEWAL)
                        .build(),
                "=rate=1%2Fd",
                failure -> null,
                0,
                1);
        used.reserveLocally("k", 1, 0);
        assertThat(used.reserveLocally("k", 1, 0).decision().blocked()).isTrue();
        return new WeakReference<>(used);
    }
}
