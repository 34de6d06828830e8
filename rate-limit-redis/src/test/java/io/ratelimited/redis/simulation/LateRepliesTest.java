package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.OnFailure;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisBackendOptions;
import io.ratelimited.redis.RedisLimitOptions;
import io.ratelimited.redis.SimulatedBackend;
import io.ratelimited.redis.internals.connection.RedisConnector;
import io.ratelimited.redis.internals.connection.RedisLink;
import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import io.ratelimited.redis.internals.connection.SentArguments;
import io.ratelimited.redis.internals.connection.Threads;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.luaj.vm2.LuaString;

/**
 * Redis counts a call, and its reply comes when the node has decided without it. In one thread, on a time that the test moves; only
 * callers that block wait for the timeout.
 */
@Tag("once")
class LateRepliesTest {

    private static final Duration TIMEOUT = Duration.ofMillis(50);

    private final ManualTicker clock = new ManualTicker(0, Instant.parse("2026-01-01T12:00:00Z"));
    private final SlowServer server = new SlowServer();
    private final RedisBackend backend = SimulatedBackend.of(
            server,
            RedisBackendOptions.DEFAULTS.ticker(clock).timeout(TIMEOUT).expectedNodes(1),
            new Threads(clock, Runnable::run, Runnable::run),
            Runnable::run,
            Runnable::run,
            "node");

    /** A server that runs what it is sent, and whose replies wait while a test holds them. */
    private final class SlowServer implements RedisConnector, RedisLink {

        private final Server server = new Server(Lua.shared(), () -> clock.epochNanos() / 1000);
        private final Deque<Runnable> held = new ArrayDeque<>();
        private boolean holding;

        private void release() {
            holding = false;
            for (Runnable next = held.poll(); next != null; next = held.poll()) {
                next.run();
            }
        }

        @Override
        public CompletionStage<List<Object>> eval(Script script, String[] on, ScriptArguments args, boolean asking) {
            CompletableFuture<List<Object>> reply = new CompletableFuture<>();
            List<Object> values = server.eval(
                    script.digest(),
                    true,
                    Stream.of(on).map(LuaString::valueOf).toList(),
                    SentArguments.of(args).stream().map(LuaString::valueUsing).toList());
            // Replies of one connection keep their order.
            held.add(() -> reply.complete(values));
            if (!holding) {
                release();
            }
            return reply;
        }

        @Override
        public CompletionStage<List<Object>> time() {
            return CompletableFuture.completedFuture(server.time());
        }

        @Override
        public CompletionStage<Long> delete(String key) {
            return CompletableFuture.completedFuture(server.delete(LuaString.valueOf(key)));
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
        public void onBreak(Runnable task) {}

        @Override
        public void close() {}
    }

    /** Asks for one permit of each limit, while replies are held; returns what the node decides by itself. */
    private enum Way {
        BLOCKING {
            @Override
            boolean ask(LateRepliesTest test, List<Claim> claims) {
                return !AllOf.reserve(claims).isRefused();
            }
        },
        ASYNC {
            @Override
            boolean ask(LateRepliesTest test, List<Claim> claims) {
                CompletableFuture<Reservation> asked =
                        AllOf.reserveAsync(claims).toCompletableFuture();
                assertThat(asked).isNotDone();
                test.clock.advance(TIMEOUT);
                return !asked.join().isRefused();
            }
        },
        BY_HAND {
            @Override
            boolean ask(LateRepliesTest test, List<Claim> claims) {
                return claims.stream().allMatch(claim -> claim.limiter().tryAcquire(claim.key(), 1));
            }
        };

        abstract boolean ask(LateRepliesTest test, List<Claim> claims);
    }

    @AfterEach
    void close() {
        server.release();
        backend.close();
    }

    private static Limit limit(String name, Algorithm algorithm) {
        return Limit.of(name, algorithm).rate("5/d").build();
    }

