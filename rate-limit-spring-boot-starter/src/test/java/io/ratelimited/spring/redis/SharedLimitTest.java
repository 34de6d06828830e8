package io.ratelimited.spring.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import io.ratelimited.core.Decision;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Threads;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisHealth;
import io.ratelimited.redis.RedisProcess;
import io.ratelimited.redis.internals.connection.KeyNames;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimitBlockedEvent;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.cloud.context.environment.EnvironmentChangeEvent;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.PayloadApplicationEvent;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.MapPropertySource;
import reactor.core.publisher.Mono;

/** Two applications on one Redis have one budget. */
@Tag("once")
@Tag("slow")
class SharedLimitTest {

    private static RedisProcess server;

    /** Two applications of which nothing but keys of its own is used by a test. */
    private static List<ConfigurableApplicationContext> pair;

    private final List<ConfigurableApplicationContext> started = new ArrayList<>();
    private final List<RedisProcess> servers = new ArrayList<>();

    @BeforeAll
    static void startServer() {
        server = RedisProcess.start();
        pair = List.of(run(), run());
    }

    @AfterAll
    static void stopServer() {
        pair.forEach(ConfigurableApplicationContext::close);
        server.close();
    }

    @BeforeEach
    void empty() {
        server.ask(commands -> commands.flushall());
    }

    @AfterEach
    void close() {
        started.forEach(ConfigurableApplicationContext::close);
        servers.forEach(RedisProcess::close);
    }

    @ParameterizedTest
    @ValueSource(strings = {"blocking", "future", "mono", "code"})
    void whatBothAdmitIsTheLimit(String style) throws Exception {
        assertThat(admitted(pair, style, "ann of " + style)).isEqualTo(5);
        assertThat(admitted(pair, style, "bob of " + style)).isEqualTo(5);
    }

    @Test
    void aLimitInMemoryIsEachApplicationsOwn() throws Exception {
        String memory = "rate-limit.limits.search.backend=memory";
        List<ConfigurableApplicationContext> both = List.of(start(memory), start(memory));

        assertThat(admitted(both, "blocking", "ann")).isEqualTo(10);
    }

    @Test
    void keysBeginWithThePrefix() {
        shop(start("rate-limit.redis.key-prefix=shop")).search("ann");

        assertThat(server.<Long>ask(commands -> commands.exists(
                        new KeyNames("shop").ofLimit("search", "").of("ann") + "~t")))
                .isEqualTo(1);
    }

    @Test
    void severalLimitsOfOneCallAreAllOrNothing() {
        for (int i = 0; i < 6; i++) {
            attempt(() -> shop(pair.get(0)).both("cleo"));
            attempt(() -> shop(pair.get(1)).both("cleo"));
        }

        assertThat(limits(pair.get(0)).peek("search", "cleo").remaining()).isEqualTo(2);
        assertThat(limits(pair.get(1)).peek("daily", null).remaining()).isZero();
    }

    @Test
    void aBlockIsThatOfAllApplicationsAndIsReportedOnce() {
        String[] blocks = {"rate-limit.redis.key-prefix=blocks", "rate-limit.limits.search.block=1h"};
        List<ConfigurableApplicationContext> both = List.of(start(blocks), start(blocks));
        List<RateLimitBlockedEvent> events = new CopyOnWriteArrayList<>();
        both.forEach(context -> context.addApplicationListener(
                (PayloadApplicationEvent<RateLimitBlockedEvent> event) -> events.add(event.getPayload())));
        assertThat(limits(both.get(0)).tryAcquire("search", "ann", 5)).isTrue();
        both.forEach(context -> attempt(() -> shop(context).search("ann")));

        both.forEach(context -> assertThat(limits(context).peek("search", "ann"))
                .satisfies(decision -> {
                    assertThat(decision.blocked()).isTrue();
                    assertThat(decision.retryAfter()).isBetween(Duration.ofMinutes(50), Duration.ofHours(1));
                }));
        // On a thread of its own.
        Threads.until(() -> !events.isEmpty());
        assertThat(events).singleElement().satisfies(event -> {
            assertThat(event.limit()).isEqualTo("search");
            assertThat(event.lasting()).isEqualTo(Duration.ofHours(1));
            assertThat(event.level()).isEqualTo(1);
        });
        assertThat(limits(both.get(1)).tryAcquire("search", "bob")).isTrue();

        limits(both.get(1)).reset("search", "ann");
        assertThat(limits(both.get(1)).tryAcquire("search", "ann")).isTrue();
        Threads.until(() -> limits(both.get(0)).tryAcquire("search", "ann"));
    }

