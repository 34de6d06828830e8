package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.sun.net.httpserver.HttpServer;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Threads;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.redis.RedisProcess;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestClientResponseException;

/** Two instances that call one server: what one of them is told holds for the other, by a real Redis. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("once")
@Tag("slow")
class FleetPausesTest {

    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final Duration PAUSE = Duration.ofSeconds(5);
    private static RedisProcess redis;

    private final Deque<ConfigurableApplicationContext> running = new ArrayDeque<>();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    /** The answer of the server; null for one that admits. */
    private final AtomicReference<String> retryAfter = new AtomicReference<>();

    /** The limit of the server; null for none. */
    private final AtomicReference<RateLimiter> quota = new AtomicReference<>();

    private final ConcurrentLinkedQueue<Long> arrivals = new ConcurrentLinkedQueue<>();
    private HttpServer server;

    @BeforeAll
    static void startRedis() {
        redis = RedisProcess.start();
    }

    @AfterAll
    static void stopRedis() {
        redis.close();
    }

    @BeforeEach
    void start() throws IOException {
        redis.ask(commands -> commands.flushall());
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(threads);
        server.createContext("/", exchange -> {
            arrivals.add(System.nanoTime());
            String told = retryAfter.get();
            if (told != null) {
                exchange.getResponseHeaders().set("Retry-After", told);
            }
            RateLimiter limiter = quota.get();
            boolean admits = told == null && (limiter == null || limiter.tryAcquire(null, 1));
            exchange.sendResponseHeaders(admits ? 204 : 429, -1);
            exchange.close();
        });
        server.start();
    }

    @AfterEach
    void stop() {
        running.forEach(ConfigurableApplicationContext::close);
        server.stop(0);
        threads.shutdownNow();
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {}

    private ConfigurableApplicationContext instance(RedisProcess of, String... more) {
        List<String> properties = new ArrayList<>(List.of(
                "spring.main.banner-mode=off",
                "spring.jmx.enabled=false",
                "rate-limit.backend=redis",
                "rate-limit.redis.url=redis://127.0.0.1:" + of.port(),
                "rate-limit.redis.timeout=20s",
                "rate-limit.clients.partner.hosts=localhost",
                "rate-limit.clients.partner.policy=reject"));
        properties.addAll(Arrays.asList(more));
        ConfigurableApplicationContext instance = new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.NONE)
                .properties(properties.toArray(String[]::new))
                .run();
        running.push(instance);
        return instance;
    }

    private RestClient client(ConfigurableApplicationContext instance) {
        return instance.getBean(RestClient.Builder.class)
                .baseUrl("http://localhost:" + server.getAddress().getPort())
                .build();
    }

    private static LimitedClient limited(ConfigurableApplicationContext instance) {
        return instance.getBean(LimitedClients.class).all().iterator().next();
    }

    private static void call(RestClient client) {
        client.get().uri("/").retrieve().toBodilessEntity();
    }

    private void callAndBeTold(RestClient client, String pause) {
        retryAfter.set(pause);
        assertThatThrownBy(() -> call(client)).isInstanceOf(RestClientResponseException.class);
        retryAfter.set(null);
    }

    @Test
    void aPauseHoldsForEveryInstanceAndEnds() {
        ConfigurableApplicationContext one = instance(redis);
        ConfigurableApplicationContext other = instance(redis);
        RestClient calling = client(other);
        call(calling);
        long told = System.nanoTime();
        callAndBeTold(client(one), Long.toString(PAUSE.toSeconds()));
        // Or it is over when a busy machine first looks.
        await().pollInterval(Duration.ofMillis(10))
                .atMost(PATIENCE)
                .until(() -> limited(other).pausedKeys() == 1 || System.nanoTime() - told > PAUSE.toNanos());
        int before = arrivals.size();
        await().pollInterval(Duration.ofMillis(10))
                .atMost(PATIENCE)
                .ignoreExceptionsInstanceOf(RateLimitExceededException.class)
                .until(() -> {
                    call(calling);
                    return true;
                });
        assertThat(arrivals).hasSize(before + 1);
        assertThat(System.nanoTime() - told).isGreaterThan(PAUSE.toNanos());
    }

    @Test
    void aPauseOfAKeyHoldsForThatKeyAndForInstancesThatHaveNotUsedItYet() {
        String key = "rate-limit.clients.partner.key=header('X-Account')";
        ConfigurableApplicationContext one = instance(redis, key);
        ConfigurableApplicationContext other = instance(redis, key);
        retryAfter.set("60");
        assertThatThrownBy(() -> client(one)
                        .get()
                        .uri("/")
                        .header("X-Account", "a")
                        .retrieve()
                        .toBodilessEntity())
                .isInstanceOf(RestClientResponseException.class);
        retryAfter.set(null);
        Threads.until(() -> redis.ask(commands -> commands.zcard("rl:{~pauses}")) == 1);
        RestClient calling = client(other);
        calling.get().uri("/").header("X-Account", "b").retrieve().toBodilessEntity();
        Threads.untilAsserted(() -> assertThatThrownBy(() -> calling.get()
                        .uri("/")
                        .header("X-Account", "a")
                        .retrieve()
                        .toBodilessEntity())
                .isInstanceOfSatisfying(
                        RateLimitExceededException.class,
                        refusal -> assertThat(refusal.limit()).isEqualTo("clients.partner")));
        List<String> shared = redis.ask(commands -> commands.zrange("rl:{~pauses}", 0, -1));
        assertThat(shared).containsExactly(CanonicalKey.digest("a") + ":partner");
        long expires = redis.ask(commands -> commands.pttl("rl:{~pauses}"));
        assertThat(expires).isBetween(1L, 61_000L);
    }

    @Test
    void aPauseThatNeverEndsIsBoundedByEveryInstance() {
        ConfigurableApplicationContext instance = instance(redis, "rate-limit.clients.partner.max-pause=1s");
        call(client(instance));
        double end = 1e6 * Long.parseLong(redis.ask(commands -> commands.time().get(0))) + 1e15;
        redis.ask(commands -> commands.zadd("rl:{~pauses}", end, ":partner"));
        Threads.until(() -> limited(instance).pausedKeys() == 1);
        Threads.until(() -> limited(instance).pausedKeys() == 0);
        call(client(instance));
        // It is still in Redis, is read again and again, and does not count again.
        ConfigurableApplicationContext late = instance(redis, "rate-limit.clients.partner.max-pause=1s");
        await().atMost(PATIENCE)
                .ignoreExceptionsInstanceOf(RateLimitExceededException.class)
                .until(() -> {
                    call(client(late));
                    return true;
                });
        call(client(instance));
    }

    @Test
    void withoutRedisAPauseHoldsHereOnlyAndTheLogSaysSoOnce(CapturedOutput output) {
        try (RedisProcess away = RedisProcess.start()) {
            ConfigurableApplicationContext instance =
                    instance(away, "rate-limit.redis.timeout=200ms", "rate-limit.clients.partner.key=uri.path");
            away.kill();
            retryAfter.set("60");
            for (String path : List.of("/a", "/b", "/c")) {
                assertThatThrownBy(() ->
                                client(instance).get().uri(path).retrieve().toBodilessEntity())
                        .isInstanceOf(RestClientResponseException.class);
                assertThatThrownBy(() ->
                                client(instance).get().uri(path).retrieve().toBodilessEntity())
                        .isInstanceOf(RateLimitExceededException.class);
            }
            Threads.until(() -> output.toString().contains("only applies to this instance"));
            assertThat(output.toString().split("only applies to this instance", -1))
                    .hasSize(2);
        }
    }

    @Test
    void beyondThePausesThatAreSharedAPauseHoldsHereOnlyAndTheLogSaysSo(CapturedOutput output) {
        ConfigurableApplicationContext instance = instance(redis, "rate-limit.clients.partner.key=uri.path");
        double end = 1e6 * Long.parseLong(redis.ask(commands -> commands.time().get(0))) + 1e9;
        redis.ask(commands -> {
            for (int i = 0; i < 1_000; i++) {
                commands.zadd("rl:{~pauses}", end, i + ":other");
            }
            return null;
        });
        callAndBeTold(client(instance), "60");
        assertThatThrownBy(() -> call(client(instance))).isInstanceOf(RateLimitExceededException.class);
        Threads.untilAsserted(() -> assertThat(output)
                .contains("The pause of client 'partner' for 1m only applies to this instance,"
                        + " because it could not be shared: instances share at most 1000 pauses at a time"));
    }

    /**
     * At any time at most eight calls are on their way, so that the server may see eight more at once than the instances let
     * go: its burst is as much larger.
     */
    @Test
    void twoInstancesKeepTogetherWithinTheQuotaOfAPartner() throws Exception {
        quota.set(new InMemoryRateLimiter(
                Limit.of("quota", Algorithm.TOKEN_BUCKET).rate("80/s").burst(14).build()));
        String[] properties = {
            "rate-limit.clients.partner.limits=partner",
            "rate-limit.clients.partner.policy=wait",
            "rate-limit.clients.partner.max-wait=60s",
            "rate-limit.limits.partner.rate=80/s",
            "rate-limit.limits.partner.burst=5"
        };
        List<RestClient> clients = List.of(client(instance(redis, properties)), client(instance(redis, properties)));
        AtomicInteger left = new AtomicInteger(160);
        CountDownLatch gate = new CountDownLatch(1);
        List<Future<?>> callers = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            RestClient client = clients.get(i % 2);
            callers.add(threads.submit(() -> {
                gate.await();
                while (left.getAndDecrement() > 0) {
                    call(client);
                }
                return null;
            }));
        }
        gate.countDown();
        for (Future<?> caller : callers) {
            caller.get(2, TimeUnit.MINUTES);
        }
        assertThat(arrivals).hasSize(160);
    }
}
