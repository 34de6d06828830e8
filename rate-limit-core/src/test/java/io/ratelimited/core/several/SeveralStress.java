package io.ratelimited.core.several;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Calls under several limits that wait or do not, of different classes, in memory and elsewhere, while threads are interrupted,
 * futures cancelled and decisions fail. In the end nobody holds a place, and quotas have what the calls that went have left.
 */
public abstract class SeveralStress {

    private static final int THREADS = 24;
    private static final long QUOTA = 1_000_000_000;
    private static final long MILLI = 1_000_000;

    /** The number of calls. */
    protected abstract int calls();

    /** The backends beside memory. */
    protected abstract List<String> backends();

    /** A limiter of a backend that is not in memory. */
    protected abstract RateLimiter elsewhere(String backend, Limit limit);

    /** Moved while there are calls. */
    protected final ManualTicker time = new ManualTicker(0, Instant.parse("2026-01-01T00:00:00Z"));

    private final List<RateLimiter> quotas = new ArrayList<>();
    private final List<RateLimiter> places = new ArrayList<>();
    private final List<RateLimiter> paces = new ArrayList<>();
    private final List<RateLimiter> all = new ArrayList<>();
    /** How many calls each quota has admitted for good. */
    private final List<AtomicLong> went = new ArrayList<>();

    private final ConcurrentLinkedQueue<Thread> callers = new ConcurrentLinkedQueue<>();
    private volatile boolean done;

    @BeforeEach
    void makeLimiters() {
        List<String> names = new ArrayList<>(List.of("near"));
        names.addAll(backends());
        for (String name : names) {
            quotas.add(limiter(name, Limit.of("quota", Algorithm.FIXED_WINDOW).rate(QUOTA + "/d")));
            paces.add(limiter(
                    name,
                    Limit.of("pace", Algorithm.TOKEN_BUCKET).rate("2000/s").burst(2)));
            paces.add(limiter(
                    name,
                    Limit.of("queue", Algorithm.LEAKY_BUCKET).rate("3000/s").burst(9)));
            places.add(limiter(name, Limit.of("one", Algorithm.CONCURRENCY).maxConcurrent(1)));
            places.add(limiter(
                    name,
                    Limit.of("three", Algorithm.CONCURRENCY)
                            .maxConcurrent(3)
                            .maxWaiting(3)
                            .priorities(List.of("high", "middle", "low"))));
        }
        places.add(limiter(
                "near",
                Limit.of("adaptive", Algorithm.ADAPTIVE)
                        .minConcurrent(2)
                        .maxConcurrent(4)
                        .maxWaiting(4)
                        .priorities(List.of("high", "middle", "low"))));
        quotas.forEach(quota -> went.add(new AtomicLong()));
        all.addAll(quotas);
        all.addAll(paces);
        all.addAll(places);
    }

    private RateLimiter limiter(String name, Limit.Builder limit) {
        return name.equals("near") ? new InMemoryRateLimiter(limit.build(), time, 100) : elsewhere(name, limit.build());
    }

    private static @Nullable Object keyOf(RateLimiter limiter, int number) {
        return limiter.limit().algorithm().findsItsLimit() ? null : "k" + number;
    }

    private List<Claim> claims(Random random) {
        List<RateLimiter> chosen = new ArrayList<>(all);
        Collections.shuffle(chosen, random);
        int key = random.nextInt(2);
        return chosen.subList(0, 1 + random.nextInt(5)).stream()
                .map(limiter -> Claim.of(
                        limiter,
                        keyOf(limiter, key),
                        1,
                        random.nextInt(3) == 0 ? 0 : random.nextInt(3) * 2L * MILLI + MILLI,
                        random.nextInt(3)))
                .toList();
    }

    private void call(Random random) {
        List<Claim> claims = claims(random);
        try {
            if (random.nextBoolean()) {
                Reservation call = AllOf.reserve(claims);
                if (call.await() && (random.nextInt(8) > 0 || call.await())) {
                    end(random, claims, call);
                }
            } else {
                callAsync(random, claims);
            }
        } catch (InterruptedException | CancellationException | ExecutionException ex) {
            // It was given up, or could not be decided.
        } catch (IllegalStateException ex) {
            assertThat(ex).hasMessage("away");
        }
    }