    static Stream<Arguments> calls() {
        Limit blocking = Limit.of("blocking", Algorithm.SLIDING_LOG)
                .rate("5/d")
                .block(Duration.ofMinutes(1))
                .build();
        List<List<Limit>> limits = List.of(
                List.of(limit("bucket", Algorithm.TOKEN_BUCKET)),
                List.of(limit("meter", Algorithm.GCRA)),
                List.of(limit("window", Algorithm.FIXED_WINDOW)),
                List.of(limit("slots", Algorithm.SLIDING_WINDOW)),
                List.of(limit("log", Algorithm.SLIDING_LOG)),
                List.of(blocking),
                List.of(limit("bucket", Algorithm.TOKEN_BUCKET), blocking));
        return limits.stream()
                .flatMap(all -> Stream.of(Way.values())
                        .filter(way -> all.size() == 1 || way != Way.BY_HAND)
                        .flatMap(way -> Stream.of(OnFailure.LOCAL, OnFailure.ALLOW, OnFailure.DENY)
                                .map(onFailure -> Arguments.of(all, way, onFailure))));
    }

    @ParameterizedTest
    @MethodSource("calls")
    void aCallIsCountedOnceWhoeverHasDecidedIt(List<Limit> limits, Way way, OnFailure onFailure) {
        List<RateLimiter> limiters = limiters(limits, onFailure);
        for (int call = 1; call <= 3; call++) {
            server.holding = true;
            assertThat(way.ask(this, claims(limiters))).isEqualTo(onFailure != OnFailure.DENY);
            // The connection gives up no sooner than the caller.
            clock.advance(TIMEOUT);
            server.release();
            clock.advance(Duration.ofSeconds(1));
            // What everybody is allowed counts nowhere; what is rejected is not charged.
            int counted = onFailure == OnFailure.LOCAL ? call : 0;
            assertThat(limiters).extracting(this::left).containsOnly(5L - counted);
        }
    }

    @ParameterizedTest
    @MethodSource("calls")
    void soIsOneWhoseReplyComesRightAfterItsCallerHasGone(List<Limit> limits, Way way, OnFailure onFailure) {
        List<RateLimiter> limiters = limiters(limits, onFailure);
        server.holding = true;
        assertThat(way.ask(this, claims(limiters))).isEqualTo(onFailure != OnFailure.DENY);
        server.release();
        clock.advance(Duration.ofSeconds(1));
        assertThat(limiters).extracting(this::left).containsOnly(onFailure == OnFailure.LOCAL ? 4L : 5L);
    }

    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void callsThatWereDecidedTogetherAreCountedOnceEach(Algorithm algorithm) {
        RateLimiter limiter =
                limiters(List.of(limit("together", algorithm)), OnFailure.LOCAL).get(0);
        server.holding = true;
        List<CompletableFuture<Reservation>> asked = new ArrayList<>();
        for (int call = 0; call < 3; call++) {
            asked.add(limiter.reserveAsync("k", 1, 0).toCompletableFuture());
        }
        clock.advance(TIMEOUT);
        assertThat(asked).allMatch(one -> one.join().decision().source() == Source.FALLBACK);
        server.release();
        clock.advance(Duration.ofSeconds(1));
        assertThat(left(limiter)).isEqualTo(2);
    }

    @Test
    void aCallThatIsChargedLessThanItReservedIsCountedWithThat() {
        Limit limit = Limit.of("charged", Algorithm.SLIDING_LOG)
                .rate("5/d")
                .charged(true)
                .build();
        RateLimiter limiter = limiters(List.of(limit), OnFailure.LOCAL).get(0);
        server.holding = true;
        CompletableFuture<Reservation> asked = limiter.reserveAsync("k", 3, 0).toCompletableFuture();
        clock.advance(TIMEOUT);
        asked.join().settle(1);
        server.release();
        clock.advance(Duration.ofSeconds(1));
        assertThat(left(limiter)).isEqualTo(4);
    }

    private List<RateLimiter> limiters(List<Limit> limits, OnFailure onFailure) {
        return limits.stream()
                .map(limit -> backend.limiter(limit, RedisLimitOptions.DEFAULTS.onFailure(onFailure)))
                .toList();
    }

    private static List<Claim> claims(List<RateLimiter> limiters) {
        return limiters.stream().map(each -> Claim.of(each, "k", 1, 0)).toList();
    }

    private long left(RateLimiter limiter) {
        Decision decision = limiter.peek("k", 1, 0);
        assertThat(decision.source()).isEqualTo(Source.REDIS);
        return decision.remaining();
    }
}
