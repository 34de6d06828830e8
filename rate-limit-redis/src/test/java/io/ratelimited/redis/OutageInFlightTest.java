package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.KillArgs;
import io.lettuce.core.api.sync.RedisCommands;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Calls that begin before an outage and end in it or after it, as a node without outage sees them. */
@Tag("slow")
class OutageInFlightTest {

    private static final int PLACES = 8;

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
    private final RedisBackend near = REDIS.backend(FarNode.PATIENT.timeout(Duration.ofSeconds(20)));

    private static Limit places(int places) {
        return Limit.of("places", Algorithm.CONCURRENCY).maxConcurrent(places).build();
    }

    private long free(Limit limit) {
        return near.limiter(limit, RedisLimitOptions.DEFAULTS).peek("k", 1, 0).remaining();
    }

    /** Takes all that the limit has. */
    private static List<Reservation> takeAll(RateLimiter limiter, long permits) {
        List<Reservation> taken = new ArrayList<>();
        until(
                () -> {
                    Reservation reservation = limiter.reserve("k", 1, 0);
                    if (reservation.decision().source() == Source.REDIS) {
                        assertThat(reservation.isRefused()).isFalse();
                        taken.add(reservation);
                    } else {
                        // A busy machine has kept a reply for longer than the timeout.
                        reservation.cancel();
                    }
                    return taken.size() == permits;
                },
                "all are taken",
                FarNode.PATIENCE);
        return taken;
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCallThatEndedDuringAnOutageLeavesItsPlaceWithinASecondAfterIt(boolean leased) {
        Limit limit =
                leased ? places(PLACES).toBuilder().lease(Duration.ofHours(1)).build() : places(PLACES);
        List<Reservation> running = takeAll(far.limiter(limit), PLACES);
        far.network().cut(true);
        running.forEach(Reservation::release);
        far.awaitOutage();
        far.healAndSee("places of ended calls", () -> free(limit) == PLACES);
    }

    /** Less than their next renewal takes: that is every ten seconds. */
    @Test
    void callsInFlightAreCountedAgainWhenAServerWithoutThemIsReachedAtOnce() {
        Limit limit = places(PLACES);
        List<Reservation> running = takeAll(far.limiter(limit), 5);
        REDIS.server().ask(commands -> {
            commands.flushall();
            return commands.clientKill(KillArgs.Builder.typeNormal());
        });
        until(() -> free(limit) == PLACES - 5, "calls in flight count again", Duration.ofSeconds(5));
        running.forEach(Reservation::release);
        until(() -> free(limit) == PLACES, "they have ended", FarNode.PATIENCE);
    }

    /** Nobody is left who could release what Redis gives then: under one limit, and under two. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void aCallerWhoGoesBeforeTheReplyLeavesNoPlaceTaken(int limits) {
        List<Limit> all = List.of(
                places(PLACES),
                Limit.of("others", Algorithm.CONCURRENCY).maxConcurrent(PLACES).build());
        List<Claim> claims = all.stream()
                .limit(limits)
                .map(limit -> Claim.of(far.limiter(limit), "k", 1, 0))
                .toList();
        far.awaitRedis();
        REDIS.server().freeze();
        long before = far.network().commands();
        List<CompletableFuture<Reservation>> calls = new ArrayList<>();
        for (int i = 0; i < PLACES; i++) {
            calls.add(AllOf.reserveAsync(claims).toCompletableFuture());
        }
        until(() -> far.network().commands() >= before + PLACES, "all are sent", FarNode.PATIENCE);
        for (CompletableFuture<Reservation> call : calls) {
            if (!call.cancel(false)) {
                // A busy machine has taken longer than the timeout to send them.
                call.join().release();
            }
        }
        REDIS.server().thaw();
        // Redis has answered what this node asked before.
        far.awaitRedis();
        all.forEach(limit -> until(() -> free(limit) == PLACES, "places nobody uses", Duration.ofSeconds(2)));
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void whatIsCancelledDuringAnOutageIsFreeWithinASecondAfterIt(Algorithm algorithm) {
        Limit limit = Limit.of("cancelled", algorithm).rate("8/3650d").build();
        RateLimiter limiter = far.limiter(limit);
        cancelAll(takeAll(limiter, PLACES));
        until(() -> free(limit) == PLACES, "given back without an outage", FarNode.PATIENCE);
        List<Reservation> taken = takeAll(limiter, PLACES);
        far.cut();
        // A give-back that was sent and has no reply is not sent again: it could give back twice.
        cancelAll(taken);
        far.healAndSee("permits of cancelled calls under " + algorithm, () -> free(limit) == PLACES);
    }

    /** Last first: what others have reserved behind a call is not given back. */
    private static void cancelAll(List<Reservation> taken) {
        for (int i = taken.size() - 1; i >= 0; i--) {
            taken.get(i).cancel();
        }
    }

    /** As after 30 s, when Redis has forgotten them. */
    @Test
    void aCallThatRedisHasForgottenDuringAnOutageIsRegisteredAnew() {
        Limit limit = places(4);
        RateLimiter limiter = far.limiter(limit);
        List<Reservation> running = takeAll(limiter, 4);
        far.cut();
        REDIS.server().ask(RedisCommands::flushall);
        registeredAnew(limit, limiter, running);
    }

    @Test
    @Tag("proof")
    void aCallThatRunsThroughAnOutageOfMoreThanThirtySecondsIsRegisteredAnew() {
        Limit limit = places(4);
        RateLimiter limiter = far.limiter(limit);
        List<Reservation> running = takeAll(limiter, 4);
        far.cut();
        until(() -> free(limit) == 4, "Redis has forgotten the calls", Duration.ofMinutes(1));
        registeredAnew(limit, limiter, running);
    }

    private void registeredAnew(Limit limit, RateLimiter limiter, List<Reservation> running) {
        far.healAndSee("places of running calls", () -> free(limit) == 0);
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isTrue();
        running.forEach(Reservation::release);
        until(() -> free(limit) == 4, "the calls have ended", FarNode.PATIENCE);
    }

    /** Eight places, calls of 100 ms, a cut of 1.5 s: in the fourth second after it the places are in use. */
    @Test
    @Tag("proof")
    void placesAreInUseAgainAfterAnOutageUnderLoad() throws Exception {
        RateLimiter limiter = far.limiter(places(PLACES));
        AtomicInteger admitted = new AtomicInteger();
        List<Thread> callers = new ArrayList<>();
        try {
            for (int i = 0; i < PLACES; i++) {
                Thread caller = new Thread(() -> callAgainAndAgain(limiter, admitted));
                callers.add(caller);
                caller.start();
            }
            for (int outage = 0; outage < 3; outage++) {
                int before = admitted.get();
                until(() -> admitted.get() > before + 20, "load", FarNode.PATIENCE);
                far.network().cut(true);
                Thread.sleep(1500);
                far.heal();
                Thread.sleep(1000);
                int recovered = admitted.get();
                Thread.sleep(3000);
                int calls = admitted.get() - recovered;
                System.out.printf("PLACES %.1f of %d in use from 1 to 4 s after recovery%n", calls / 30.0, PLACES);
                assertThat(calls).isGreaterThan(PLACES);
            }
        } finally {
            callers.forEach(Thread::interrupt);
            for (Thread caller : callers) {
                caller.join();
            }
        }
    }

    private static void callAgainAndAgain(RateLimiter limiter, AtomicInteger admitted) {
        try {
            while (true) {
                Reservation reservation = limiter.reserve("k", 1, 0);
                if (!reservation.isRefused() && reservation.decision().source() == Source.REDIS) {
                    admitted.incrementAndGet();
                }
                try {
                    Thread.sleep(reservation.isRefused() ? 10 : 100);
                } finally {
                    reservation.release();
                }
            }
        } catch (InterruptedException ex) {
            // The load has ended.
        }
    }
}
