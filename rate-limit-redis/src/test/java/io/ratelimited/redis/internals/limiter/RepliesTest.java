package io.ratelimited.redis.internals.limiter;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.LogLines;
import io.ratelimited.redis.OnFailure;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisBackendOptions;
import io.ratelimited.redis.RedisHealth;
import io.ratelimited.redis.RedisLimitOptions;
import io.ratelimited.redis.RedisServers;
import io.ratelimited.redis.internals.connection.LettuceConnector;
import io.ratelimited.redis.internals.connection.RedisConnector;
import io.ratelimited.redis.internals.connection.RedisLink;
import io.ratelimited.redis.internals.connection.Script;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Replies that come late, never, or are none. */
@Tag("once")
@Tag("slow")
class RepliesTest {

    private static final Duration PATIENCE = Duration.ofMinutes(1);
    private static final RedisBackendOptions OPTIONS =
            RedisBackendOptions.DEFAULTS.expectedNodes(1).timeout(Duration.ofSeconds(1));

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    @RegisterExtension
    final LogLines log = new LogLines();

    /** What becomes of the next reply that grants a call. */
    private volatile UnaryOperator<List<Object>> grant = UnaryOperator.identity();

    private volatile CompletableFuture<Void> delivery = CompletableFuture.completedFuture(null);
    private volatile boolean held;
    private volatile boolean broken;
    private final AtomicBoolean lose = new AtomicBoolean();
    private final AtomicBoolean cannotProbe = new AtomicBoolean();
    /** The next script is kept in {@link #delayed}. */
    private final AtomicBoolean delay = new AtomicBoolean();

    private volatile Runnable delayed = () -> {};