    @Test
    void aChangeKeepsWhatIsSpent() {
        // A change holds for all applications with the same prefix, and outlives an emptied Redis.
        String prefix = "rate-limit.redis.key-prefix=changed";
        List<ConfigurableApplicationContext> both = List.of(start(prefix), start(prefix));
        assertThat(limits(both.get(0)).tryAcquire("search", "ann", 2)).isTrue();
        assertThat(limits(both.get(1)).tryAcquire("search", "ann", 1)).isTrue();

        both.forEach(context -> limits(context).change("search", LimitChange.of("burst", "50")));

        both.forEach(context ->
                assertThat(limits(context).peek("search", "ann").remaining()).isEqualTo(2));
    }

    @Test
    void aChangedConfigurationIsInForce() {
        ConfigurableApplicationContext context = start();
        assertThat(limits(context).tryAcquire("search", "ann", 3)).isTrue();

        context.getEnvironment()
                .getPropertySources()
                .addFirst(new MapPropertySource("changed", Map.of("rate-limit.limits.search.burst", "50")));
        context.publishEvent(new EnvironmentChangeEvent(context, Set.of("rate-limit.limits.search.burst")));

        assertThat(limits(context).limit("search").limit().burst()).isEqualTo(50);
        assertThat(limits(context).peek("search", "ann").remaining()).isEqualTo(2);
    }

    @Test
    void aQuotaIsThatOfAllApplicationsAndLeavesNothingBehind() {
        assertThat(limits(pair.get(0)).tryAcquire("search", "fay", 2)).isTrue();

        assertThat(limits(pair.get(1)).remaining("fay"))
                .extracting(Decision::limit, Decision::remaining, Decision::source)
                .containsExactly(tuple("search", 3L, Decision.Source.REDIS));
        assertThat(limits(pair.get(1)).remaining("gus"))
                .extracting(Decision::remaining)
                .containsExactly(5L);
        // The applications themselves may write a key of their own at any time.
        assertThat(server.<List<String>>ask(commands -> commands.keys("*:search*")))
                .containsExactly(new KeyNames("rl").ofLimit("search", "").of("fay") + "~t");
    }

    @Test
    void aResetReachesTheOther() {
        assertThat(limits(pair.get(0)).tryAcquire("search", "dora", 5)).isTrue();

        limits(pair.get(1)).reset("search", "dora");

        assertThat(limits(pair.get(0)).tryAcquire("search", "dora", 5)).isTrue();
    }

    @Test
    void redisSaysWhoDecides() {
        RateLimiter limiter = limits(pair.get(0)).configured("search").limiter();

        assertThat(limiter.reserve("emil", 5, 0).decision().source()).isEqualTo(Decision.Source.REDIS);
        assertThat(limiter.reserve("emil", 1, 0).decision().source()).isEqualTo(Decision.Source.REDIS);
        assertThat(limiter.reserve("emil", 1, 0).decision().source()).isEqualTo(Decision.Source.DENY_CACHE);
    }

    @Test
    void thePrimaryIsFoundBySentinel() {
        RedisProcess primary = keep(RedisProcess.start());
        RedisProcess sentinel = keep(RedisProcess.sentinel(primary.port(), 1));
        String[] settings = {
            "spring.data.redis.sentinel.master=primary", "spring.data.redis.sentinel.nodes=127.0.0.1:" + sentinel.port()
        };

        assertDecidedByRedis(start(settings), start(settings));
        assertThat(primary.<Long>ask(commands ->
                        commands.exists(new KeyNames("rl").ofLimit("search", "").of("ann") + "~t")))
                .isEqualTo(1);
    }

    @Test
    void aClusterIsUsed() {
        RedisProcess node = keep(RedisProcess.start("--cluster-enabled", "yes"));
        node.ask(commands -> commands.clusterAddSlots(IntStream.range(0, 16_384).toArray()));
        Threads.until(() -> node.ask(commands -> commands.clusterInfo()).contains("cluster_state:ok"));
        String nodes = "spring.data.redis.cluster.nodes=127.0.0.1:" + node.port();

        assertDecidedByRedis(start(nodes), start(nodes));
    }

