package io.ratelimited.benchmarks;

import io.github.bucket4j.BucketConfiguration;
import io.github.bucket4j.distributed.AsyncBucketProxy;
import io.github.bucket4j.distributed.BucketProxy;
import io.github.bucket4j.distributed.proxy.ProxyManager;
import io.github.bucket4j.redis.lettuce.Bucket4jLettuce;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.codec.StringCodec;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Call;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisBackendOptions;
import io.ratelimited.redis.RedisClientSettings;
import io.ratelimited.redis.RedisLimitOptions;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import org.redisson.Redisson;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Decisions a second on a {@link RedisServer} of its own, beside a script that does nothing: the floor. Latencies: {@code -bm
 * sample}; those with Async in their names keep {@code calls} pending from one thread, and print their latencies themselves.
 */
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.SECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(
        value = 1,
        jvmArgsAppend = {"-Xms1g", "-Xmx1g", "-XX:+AlwaysPreTouch"})
@State(Scope.Benchmark)
@SuppressWarnings("NullAway.Init") // JMH calls setUp first.
public class RedisBenchmark {

    private static final Duration PATIENCE = Duration.ofSeconds(10);

    /** Number of keys, uniformly random. */
    @Param({"1", "10000"})
    public int keys;

    /** Permits: enough for everybody, or one a day. */
    @Param({"enough", "one"})
    public String permits = "";

    private String[] names = {};
    private RedisServer server;
    private RedisClient client;
    private StatefulRedisConnection<String, String> connection;
    private String digest = "";
    private String gateway = "";
    private String[][] gatewayKeys = {};
    private RedisBackend backend;
    private RateLimiter ours;
    private RateLimiter other;
    private long begun;
    /** Processor time of the server. */
    private long busy;

    private BucketProxy[] bucket4j = {};
    private AsyncBucketProxy[] bucket4jAsync = {};
    private RedissonClient redissonClient;
    private RRateLimiter[] redisson = {};