    /** Connections on which the test holds back, loses or changes replies to those who take or ask. */
    private RedisConnector connector() {
        LettuceConnector connector = REDIS.connector();
        return (RedisConnector) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {RedisConnector.class}, (proxy, method, arguments) -> {
                    if (method.getName().equals("connect")) {
                        return connector.connect((String) arguments[0]).thenApply(this::link);
                    }
                    return invoke(connector, method, arguments);
                });
    }

    private static Object invoke(Object target, Method method, Object[] arguments) throws Throwable {
        try {
            return method.invoke(target, arguments);
        } catch (InvocationTargetException ex) {
            throw ex.getCause();
        }
    }

    @SuppressWarnings("unchecked")
    private RedisLink link(RedisLink link) {
        return (RedisLink) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {RedisLink.class}, (proxy, method, arguments) -> {
                    if (method.getName().equals("hashCode")) {
                        return System.identityHashCode(proxy);
                    }
                    if (method.getName().equals("equals")) {
                        return proxy == arguments[0];
                    }
                    boolean probe = method.getName().equals("eval") && arguments[0] == Script.PROBE;
                    if (probe && cannotProbe.getAndSet(false)) {
                        throw new IllegalStateException("cannot probe");
                    }
                    if (method.getName().equals("eval") && broken) {
                        return CompletableFuture.failedFuture(new IllegalStateException("broken"));
                    }
                    boolean isScript = method.getName().equals("eval") && arguments[0] != Script.HEARTBEAT && !probe;
                    if (isScript && delay.getAndSet(false)) {
                        return sendLater(link, method, arguments);
                    }
                    Object result = invoke(link, method, arguments);
                    boolean decides = method.getName().equals("eval") && arguments[0] != Script.HEARTBEAT && !probe;
                    return decides
                            ? ((CompletionStage<List<Object>>) result)
                                    .thenCompose(reply ->
                                            reply.size() == 4 && reply.get(0).equals(0L)
                                                    ? granted(reply)
                                                    : CompletableFuture.completedFuture(reply))
                            : result;
                });
    }

    /** As after a freeze, when the server gets to a command of an old connection after one of a new connection. */
    private CompletableFuture<Object> sendLater(RedisLink link, Method method, Object[] arguments) {
        CompletableFuture<Object> reply = new CompletableFuture<>();
        delayed = () -> {
            try {
                ((CompletionStage<?>) invoke(link, method, arguments))
                        .whenComplete((value, failure) -> reply.complete(value));
            } catch (Throwable ex) {
                reply.completeExceptionally(ex);
            }
        };
        return reply;
    }

    /** Connections before which something happens. */
    private RedisConnector connecting(Runnable before) {
        RedisConnector connector = connector();
        return (RedisConnector) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {RedisConnector.class}, (proxy, method, arguments) -> {
                    if (method.getName().equals("connect")) {
                        before.run();
                    }
                    return invoke(connector, method, arguments);
                });
    }

    private CompletionStage<List<Object>> granted(List<Object> reply) {
        held = true;
        return lose.getAndSet(false) ? new CompletableFuture<>() : delivery.thenApply(delivered -> grant.apply(reply));
    }

    private RedisBackend backend(RedisBackendOptions options) {
        return REDIS.backend(connector(), options, UnaryOperator.identity());
    }

    private static Limit one() {
        return Limit.of("one", Algorithm.CONCURRENCY)
                .maxConcurrent(1)
                .lease(Duration.ofHours(1))
                .build();
    }

    @Test
    void aCallWhoseGrantWasLostHoldsNoPermit() {
        RateLimiter limiter = backend(OPTIONS).limiter(one(), RedisLimitOptions.DEFAULTS);
        lose.set(true);
        Reservation local = limiter.reserve("k", 1, 0);
        assertThat(local.decision().source()).isEqualTo(Source.FALLBACK);
        local.release();
        until(
                () -> {
                    Reservation next = limiter.reserve("k", 1, 0);
                    boolean back = !next.isRefused() && next.decision().source() == Source.REDIS;
                    next.release();
                    return back;
                },
                "the permit is back",
                PATIENCE);
    }

    @Test
    void aWaitingCallWhoseGrantWasLostDoesNotStandInItsOwnWay() {
        RateLimiter limiter = backend(OPTIONS).limiter(one(), RedisLimitOptions.DEFAULTS);
        Reservation first = limiter.reserve("k", 1, 0);
        CompletableFuture<Boolean> second =
                limiter.reserve("k", 1, Duration.ofHours(1).toNanos()).awaitAsync();
        lose.set(true);
        first.release();
        until(second::isDone, "the second goes", PATIENCE);
        assertThat(lose).isFalse();
        assertThat(second).isCompletedWithValue(true);
    }

    @Test
    void nothingIsKeptOfAKeyForWhichNobodyWaitsAnyMore() {
        RedisConcurrencyLimiter limiter =
                (RedisConcurrencyLimiter) backend(OPTIONS).limiter(one(), RedisLimitOptions.DEFAULTS);
        Reservation first = limiter.reserve("k", 1, 0);
        Reservation second = limiter.reserve("k", 1, Duration.ofHours(1).toNanos());
        CompletableFuture<Boolean> turn = second.awaitAsync();
        first.release();
        until(turn::isDone, "the second goes", PATIENCE);
        second.release();
        until(() -> limiter.queues() == 0, "the queue is gone", Duration.ofSeconds(2));
    }

    @Test
    void aRegistrationThatRedisGetsToAfterTheEndOfTheCallHoldsNoPermit() {
        Limit limit = Limit.of("late", Algorithm.CONCURRENCY).maxConcurrent(1).build();
        RateLimiter limiter =
                backend(OPTIONS.timeout(Duration.ofSeconds(20))).limiter(limit, RedisLimitOptions.DEFAULTS);
        InFlightCall call = (InFlightCall) limiter.reserve("k", 1, 0);
        delay.set(true);
        call.renew();
        assertThat(delay).isFalse();
        call.release();
        delayed.run();
        // Less than the 30 s after which Redis would forget the call.
        until(() -> limiter.peek("k", 1, 0).remaining() == 1, "ended again", Duration.ofSeconds(15));
    }

    @Test
    void whatIsDecidedHereWithoutAnOutageIsChargedSoon() {
        RateLimiter limiter = backend(OPTIONS)
                .limiter(Limit.of("soon", Algorithm.FIXED_WINDOW).rate("10/d").build(), RedisLimitOptions.DEFAULTS);
        broken = true;
        assertThat(limiter.reserve("k", 3, 0).decision().source()).isEqualTo(Source.FALLBACK);
        broken = false;
        until(() -> limiter.peek("k", 1, 0).remaining() == 7, "charged", PATIENCE);
        assertThat(limiter.peek("k", 1, 0).source()).isEqualTo(Source.REDIS);
    }

    @Test
    void whatRedisCountsAfterTheCallWasRejectedHereIsGivenBack() {
        RateLimiter limiter = backend(OPTIONS.timeout(Duration.ofMillis(50)))
                .limiter(
                        Limit.of("overruled", Algorithm.FIXED_WINDOW)
                                .rate("5/d")
                                .build(),
                        RedisLimitOptions.DEFAULTS.onFailure(OnFailure.DENY));
        until(() -> limiter.peek("k", 1, 0).source() == Source.REDIS, "Redis decides", PATIENCE);
        pause("PAUSE", "600000", "WRITE");
        assertThat(limiter.reserve("k", 1, 0).decision().source()).isEqualTo(Source.UNAVAILABLE);
        pause("UNPAUSE");
        until(() -> limiter.peek("k", 1, 0).source() == Source.REDIS, "Redis decides again", PATIENCE);
        until(() -> limiter.peek("k", 1, 0).remaining() == 5, "given back", Duration.ofSeconds(20));
    }

    /** The server keeps scripts waiting. */
    private static void pause(String... words) {
        CommandArgs<String, String> args = new CommandArgs<>(StringCodec.UTF8);
        for (String word : words) {
            args.add(word);
        }
        REDIS.server()
                .<String>ask(
                        commands -> commands.dispatch(CommandType.CLIENT, new StatusOutput<>(StringCodec.UTF8), args));
    }

    @Test
    void aGrantThatComesRightAfterTheCallerHasGoneIsGivenBack() {
        RateLimiter limiter =
                backend(OPTIONS.timeout(Duration.ofSeconds(20))).limiter(one(), RedisLimitOptions.DEFAULTS);
        delivery = new CompletableFuture<>();
        CompletableFuture<Reservation> asked = limiter.reserveAsync("k", 1, 0).toCompletableFuture();
        until(() -> held, "granted", PATIENCE);
        asked.completeExceptionally(new TimeoutException());
        delivery.complete(null);
        until(() -> !limiter.reserve("k", 1, 0).isRefused(), "the permit is back", PATIENCE);
    }

    @Test
    void aGrantThatComesAfterACallHasGivenUpChangesNothing() {
        ManualTicker ticker = RedisServers.ticker();
        RedisBackend backend = REDIS.backend(
                connector(),
                OPTIONS.ticker(ticker).timeout(Duration.ofSeconds(20)),
                time -> ticker.epochNanos() / 1000 + RedisServers.OUTLIVES);
        RateLimiter limiter = backend.limiter(one(), RedisLimitOptions.DEFAULTS);
        Reservation first = limiter.reserve("k", 1, 0);
        Reservation second = limiter.reserve("k", 1, Duration.ofSeconds(1).toNanos());
        CompletableFuture<Boolean> turn = second.awaitAsync();
        held = false;
        delivery = new CompletableFuture<>();
        first.release();
        until(() -> held, "granted", PATIENCE);
        ticker.advance(Duration.ofSeconds(1));
        until(turn::isDone, "given up", PATIENCE);
        assertThat(turn).isCompletedWithValue(false);
        delivery.complete(null);
        assertThat(second.decision().admitted()).isFalse();
        assertThat(second.isRefused()).isTrue();
        until(() -> !limiter.reserve("k", 1, 0).isRefused(), "the permit is back", PATIENCE);
    }

    @Test
    void callbacksOfWaitingCallsDoNotRunOnTheThreadOfTheConnection() {
        ExecutorService executor = Executors.newSingleThreadExecutor(task -> new Thread(task, "callers"));
        REDIS.closeLater(executor::shutdown);
        RateLimiter limiter = backend(OPTIONS.executor(executor)).limiter(one(), RedisLimitOptions.DEFAULTS);
        Reservation first = limiter.reserve("k", 1, 0);
        CompletableFuture<String> second = limiter.reserve(
                        "k", 1, Duration.ofHours(1).toNanos())
                .awaitAsync()
                .thenApply(admitted -> Thread.currentThread().getName());
        first.release();
        until(second::isDone, "the second goes", PATIENCE);
        assertThat(second).isCompletedWithValue("callers");
    }

    @Test
    void aReplyThatIsNoneIsAFailure() {
        Limit limit = Limit.of("odd", Algorithm.FIXED_WINDOW).rate("10/s").build();
        RateLimiter limiter = backend(OPTIONS).limiter(limit, RedisLimitOptions.DEFAULTS);
        grant = reply -> List.of("OK");
        assertThat(limiter.peek("k", 1, 0).source()).isEqualTo(Source.FALLBACK);
        assertThat(limiter.reserve("k", 1, 0).decision().source()).isEqualTo(Source.FALLBACK);
    }

    @Test
    void whateverHappensWhileConnectingItIsTriedAgain() {
        AtomicBoolean tried = new AtomicBoolean();
        RedisBackend backend = REDIS.backend(
                connecting(() -> {
                    if (!tried.getAndSet(true)) {
                        throw new OutOfMemoryError("no thread, for a moment");
                    }
                }),
                OPTIONS,
                UnaryOperator.identity());
        until(() -> backend.health().state() == RedisHealth.State.UP, "connected", Duration.ofSeconds(20));
    }

    @Test
    void whateverHappensWhileProbingItIsProbedAgain() {
        RedisBackend backend = backend(OPTIONS);
        RateLimiter limiter = backend.limiter(one(), RedisLimitOptions.DEFAULTS);
        cannotProbe.set(true);
        broken = true;
        until(
                () -> {
                    limiter.reserve("k", 1, 0).release();
                    return backend.health().state() == RedisHealth.State.DOWN;
                },
                "the breaker is open",
                PATIENCE);
        until(() -> !cannotProbe.get(), "probed", PATIENCE);
        broken = false;
        until(() -> backend.health().state() == RedisHealth.State.UP, "asked again", Duration.ofSeconds(20));
    }

    @Test
    void aCallUnderSeveralLimitsDoesNotUseUpWhatIsLeased() {
        ManualTicker ticker = RedisServers.ticker();
        RedisBackend backend = REDIS.backend(ticker);
        RateLimiter leased = backend.limiter(
                Limit.of("leased", Algorithm.TOKEN_BUCKET).rate("100000/s").build(),
                RedisLimitOptions.DEFAULTS.maxOvershoot(1));
        RateLimiter other = backend.limiter(
                Limit.of("other", Algorithm.TOKEN_BUCKET).rate("100000/s").build(), RedisLimitOptions.DEFAULTS);
        Decision before = leased.reserve("k", 1, 0).decision();
        for (int call = 0; call < 1000 && before.source() != Source.LEASE; call++) {
            ticker.advance(Duration.ofMillis(1));
            before = leased.reserve("k", 1, 0).decision();
        }
        assertThat(before.source()).isEqualTo(Source.LEASE);
        assertThat(AllOf.reserve(List.of(Claim.of(leased, "k", 1, 0), Claim.of(other, "k", 1, 0)))
                        .isRefused())
                .isFalse();
        assertThat(leased.reserve("k", 1, 0).decision().remaining()).isEqualTo(before.remaining() - 1);
    }

    @Test
    void aCallForWhichTheLimitHasJustBecomeTooSmallIsRefusedForGood() {
        Limit limit = Limit.of("shrinking", Algorithm.SLIDING_LOG).rate("10/h").build();
        RateLimiter limiter = backend(OPTIONS.timeout(Duration.ofSeconds(20)))
                .limiter(limit, RedisLimitOptions.DEFAULTS.onFailure(OnFailure.ALLOW));
        delivery = new CompletableFuture<>();
        limiter.reserveAsync("k", 1, 0);
        until(() -> held, "granted", PATIENCE);
        CompletableFuture<Reservation> behind = limiter.reserveAsync("k", 5, 0).toCompletableFuture();
        limiter.update(limit.toBuilder().rate("3/h").build());
        delivery.complete(null);
        Decision decision = behind.join().decision();
        assertThat(decision.never()).isTrue();
        assertThat(decision.source()).isEqualTo(Source.REDIS);
    }

    @Test
    void aConnectionThatStandsLateIsTold() {
        CompletableFuture<Void> reachable = new CompletableFuture<>();
        RedisBackend backend = REDIS.backend(connecting(reachable::join), OPTIONS, UnaryOperator.identity());
        until(() -> !log.all().isEmpty(), "late", PATIENCE);
        // On a busy machine the first attempt may have failed before the application stops waiting for it.
        assertThat(log.all()).singleElement().asString().contains("on-failure").containsPattern("reached|unavailable");
        reachable.complete(null);
        until(() -> log.all().size() == 2, "told", PATIENCE);
        assertThat(log.all().get(1)).isEqualTo("Redis is available: connected");
        until(() -> backend.health().state() == RedisHealth.State.UP, "up", PATIENCE);
    }
}