    /** A budget of five is one for all of the applications, and Redis has it. */
    private static void assertDecidedByRedis(ConfigurableApplicationContext... all) {
        for (ConfigurableApplicationContext context : all) {
            Decision decision = limits(context)
                    .configured("search")
                    .limiter()
                    .reserve("ann", 1, 0)
                    .decision();
            assertThat(decision.source()).isEqualTo(Decision.Source.REDIS);
            assertThat(decision.admitted()).isTrue();
        }
        assertThat(limits(all[0]).peek("search", "ann").remaining()).isEqualTo(5 - all.length);
    }

    /** How many of many calls at once the applications admit. */
    private static int admitted(List<ConfigurableApplicationContext> all, String style, String user) throws Exception {
        int callers = 4;
        int calls = 20;
        ExecutorService threads = Executors.newFixedThreadPool(callers);
        CountDownLatch gate = new CountDownLatch(1);
        try {
            List<Future<Integer>> counts = new ArrayList<>();
            for (int caller = 0; caller < callers; caller++) {
                ConfigurableApplicationContext context = all.get(caller % all.size());
                counts.add(threads.submit(() -> {
                    gate.await();
                    int admitted = 0;
                    for (int i = 0; i < calls; i++) {
                        admitted += attempt(() -> call(context, style, user)) ? 1 : 0;
                    }
                    return admitted;
                }));
            }
            gate.countDown();
            int sum = 0;
            for (Future<Integer> count : counts) {
                sum += count.get();
            }
            return sum;
        } finally {
            threads.shutdownNow();
        }
    }

    private static Object call(ConfigurableApplicationContext context, String style, String user) throws Exception {
        Shop shop = shop(context);
        return switch (style) {
            case "blocking" -> shop.search(user);
            case "future" -> shop.later(user).get();
            case "mono" -> shop.reactive(user).block();
            default -> limits(context).execute("search", user, () -> user);
        };
    }

    private static boolean attempt(Callable<?> call) {
        try {
            call.call();
            return true;
        } catch (RateLimitExceededException refusal) {
            return false;
        } catch (ExecutionException ex) {
            assertThat(ex).hasCauseInstanceOf(RateLimitExceededException.class);
            return false;
        } catch (Exception ex) {
            throw new AssertionError(ex);
        }
    }

    /** An application with a limit of five an hour; it waits long for Redis, so that a slow machine is no outage. */
    private ConfigurableApplicationContext start(String... more) {
        ConfigurableApplicationContext context = run(more);
        started.add(context);
        return context;
    }

    private static ConfigurableApplicationContext run(String... more) {
        ConfigurableApplicationContext context = new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.NONE)
                .properties(
                        "spring.main.banner-mode=off",
                        "spring.data.redis.port=" + server.port(),
                        "rate-limit.backend=redis",
                        "rate-limit.redis.timeout=20s",
                        "rate-limit.limits.search.rate=5/h",
                        "rate-limit.limits.search.key=#user",
                        "rate-limit.limits.daily.rate=3/d")
                .properties(more)
                .run();
        Threads.until(() -> context.getBean(RedisBackend.class).health().state() == RedisHealth.State.UP);
        return context;
    }

    private RedisProcess keep(RedisProcess process) {
        servers.add(process);
        return process;
    }

    private static TestLimits limits(ConfigurableApplicationContext context) {
        return TestLimits.of(context);
    }

    private static Shop shop(ConfigurableApplicationContext context) {
        return context.getBean(Shop.class);
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {

        @Bean
        Shop shop() {
            return new Shop();
        }
    }

    static class Shop {

        @RateLimited("search")
        public String search(String user) {
            return user;
        }

        @RateLimited("search")
        public CompletableFuture<String> later(String user) {
            return CompletableFuture.completedFuture(user);
        }

        @RateLimited("search")
        public Mono<String> reactive(String user) {
            return Mono.just(user);
        }

        @RateLimited("search")
        @RateLimited("daily")
        public String both(String user) {
            return user;
        }
    }
}
