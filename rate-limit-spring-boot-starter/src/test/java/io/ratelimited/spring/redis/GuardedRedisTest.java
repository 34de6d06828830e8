package io.ratelimited.spring.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Threads;
import io.ratelimited.redis.Certificate;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisHealth;
import io.ratelimited.redis.RedisHealth.State;
import io.ratelimited.redis.RedisProcess;
import io.ratelimited.redis.RedisUnavailableException;
import io.ratelimited.redis.internals.connection.KeyNames;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.RateLimitDecision;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Servers that want a password or TLS: limits have what the application's settings say, and tell what they lack. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class GuardedRedisTest {

    /** What Lettuce says of an attempt whose connection the server has closed before Lettuce asks it for its handshake. */
    private static final String CLOSED_FIRST = "RedisHandshakeHandler not registered";

    private static RedisProcess server;

    private final List<AutoCloseable> opened = new ArrayList<>();

    @BeforeAll
    static void startServer() {
        server = RedisProcess.start("--requirepass", "admin");
    }

    @AfterAll
    static void stopServer() {
        server.close();
    }

    @BeforeEach
    void empty() throws IOException {
        server.ask(commands -> commands.flushall());
        acl(server, "setuser limits reset");
        acl(server, rightsOfThePage());
    }

    @AfterEach
    void close() throws Exception {
        for (int i = opened.size() - 1; i >= 0; i--) {
            opened.get(i).close();
        }
    }

    @Tag("proof")
    @Test
    void aPasswordIsUsed() {
        assertDecidedByRedis(
                start("spring.data.redis.port=" + server.port(), "spring.data.redis.password=admin"), server);
    }

    /** Redis 6.2 also asks for the right to choose a database. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theRightsOfThePageAreEnough(boolean embedded) throws IOException {
        RedisProcess chosen = keep(embedded ? RedisProcess.startEmbedded() : RedisProcess.start());
        acl(chosen, rightsOfThePage());
        chosen.ask(commands -> commands.select(1));
        List<String> settings = new ArrayList<>(List.of(asUser(chosen, "limits", "secret")));
        settings.add("spring.data.redis.database=1");
        for (Algorithm algorithm : Algorithm.all()) {
            if (algorithm.findsItsLimit()) {
                continue;
            }
            String limit = "rate-limit.limits." + algorithm;
            settings.add(limit + ".algorithm=" + algorithm);
            if (algorithm == Algorithm.CONCURRENCY) {
                settings.add(limit + ".max-concurrent=5");
            } else {
                settings.add(limit + ".rate=5/h");
            }
            if (algorithm == Algorithm.WARM_UP) {
                settings.add(limit + ".warmup=10s");
            }
        }
        ConfigurableApplicationContext context = start(settings.toArray(String[]::new));

        assertDecidedByRedis(context, chosen);
        TestLimits limits = TestLimits.of(context);
        for (Algorithm algorithm : Algorithm.all()) {
            if (algorithm.findsItsLimit()) {
                continue;
            }
            String limit = algorithm.name();
            assertThat(limits.configured(limit)
                            .limiter()
                            .reserve("bob", 1, 0)
                            .decision()
                            .source())
                    .as(limit)
                    .isEqualTo(Source.REDIS);
            limits.reset(limit, "bob");
        }
        assertThat(health(context).errors()).isZero();
    }

    @Tag("proof")
    @ParameterizedTest
    @CsvSource({"limits, wrong, WRONGPASS", "nobody, secret, WRONGPASS", "'', wrong, WRONGPASS", "'', '', NOAUTH"})
    void withoutTheRightPasswordOnFailureDecidesAndTheReasonIsTold(
            String user, String password, String reason, CapturedOutput output) {
        ConfigurableApplicationContext context = start(asUser(user, password));

        assertDecidedByOnFailure(context, reason, output);
    }

    @Test
    void aPasswordThatIsMadeRightIsEnoughToBeDecidedByRedis(CapturedOutput output) {
        ConfigurableApplicationContext context = start(asUser("limits", "new"));
        assertDecidedByOnFailure(context, "WRONGPASS", output);

        acl(server, "setuser limits >new");

        Threads.until(() -> health(context).state() == State.UP);
        assertDecidedByRedis(context, server);
        assertThat(output).contains("Redis is available: connected");
    }

    @Test
    void aRightThatIsMissingIsTold(CapturedOutput output) {
        acl(server, "setuser limits -evalsha");
        ConfigurableApplicationContext context = start(asUser("limits", "secret"));

        Threads.until(() -> {
            attempt(context.getBean(Shop.class));
            return health(context).state() == State.DOWN;
        });

        context.getBean(Decisions.class).sources.clear();
        assertDecidedByOnFailure(context, "NOPERM", output);
    }

    @Tag("proof")
    @Test
    void sentinelsAndTheirPrimaryMayHavePasswordsOfTheirOwn() {
        String[] settings = sentinel("watch");

        assertDecidedByRedis(start(settings), server);
    }

    @Tag("proof")
    @Test
    void aWrongPasswordOfSentinelIsTold(CapturedOutput output) {
        assertDecidedByOnFailure(start(sentinel("wrong")), "WRONGPASS", output);
    }

    /** @param password what the application says to Sentinel */
    private String[] sentinel(String password) {
        RedisProcess sentinel =
                keep(RedisProcess.sentinel(server.port(), 1, "requirepass watch", "sentinel auth-pass primary admin"));
        return new String[] {
            "spring.data.redis.sentinel.master=primary",
            "spring.data.redis.sentinel.nodes=127.0.0.1:" + sentinel.port(),
            "spring.data.redis.sentinel.password=" + password,
            "spring.data.redis.username=limits",
            "spring.data.redis.password=secret"
        };
    }

    @Tag("proof")
    @Test
    void aClusterMayHaveUsers(CapturedOutput output) throws IOException {
        RedisProcess node = keep(RedisProcess.start("--cluster-enabled", "yes", "--requirepass", "admin"));
        form(node);
        acl(node, rightsOfThePage() + " +cluster|nodes +info");
        String nodes = "spring.data.redis.cluster.nodes=127.0.0.1:" + node.port();

        assertDecidedByRedis(
                start(nodes, "spring.data.redis.username=limits", "spring.data.redis.password=secret"), node);
        assertDecidedByOnFailure(
                start(nodes, "spring.data.redis.username=limits", "spring.data.redis.password=wrong"),
                "WRONGPASS",
                output);
    }

    /** What the page on clusters tells to let limits do. */
    private static String rightsOfThePage() throws IOException {
        Matcher rights = Pattern.compile("ACL (SETUSER limits [^`]+)`")
                .matcher(Files.readString(Path.of("..", "docs", "cluster.md")));
        assertThat(rights.find()).isTrue();
        return rights.group(1);
    }

    @Nested
    @EnabledIf(
            value = "io.ratelimited.redis.RedisProcess#speaksTls",
            disabledReason = "the redis-server of the tests is built without TLS")
    class Tls {

        private static Certificate trusted;

        @BeforeAll
        static void certificate(@TempDir Path directory) {
            trusted = Certificate.selfSigned(directory);
        }

        @Test
        void aServerWhoseCertificateTheBundleTrustsIsUsed() {
            RedisProcess tls = keep(RedisProcess.startTls(trusted, "--requirepass", "admin"));

            assertDecidedByRedis(start(settings(tls, trusted)), tls);
        }

        @Tag("proof")
        @Test
        void aServerWhoseCertificateTheBundleDoesNotTrustDecidesNothing(
                @TempDir Path directory, CapturedOutput output) {
            RedisProcess tls = keep(RedisProcess.startTls(Certificate.selfSigned(directory), "--requirepass", "admin"));

            assertDecidedByOnFailure(start(settings(tls, trusted)), "PKIX path", output);
        }

        @Tag("proof")
        @Test
        void aClusterIsUsed() {
            RedisProcess tls =
                    keep(RedisProcess.startTls(trusted, "--requirepass", "admin", "--cluster-enabled", "yes"));
            form(tls);

            assertDecidedByRedis(
                    start(settings(tls, trusted, "spring.data.redis.cluster.nodes=127.0.0.1:" + tls.port())), tls);
        }

        private static String[] settings(RedisProcess tls, Certificate trusted, String... more) {
            List<String> settings = new ArrayList<>(List.of(more));
            settings.add("spring.data.redis.port=" + tls.port());
            settings.add("spring.data.redis.password=admin");
            settings.add("spring.data.redis.ssl.bundle=limits");
            settings.add("spring.ssl.bundle.pem.limits.truststore.certificate="
                    + trusted.certificate().toUri());
            return settings.toArray(String[]::new);
        }
    }

    private static String[] asUser(String user, String password) {
        return asUser(server, user, password);
    }

    private static String[] asUser(RedisProcess of, String user, String password) {
        return new String[] {
            "spring.data.redis.port=" + of.port(),
            "spring.data.redis.username=" + user,
            "spring.data.redis.password=" + password
        };
    }

    private static void acl(RedisProcess to, String words) {
        CommandArgs<String, String> args = new CommandArgs<>(StringCodec.UTF8);
        for (String word : words.split(" ", -1)) {
            args.add(word);
        }
        to.ask(commands -> commands.dispatch(CommandType.ACL, new StatusOutput<>(StringCodec.UTF8), args));
    }

    private static void form(RedisProcess node) {
        node.ask(commands -> commands.clusterAddSlots(IntStream.range(0, 16_384).toArray()));
        Threads.until(() -> node.ask(commands -> commands.clusterInfo()).contains("cluster_state:ok"));
    }

    private static void assertDecidedByRedis(ConfigurableApplicationContext context, RedisProcess by) {
        Threads.until(() -> health(context).state() == State.UP);
        Decisions decisions = context.getBean(Decisions.class);
        decisions.sources.clear();
        Shop shop = context.getBean(Shop.class);

        assertThat(IntStream.range(0, 6).filter(i -> attempt(shop)).count()).isEqualTo(5);
        assertThat(decisions.sources).hasSize(6).containsOnly(Source.REDIS);
        assertThat(by.<Long>ask(commands ->
                        commands.exists(new KeyNames("rl").ofLimit("search", "").of("ann") + "~t")))
                .isEqualTo(1);
    }

    private static boolean attempt(Shop shop) {
        return attempt(shop, "ann");
    }

    private static boolean attempt(Shop shop, String user) {
        try {
            shop.search(user);
            return true;
        } catch (RateLimitExceededException refusal) {
            return false;
        }
    }

    private static void assertDecidedByOnFailure(
            ConfigurableApplicationContext context, String reason, CapturedOutput output) {
        Threads.until(() -> health(context).lastError() != null);
        Decisions decisions = context.getBean(Decisions.class);
        Shop shop = context.getBean(Shop.class);

        assertThat(IntStream.range(0, 10).filter(i -> attempt(shop, "bob")).count())
                .isEqualTo(5);
        assertThatThrownBy(shop::login).isInstanceOf(RateLimitExceededException.class);
        assertThat(decisions.sources).hasSize(11).containsOnly(Source.FALLBACK, Source.UNAVAILABLE);
        assertThatThrownBy(shop::audit).isInstanceOf(RedisUnavailableException.class);

        HealthIndicator indicator = context.getBean("rateLimitHealthIndicator", HealthIndicator.class);
        Threads.untilAsserted(() -> {
            Health health = indicator.health();
            assertThat(health.getStatus()).isEqualTo(RateLimitHealthIndicator.DEGRADED);
            assertThat(health.getDetails().get("lastError")).asString().contains(reason);
        });
        assertThat(output.getAll().lines().filter(line -> line.contains("The on-failure policy applies")))
                .singleElement()
                .asString()
                .contains("WARN")
                .containsAnyOf(reason, CLOSED_FIRST);
    }

    /** An application that waits long for Redis, so that a slow machine is no outage. */
    private ConfigurableApplicationContext start(String... settings) {
        return keep(new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.NONE)
                .properties(
                        "spring.main.banner-mode=off",
                        "rate-limit.backend=redis",
                        "rate-limit.redis.timeout=20s",
                        "rate-limit.redis.expected-nodes=1",
                        "rate-limit.limits.search.rate=5/h",
                        "rate-limit.limits.login.rate=5/h",
                        "rate-limit.limits.login.on-failure=deny",
                        "rate-limit.limits.audit.rate=5/h",
                        "rate-limit.limits.audit.on-failure=throw")
                .properties(settings)
                .run());
    }

    /** Closed after the test, last first. */
    private <T extends AutoCloseable> T keep(T resource) {
        opened.add(resource);
        return resource;
    }

    private static RedisHealth health(ConfigurableApplicationContext context) {
        return context.getBean(RedisBackend.class).health();
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {

        @Bean
        Shop shop() {
            return new Shop();
        }

        @Bean
        Decisions decisions() {
            return new Decisions();
        }
    }

    static class Shop {

        @RateLimited(name = "search", key = "#user")
        public String search(String user) {
            return user;
        }

        @RateLimited("login")
        public String login() {
            return "in";
        }

        @RateLimited("audit")
        public String audit() {
            return "fine";
        }
    }

    /** Who decided, of each call that was decided. */
    static class Decisions implements DecisionObserver {

        final Queue<Source> sources = new ConcurrentLinkedQueue<>();

        @Override
        public void onDecision(RateLimitDecision decision) {
            sources.add(decision.decision().source());
        }
    }
}