    private void callAsync(Random random, List<Claim> claims) throws InterruptedException, ExecutionException {
        CompletableFuture<Reservation> decision = AllOf.reserveAsync(claims).toCompletableFuture();
        if (random.nextInt(8) == 0 && decision.cancel(false)) {
            return;
        }
        Reservation call;
        try {
            call = decision.get();
        } catch (InterruptedException ex) {
            if (!decision.cancel(false) && !decision.isCompletedExceptionally()) {
                decision.join().cancel();
            }
            throw ex;
        }
        CompletableFuture<Boolean> turn = call.awaitAsync();
        if (random.nextInt(4) == 0) {
            pause(random);
            turn.cancel(false);
        }
        try {
            if (turn.get() && (random.nextInt(8) > 0 || call.awaitAsync().get())) {
                end(random, claims, call);
            }
        } catch (InterruptedException ex) {
            turn.cancel(false);
            call.cancel();
            throw ex;
        }
    }

    /** The call is made, or given up at the last moment. */
    private void end(Random random, List<Claim> claims, Reservation call) {
        pause(random);
        if (random.nextInt(10) == 0) {
            call.cancel();
            return;
        }
        for (Claim claim : claims) {
            int quota = quotas.indexOf(claim.limiter());
            if (quota >= 0) {
                went.get(quota).incrementAndGet();
            }
        }
        call.release();
    }

    @SuppressWarnings("ThreadPriorityCheck") // gives others a chance, and relies on nothing
    private static void pause(Random random) {
        for (int i = random.nextInt(3); i > 0; i--) {
            Thread.yield();
        }
    }

    /** Lets the time pass, and interrupts some caller, as long as there are calls. */
    private Void disturb() {
        Random random = new Random(7);
        Thread[] threads = callers.toArray(Thread[]::new);
        while (!done) {
            time.advanceNanos(20_000);
            if (random.nextInt(4) == 0) {
                threads[random.nextInt(threads.length)].interrupt();
            }
            pause(random);
        }
        return null;
    }

    @Test
    void noPermitIsLostWhateverEndsACall() throws Exception {
        AtomicLong left = new AtomicLong(calls());
        CountDownLatch gate = new CountDownLatch(1);
        List<FutureTask<Void>> running = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            Random random = new Random(i);
            running.add(Threads.start(() -> {
                gate.await();
                callers.add(Thread.currentThread());
                while (left.getAndDecrement() > 0) {
                    call(random);
                    Thread.interrupted();
                }
                return null;
            }));
        }
        gate.countDown();
        // Only calls are interrupted: nobody is at the gate any more.
        Threads.until(() -> callers.size() == THREADS);
        FutureTask<Void> disturbing = Threads.start(this::disturb);
        try {
            for (FutureTask<Void> caller : running) {
                caller.get();
            }
        } finally {
            done = true;
            Threads.get(disturbing);
        }
        awaitBackends();
        time.advanceNanos(1_000 * MILLI);
        assertNothingIsHeld();
    }

    /** Waits for what backends have to do for calls that nobody waits for any more. */
    protected abstract void awaitBackends() throws Exception;

    /** Permits of quotas that calls have, which have been made. */
    protected final long went() {
        return went.stream().mapToLong(AtomicLong::get).sum();
    }

    /** Permits of quotas that are used, and of places that are in use. */
    protected final long held() {
        long held = 0;
        for (int key = 0; key < 2; key++) {
            for (RateLimiter quota : quotas) {
                held += QUOTA - quota.peek("k" + key, 1, 0).remaining();
            }
            for (RateLimiter place : places) {
                held += place.limit().maxConcurrent()
                        - (place.foundLimit() != null
                                ? place.limit().maxConcurrent()
                                : place.peek("k" + key, 1, 0).remaining());
            }
        }
        return held;
    }

    private void assertNothingIsHeld() {
        for (RateLimiter limiter : all) {
            assertThat(limiter.waiting()).as(limiter.limit().name()).isZero();
        }
        for (RateLimiter limiter : places) {
            assertThat(limiter.keys())
                    .as("keys with calls in flight: %s", limiter.limit())
                    .isZero();
            if (limiter.foundLimit() != null) {
                assertThat(limiter.foundLimit().inFlight()).isZero();
            }
        }
        assertThat(held()).isEqualTo(went());
        for (int i = 0; i < quotas.size(); i++) {
            long used = 0;
            for (int key = 0; key < 2; key++) {
                used += QUOTA - quotas.get(i).peek("k" + key, 1, 0).remaining();
            }
            assertThat(used)
                    .as("used of quota %s", i)
                    .isEqualTo(went.get(i).get())
                    .isPositive();
        }
    }
}