    /** Starts the server, and makes every limiter known to it. */
    @Setup(Level.Trial)
    public void setUp() throws IOException {
        boolean exhausted = permits.equals("one");
        server = RedisServer.start();
        int port = server.port();
        client = RedisClient.create(RedisURI.create("127.0.0.1", port));
        connection = client.connect();
        digest = connection.sync().scriptLoad("return 1");
        gateway = connection.sync().scriptLoad(gatewayScript());
        backend = RedisBackend.of(
                new RedisClientSettings(
                        client.getResources(), client.getOptions(), List.of(RedisURI.create("127.0.0.1", port))),
                RedisBackendOptions.DEFAULTS.expectedNodes(1).timeout(PATIENCE));
        Limit limit = Peers.limit(Algorithm.TOKEN_BUCKET, exhausted ? "1/d" : "1000000000/s");
        ours = backend.limiter(limit, RedisLimitOptions.DEFAULTS);
        other = backend.limiter(
                Limit.of("other", Algorithm.TOKEN_BUCKET)
                        .rate(exhausted ? "1/d" : "1000000000/s")
                        .build(),
                RedisLimitOptions.DEFAULTS);
        ProxyManager<String> buckets = Bucket4jLettuce.casBasedBuilder(
                        client.connect(RedisCodec.of(StringCodec.UTF8, ByteArrayCodec.INSTANCE)))
                .build();
        BucketConfiguration configuration = BucketConfiguration.builder()
                .addLimit(bandwidth -> exhausted
                        ? bandwidth.capacity(1).refillGreedy(1, Duration.ofDays(1))
                        : bandwidth.capacity(1_000_000_000).refillGreedy(1_000_000_000, Duration.ofSeconds(1)))
                .build();
        Config config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port);
        redissonClient = Redisson.create(config);
        names = new String[keys];
        bucket4j = new BucketProxy[keys];
        bucket4jAsync = new AsyncBucketProxy[keys];
        redisson = new RRateLimiter[keys];
        gatewayKeys = new String[keys][];
        for (int i = 0; i < keys; i++) {
            names[i] = "caller-" + i;
            gatewayKeys[i] = new String[] {"gateway.{" + i + "}.tokens", "gateway.{" + i + "}.timestamp"};
            bucket4j[i] = buckets.builder().build("bucket4j-" + i, () -> configuration);
            bucket4jAsync[i] = buckets.asAsync()
                    .builder()
                    .build("bucket4j-" + i, () -> CompletableFuture.completedFuture(configuration));
            redisson[i] = redissonClient.getRateLimiter("redisson-" + i);
            redisson[i].trySetRate(
                    RateType.OVERALL,
                    exhausted ? 1 : 1_000_000_000,
                    exhausted ? Duration.ofDays(1) : Duration.ofSeconds(1));
        }
    }

    private static String gatewayScript() throws IOException {
        try (InputStream in = RedisBenchmark.class.getResourceAsStream("/META-INF/scripts/request_rate_limiter.lua")) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    /** Stops all of it. */
    @TearDown(Level.Trial)
    public void tearDown() {
        redissonClient.shutdown();
        backend.close();
        client.shutdown(Duration.ZERO, PATIENCE);
        server.close();
    }

    /** Begins to count the server's processor time. */
    @Setup(Level.Iteration)
    public void beginIteration() {
        begun = System.nanoTime();
        busy = serverNanos();
    }

    /** Prints how busy the server was. */
    @TearDown(Level.Iteration)
    public void endIteration() {
        System.out.printf(
                "[server %.2f of a core] ", (double) (serverNanos() - busy) / Math.max(1, System.nanoTime() - begun));
    }

    /** Processor time of the server in nanoseconds, which has a resolution of microseconds. */
    long serverNanos() {
        return (long) (1e9
                * connection
                        .sync()
                        .info("cpu")
                        .lines()
                        .filter(line -> line.startsWith("used_cpu_sys:") || line.startsWith("used_cpu_user:"))
                        .mapToDouble(line -> Double.parseDouble(line.substring(line.indexOf(':') + 1)))
                        .sum());
    }

    private int next() {
        return keys == 1 ? 0 : ThreadLocalRandom.current().nextInt(keys);
    }

    /** Calls pending, and how long they took. */
    @State(Scope.Thread)
    public static class UnderWay {

        /** The most at the same time. */
        @Param("64")
        public int calls;

        private final Semaphore free = new Semaphore(0);
        private final AtomicInteger count = new AtomicInteger();
        private final long[] nanos = new long[1 << 20];

        /** Forgets what the warm-up took. */
        @Setup(Level.Iteration)
        public void start() {
            free.release(calls);
            count.set(0);
        }

        /** Waits for the last, and says how long they took. */
        @TearDown(Level.Iteration)
        public void end() throws InterruptedException {
            free.acquire(calls);
            long[] sorted = Arrays.copyOf(nanos, Math.min(nanos.length, count.get()));
            Arrays.sort(sorted);
            if (sorted.length > 0) {
                System.out.printf(
                        "[p50 %d us, p99 %d us] ",
                        sorted[sorted.length / 2] / 1000, sorted[(int) (sorted.length * 0.99)] / 1000);
            }
        }

        private void run(Supplier<? extends CompletionStage<?>> call) throws InterruptedException {
            free.acquire();
            long begun = System.nanoTime();
            call.get().whenComplete((result, failure) -> {
                nanos[count.getAndIncrement() & nanos.length - 1] = System.nanoTime() - begun;
                free.release();
            });
        }
    }

    @Benchmark
    public void floorScriptAsync(UnderWay calls) throws InterruptedException {
        calls.run(this::floorScriptStage);
    }

    CompletionStage<?> floorScriptStage() {
        return connection.async().evalsha(digest, ScriptOutputType.INTEGER, names[next()]);
    }

    @Benchmark
    public void tokenBucketAsync(UnderWay calls) throws InterruptedException {
        calls.run(this::tokenBucketStage);
    }

    CompletionStage<?> tokenBucketStage() {
        return ours.reserveAsync(names[next()], 1, 0);
    }

    /** As reactive callers ask: told where the reply arrives, as the floor and the peers are. */
    @Benchmark
    public void tokenBucketReactiveAsync(UnderWay calls) throws InterruptedException {
        calls.run(this::tokenBucketReactiveStage);
    }

    CompletionStage<?> tokenBucketReactiveStage() {
        return ours.reserveAsync(Call.of(names[next()], 1, 0), Callbacks.NEVER_BLOCK);
    }

    @Benchmark
    public void peerGatewayAsync(UnderWay calls) throws InterruptedException {
        calls.run(this::peerGatewayStage);
    }

    CompletionStage<?> peerGatewayStage() {
        return connection
                .async()
                .evalsha(gateway, ScriptOutputType.MULTI, gatewayKeys[next()], rate(), rate(), "", "1");
    }

    @Benchmark
    public void peerRedissonAsync(UnderWay calls) throws InterruptedException {
        calls.run(this::peerRedissonStage);
    }

    CompletionStage<?> peerRedissonStage() {
        return redisson[next()].tryAcquireAsync();
    }

    @Benchmark
    public void peerBucket4jAsync(UnderWay calls) throws InterruptedException {
        calls.run(this::peerBucket4jStage);
    }

    CompletionStage<?> peerBucket4jStage() {
        return bucket4jAsync[next()].tryConsume(1);
    }

    @Benchmark
    public List<Object> peerGateway() {
        return connection.sync().evalsha(gateway, ScriptOutputType.MULTI, gatewayKeys[next()], rate(), rate(), "", "1");
    }

    /** Whole permits a second, the slowest that script knows. */
    private String rate() {
        return permits.equals("one") ? "1" : "1000000000";
    }

    @Benchmark
    public Long floorScript() {
        return connection.sync().evalsha(digest, ScriptOutputType.INTEGER, names[next()]);
    }

    @Benchmark
    public String floorPing() {
        return connection.sync().ping();
    }

    @Benchmark
    public boolean tokenBucket() {
        return ours.tryAcquire(names[next()], 1);
    }

    /** Two limits on one call. */
    @Benchmark
    public Reservation twoLimits() {
        String key = names[next()];
        return AllOf.reserve(List.of(Claim.of(ours, key, 1, 0), Claim.of(other, key, 1, 0)));
    }

    @Benchmark
    public boolean peerBucket4j() {
        return bucket4j[next()].tryConsume(1);
    }

    @Benchmark
    public boolean peerRedisson() {
        return redisson[next()].tryAcquire();
    }
}
