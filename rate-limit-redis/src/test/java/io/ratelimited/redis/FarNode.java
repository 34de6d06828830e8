package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/** A node with a client of its own, and a network between it and Redis that a test can break. */
final class FarNode {

    /** Long enough that a busy machine is no outage. */
    static final RedisBackendOptions PATIENT =
            RedisBackendOptions.DEFAULTS.expectedNodes(1).timeout(Duration.ofMillis(500));

    static final Duration PATIENCE = Duration.ofSeconds(30);

    /** For a node whose network nobody breaks. */
    static final RedisBackendOptions NEAR = PATIENT.timeout(Duration.ofSeconds(20));

    private static final long RECOVERY_NANOS = 1_000_000_000L;

    private final Proxy network;
    private final RedisBackend backend;
    private final RateLimiter witness;

    private FarNode(Proxy network, RedisBackend backend) {
        this.network = network;
        this.backend = backend;
        this.witness = backend.limiter(
                Limit.of("witness", Algorithm.TOKEN_BUCKET).rate("1000000/s").build(), RedisLimitOptions.DEFAULTS);
    }

    static FarNode of(RedisServers servers, RedisBackendOptions options) {
        Proxy network = servers.closeLater(new Proxy(servers.server().port()));
        return new FarNode(
                network, servers.closeLater(RedisBackend.of(RedisServers.settings(network.port()), options)));
    }

    Proxy network() {
        return network;
    }

    RedisBackend backend() {
        return backend;
    }

    RateLimiter limiter(Limit limit) {
        return backend.limiter(limit, RedisLimitOptions.DEFAULTS);
    }

    /** Until Redis decides; says so after the first time too. */
    void awaitRedis() {
        until(this::isDecidedByRedis, "decided by Redis", PATIENCE);
    }

    private boolean isDecidedByRedis() {
        return backend.health().state() == RedisHealth.State.UP
                && witness.reserve("witness", 1, 0).decision().source() == Source.REDIS;
    }

    /** A call that Redis has admitted, now or later: a busy machine may keep a reply for longer than the timeout. */
    static Reservation admitted(Supplier<Reservation> call) {
        AtomicReference<Reservation> admitted = new AtomicReference<>();
        until(
                () -> {
                    Reservation next = call.get();
                    if (next.decision().source() == Source.REDIS && !next.isRefused()) {
                        admitted.set(next);
                        return true;
                    }
                    next.cancel();
                    return false;
                },
                "admitted by Redis",
                PATIENCE);
        return admitted.get();
    }

    /** Cuts the network, and waits until nobody asks Redis any more. */
    void cut() {
        network.cut(true);
        awaitOutage();
    }

    void heal() {
        network.cut(false);
        awaitRedis();
    }

    /** Ends a silence: what was sent in it is lost with its connection. */
    void healSilence() {
        network.cut(true);
        network.silence(false);
        heal();
    }

    /** Until the breaker is open: by failures that end together, so that it takes one timeout only. */
    void awaitOutage() {
        until(
                () -> {
                    List<CompletionStage<Reservation>> calls = new ArrayList<>();
                    for (int i = 0; i < 8; i++) {
                        calls.add(witness.reserveAsync("witness-" + i, 1, 0));
                    }
                    calls.forEach(call -> assertThat(call).succeedsWithin(PATIENCE));
                    return backend.health().state() == RedisHealth.State.DOWN;
                },
                "an outage",
                PATIENCE);
    }

    /** The most commands of the backend's own since an instant: probes, two a second, each with what a new connection begins with. */
    static long probesSince(long begin) {
        return 15 + 15 * (System.nanoTime() - begin) / 500_000_000;
    }

    /** Mends the network and waits until Redis decides, and until what is promised then holds: within a second. */
    void healAndSee(String what, BooleanSupplier promise) {
        heal();
        try (Stalls stalls = new Stalls()) {
            long begin = System.nanoTime();
            until(promise, what, Duration.ofSeconds(10));
            long end = System.nanoTime();
            long stolen = stalls.between(begin, end);
            System.out.printf(
                    "RECOVERY %s: %d ms after Redis decided, of which the machine took %d ms%n",
                    what, (end - begin) / 1_000_000, stolen / 1_000_000);
            assertThat(end - begin - stolen).as(what).isLessThanOrEqualTo(RECOVERY_NANOS);
        }
    }
}
