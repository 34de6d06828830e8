package io.ratelimited.spring.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SslOptions;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.resource.ClientResources;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.redis.OnFailure;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisBackendOptions;
import io.ratelimited.redis.RedisClientSettings;
import io.ratelimited.redis.RedisProcess;
import io.ratelimited.redis.internals.connection.KeyNames;
import io.ratelimited.redis.internals.limiter.RedisRateLimiter;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.RateLimitProperties;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import io.ratelimited.spring.internals.limit.LimitProperty;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.autoconfigure.ssl.SslAutoConfiguration;
import org.springframework.boot.data.redis.autoconfigure.DataRedisAutoConfiguration;
import org.springframework.boot.data.redis.autoconfigure.LettuceClientConfigurationBuilderCustomizer;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.env.YamlPropertySourceLoader;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.assertj.AssertableApplicationContext;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.core.env.PropertySource;
import org.springframework.core.io.ByteArrayResource;
import org.springframework.data.redis.connection.RedisConfiguration;
import org.springframework.data.redis.connection.RedisSentinelConfiguration;
import org.springframework.data.redis.connection.RedisSocketConfiguration;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.test.util.ReflectionTestUtils;

/** Limits on Redis are wired when a property asks for them, with the application's parts where it has its own. */
@Tag("spring-boot")
@Tag("slow")
class RedisWiringTest {

    private static RedisProcess server;

    private final ApplicationContextRunner withoutData = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(
                    AopAutoConfiguration.class,
                    RateLimitAutoConfiguration.class,
                    RedisRateLimitAutoConfiguration.class,
                    RedisRateLimitHealthAutoConfiguration.class))
            .withPropertyValues("spring.data.redis.port=" + server.port());

    private final ApplicationContextRunner runner = withoutData.withConfiguration(
            AutoConfigurations.of(SslAutoConfiguration.class, DataRedisAutoConfiguration.class));

    @BeforeAll
    static void start() {
        server = RedisProcess.start();
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @Test
    void whereNoPropertySaysRedisNothingOfItIsThere() {
        runner.withPropertyValues("rate-limit.limits.search.rate=5/h")
                .run(context -> assertThat(context)
                        .hasNotFailed()
                        .doesNotHaveBean(RedisBackend.class)
                        .doesNotHaveBean(LimitsClient.class)
                        .doesNotHaveBean("rateLimitHealthIndicator"));
    }

    @Test
    void whereNothingIsLimitedNothingOfItIsThere() {
        runner.withPropertyValues("rate-limit.enabled=false", "rate-limit.backend=redis")
                .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(RedisBackend.class));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "rate-limit.backend=redis",
                "rate-limit.defaults.backend=REDIS",
                "rate-limit.limits.search.backend=redis"
            })
    void aLimitIsOnRedisWhereAPropertySaysSo(String property) {
        runner.withPropertyValues("rate-limit.limits.search.rate=5/h", property)
                .run(context -> assertThat(context)
                        .hasNotFailed()
                        .hasBean("rateLimitHealthIndicator")
                        .getBean(LimitRegistry.class)
                        .extracting(limits -> limits.get("search").limiter())
                        .isInstanceOf(RedisRateLimiter.class));
    }

    @Test
    void aLimitStaysInMemoryWhereItsPropertySaysSo() {
        runner.withPropertyValues(
                        "rate-limit.backend=redis",
                        "rate-limit.limits.search.rate=5/h",
                        "rate-limit.limits.search.backend=memory")
                .run(context -> {
                    assertThat(limiter(context)).isInstanceOf(InMemoryRateLimiter.class);
                    assertThat(context.getBeanFactory().containsSingleton("io.ratelimited.rateLimitRedisBackend"))
                            .isFalse();
                });
    }

    @Test
    void aTierIsWhereItsLimitIs() {
        runner.withPropertyValues(
                        "rate-limit.backend=redis",
                        "rate-limit.limits.search.rate=5/h",
                        "rate-limit.limits.search.tier='gold'",
                        "rate-limit.limits.search.tiers.gold.rate=50/h",
                        "rate-limit.limits.search.tiers.gold.on-failure=allow")
                .run(context -> assertThat(
                                TestLimits.of(context).configured("search").limiterOfTier("gold", null))
                        .isInstanceOf(RedisRateLimiter.class));
    }

    private RedisURI uri() {
        return RedisURI.create("127.0.0.1", server.port());
    }

    @Test
    void anAddressOfTheApplicationIsUsedWithItsResourcesAndOptions() {
        ClientResources resources = ClientResources.create();
        try {
            runner.withBean(RedisURI.class, this::uri)
                    .withBean(ClientResources.class, () -> resources, definition -> definition.setDestroyMethodName(""))
                    .withBean(
                            ClientOptions.class,
                            () -> ClientOptions.builder().requestQueueSize(77).build())
                    .withPropertyValues("rate-limit.backend=redis", "rate-limit.limits.search.rate=5/h")
                    .run(context -> {
                        assertThat(limiter(context).tryAcquire("ann", 1)).isTrue();
                        RedisClientSettings settings =
                                context.getBean(LimitsClient.class).settings();
                        assertThat(settings.resources()).isSameAs(resources);
                        assertThat(settings.options().getRequestQueueSize()).isEqualTo(77);
                    });
            assertThat(resources.eventExecutorGroup().isShuttingDown()).isFalse();
        } finally {
            resources.shutdown();
        }
    }

    @Test
    void severalAddressesOfTheApplicationAreOfACluster() {
        runner.withBean("one", RedisURI.class, this::uri)
                .withBean("two", RedisURI.class, this::uri)
                .withPropertyValues("rate-limit.backend=redis", "rate-limit.limits.search.rate=5/h")
                .run(context -> assertThat(
                                context.getBean(LimitsClient.class).settings().options())
                        .isInstanceOf(ClusterClientOptions.class));
    }

    @Test
    void aClientOfTheApplicationDoesNotTellItsAddress() {
        withoutData
                .withClassLoader(new FilteredClassLoader("org.springframework.data", "org.springframework.boot.data"))
                .withBean(RedisClient.class, () -> RedisClient.create(uri()))
                .withPropertyValues("rate-limit.backend=redis", "rate-limit.limits.search.rate=5/h")
                .run(context ->
                        assertRefused(context, "no address of Redis is configured", "io.lettuce.core.RedisURI"));
    }

    @Test
    void withoutSpringDataAnAddressOfTheApplicationIsEnough() {
        withoutData
                .withClassLoader(new FilteredClassLoader("org.springframework.data", "org.springframework.boot.data"))
                .withBean(RedisURI.class, this::uri)
                .withPropertyValues("rate-limit.backend=redis", "rate-limit.limits.search.rate=5/h")
                .run(context -> {
                    assertThat(limiter(context).tryAcquire("bob", 1)).isTrue();
                    assertThat(server.<Long>ask(commands -> commands.exists(
                                    new KeyNames("rl").ofLimit("search", "").of("bob") + "~t")))
                            .isEqualTo(1);
                });
    }

    /** The options of an application may be for both. */
    @ParameterizedTest
    @CsvSource({"1, false", "1, true", "2, false", "2, true"})
    void theNumberOfAddressesOfTheApplicationSaysWhetherThereIsACluster(int addresses, boolean forCluster) {
        ClusterClientOptions ofCluster =
                ClusterClientOptions.builder().requestQueueSize(77).build();
        ClientOptions options = forCluster ? ofCluster : ClientOptions.copyOf(ofCluster);
        ApplicationContextRunner application = runner.withBean(ClientOptions.class, () -> options)
                .withPropertyValues("rate-limit.backend=redis", "rate-limit.limits.search.rate=5/h");
        for (int i = 0; i < addresses; i++) {
            application = application.withBean("address" + i, RedisURI.class, this::uri);
        }
        application.run(context -> {
            assertThat(context).hasNotFailed();
            ClientOptions used = context.getBean(LimitsClient.class).settings().options();
            assertThat(used instanceof ClusterClientOptions).isEqualTo(addresses > 1);
            assertThat(used.getRequestQueueSize()).isEqualTo(77);
        });
    }

    @Test
    void theUrlGoesBeforeWhatTheApplicationConnectsWith() {
        runner.withBean(RedisURI.class, () -> RedisURI.create("127.0.0.1", 1))
                .withPropertyValues(
                        "rate-limit.backend=redis",
                        "rate-limit.redis.url=redis://127.0.0.1:" + server.port() + "/1",
                        "rate-limit.limits.search.rate=5/h")
                .run(context -> {
                    assertThat(limiter(context).tryAcquire("dan", 1)).isTrue();
                    assertThat(server.<String>ask(commands -> commands.info("keyspace")))
                            .contains("db1:");
                });
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "redis://127.0.0.1:6379/2 | false",
                "rediss://me:secret@127.0.0.1 | false",
                "redis-sentinel://127.0.0.1,127.0.0.2/0#primary | false",
                "redis://me:secret@127.0.0.1:7000,127.0.0.2:7000 | true",
                "rediss://127.0.0.1,127.0.0.2 | true"
            })
    void theUrlSaysWhetherThereIsACluster(String url, boolean cluster) {
        LimitsClient client = RedisUrl.client(url);
        client.destroy();
        assertThat(client.settings().options() instanceof ClusterClientOptions).isEqualTo(cluster);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "127.0.0.1:6379",
                "http://me:secret@127.0.0.1",
                "redis://me:sec ret@127.0.0.1",
                "redis:",
                "secret@127.0.0.1",
                ":secret@127.0.0.1:6379",
                "redis://:se@cr#secret@127.0.0.1",
                "redis://:secret",
                "redis://me:1234secret",
                "redis:secret"
            })
    void aUrlThatIsNoneOfRedisFailsTheStartWithoutItsPassword(String url) {
        withoutData
                .withPropertyValues(
                        "rate-limit.backend=redis", "rate-limit.limits.search.rate=5/h", "rate-limit.redis.url=" + url)
                .run(context -> {
                    assertRefused(context, "Property rate-limit.redis.url is ", "redis://host:6379");
                    for (Throwable at = context.getStartupFailure(); at != null; at = at.getCause()) {
                        assertThat(at.toString()).doesNotContain("secret", "sec ret");
                    }
                });
    }

    @ParameterizedTest
    @ValueSource(strings = {"memory", "redis"})
    void aTierHasBudgetsOfItsOwn(String backend) {
        runner.withPropertyValues(
                        "rate-limit.backend=" + backend,
                        "rate-limit.redis.timeout=20s",
                        "rate-limit.limits.tiered.rate=5/h",
                        "rate-limit.limits.tiered.tier='gold'",
                        "rate-limit.limits.tiered.tiers.gold.rate=50/h")
                .run(context -> {
                    ConfiguredLimit limit = TestLimits.of(context).configured("tiered");
                    RateLimiter gold = limit.limitersOfTiers().get("gold");
                    for (String key : new String[] {null, "cid"}) {
                        assertThat(limit.limiter().tryAcquire(key, 5)).isTrue();
                        assertThat(gold.peek(key, 1, 0).remaining()).isEqualTo(50);
                        assertThat(gold.tryAcquire(key, 20)).isTrue();
                        assertThat(limit.limiter().peek(key, 1, 0).remaining()).isZero();
                        gold.reset(key);
                    }
                });
    }

    @Test
    void scriptsAreToldTheTimeByWhomAPropertySays() {
        runner.withPropertyValues(
                        "rate-limit.backend=redis",
                        "rate-limit.redis.time-source=node",
                        "rate-limit.limits.search.rate=5/h")
                .run(context -> assertThat(context.getBean(RedisBackend.class))
                        .extracting("options.timeSource")
                        .isEqualTo(RedisBackendOptions.TimeSource.NODE));
    }

    @Test
    void aBackendOfTheApplicationIsUsed() {
        ClientResources resources = ClientResources.create();
        runner.withBean("resources", ClientResources.class, () -> resources)
                .withBean(
                        "own",
                        RedisBackend.class,
                        () -> RedisBackend.of(
                                new RedisClientSettings(resources, ClientOptions.create(), List.of(uri())),
                                RedisBackendOptions.DEFAULTS.keyPrefix("own").timeout(Duration.ofSeconds(20))))
                .withPropertyValues("rate-limit.backend=redis", "rate-limit.limits.search.rate=5/h")
                .run(context -> {
                    assertThat(context).getBeanNames(RedisBackend.class).containsExactly("own");
                    limiter(context).tryAcquire("cid", 1);
                    assertThat(server.<Long>ask(commands -> commands.exists(
                                    new KeyNames("own").ofLimit("search", "").of("cid") + "~t")))
                            .isEqualTo(1);
                });
    }

    @Test
    void aLimiterFactoryOfTheApplicationLeavesNothingOfOursBehind() {
        LimiterFactory own = new LimiterFactory() {
            @Override
            public String backend() {
                return "redis";
            }

            @Override
            public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
                return new InMemoryRateLimiter(limit);
            }
        };
        withoutData
                .withBean("own", LimiterFactory.class, () -> own)
                .withPropertyValues("rate-limit.backend=redis", "rate-limit.limits.search.rate=5/h")
                .run(context -> {
                    assertThat(limiter(context)).isInstanceOf(InMemoryRateLimiter.class);
                    assertThat(context.getBeanFactory().containsSingleton("io.ratelimited.rateLimitRedisClient"))
                            .isFalse();
                });
    }

    @Test
    void aLimitThatTheFactoryCannotMakeIsExplained() {
        LimiterFactory own = new LimiterFactory() {
            @Override
            public String backend() {
                return "redis";
            }

            @Override
            public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
                throw new IllegalArgumentException("rate is too high for this backend: " + limit.rate());
            }
        };
        withoutData
                .withBean("own", LimiterFactory.class, () -> own)
                .withPropertyValues("rate-limit.backend=redis", "rate-limit.limits.search.rate=5/h")
                .run(context -> assertRefused(
                        context,
                        "Rate limit 'search' is invalid: rate is too high for this backend: 5/h. Origin: rate-limit.limits.search.",
                        "another backend"));
    }

    @Test
    void withoutTheModuleTheStartFails() {
        runner.withClassLoader(new FilteredClassLoader("io.ratelimited.redis"))
                .withPropertyValues("rate-limit.backend=redis")
                .run(context -> assertRefused(
                        context,
                        "Property rate-limit.backend is redis, but the module rate-limit-redis is not on the class"
                                + " path",
                        "io.ratelimited:rate-limit-redis"));
    }

    @Test
    void withoutTheModuleALimitOnRedisFailsTheStart() {
        runner.withClassLoader(new FilteredClassLoader("io.ratelimited.redis"))
                .withPropertyValues("rate-limit.limits.search.rate=5/h", "rate-limit.limits.search.backend=redis")
                .run(context -> assertRefused(
                        context,
                        "Rate limit 'search' is invalid: backend is redis, but the module" + " rate-limit-redis",
                        "set backend: memory"));
    }

    @Test
    void withoutLettuceTheStartFails() {
        withoutData
                .withClassLoader(new FilteredClassLoader("io.lettuce", "org.springframework.data"))
                .withPropertyValues("rate-limit.backend=redis")
                .run(context -> assertRefused(
                        context,
                        "Property rate-limit.backend is redis, but its client Lettuce (io.lettuce:lettuce-core)",
                        "set rate-limit.redis.url"));
    }

    @Test
    void withoutSpringDataAndWithoutAClientTheStartFails() {
        withoutData
                .withClassLoader(new FilteredClassLoader("org.springframework.data", "org.springframework.boot.data"))
                .withPropertyValues("rate-limit.backend=redis", "rate-limit.limits.search.rate=5/h")
                .run(context -> assertRefused(
                        context,
                        "A property sets backend: redis, but no address of Redis is configured",
                        "Set rate-limit.redis.url"));
    }

    @Test
    void withoutAConnectionFactoryOfLettuceTheStartFails() {
        withoutData
                .withPropertyValues("rate-limit.backend=redis", "rate-limit.limits.search.rate=5/h")
                .run(context -> assertRefused(
                        context,
                        "A property sets backend: redis, but there is no Lettuce connection factory",
                        "spring.data.redis.client-type"));
    }

    @Test
    void aListOfAPrimaryAndReplicasFailsTheStart() {
        runner.withPropertyValues(
                        "rate-limit.backend=redis",
                        "rate-limit.limits.search.rate=5/h",
                        "spring.data.redis.masterreplica.nodes=one:6379,two:6379")
                .run(context -> assertRefused(
                        context,
                        "Property spring.data.redis.masterreplica.nodes is one:6379,two:6379",
                        "spring.data.redis.sentinel"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "rate-limit.redis.timeout=0ms | rate-limit.redis.timeout is 0s, but must be from 1ms to 1m",
                "rate-limit.redis.timeout=2m | rate-limit.redis.timeout is 2m, but must be from 1ms to 1m",
                "rate-limit.redis.expected-nodes=0 | rate-limit.redis.expected-nodes is 0, but must be at least 1",
                "rate-limit.redis.key-prefix= | rate-limit.redis.key-prefix is",
                "rate-limit.limits.search.max-overshoot=101% | maxOvershoot is \"101%\", but must be from 0% to 100%",
                "rate-limit.limits.search.algorithm=sliding-log | maxOvershoot is 5%, but SLIDING_LOG is"
                        + " always exact and does not support it",
                "rate-limit.limits.search.backend=memory | maxOvershoot is 5%, but backend memory does not support it",
            })
    void whatCannotBeMeantFailsTheStart(String property, String told) {
        runner.withPropertyValues(
                        "rate-limit.backend=redis",
                        "rate-limit.limits.search.rate=5/h",
                        "rate-limit.limits.search.max-overshoot=5%",
                        property)
                .run(context -> assertRefused(context, told, ""));
    }

    @Test
    void anAlgorithmThatIsAlwaysExactNamesThoseThatAreNot() {
        runner.withPropertyValues(
                        "rate-limit.backend=redis",
                        "rate-limit.limits.search.rate=5/h",
                        "rate-limit.limits.search.algorithm=leaky-bucket",
                        "rate-limit.limits.search.max-overshoot=5%")
                .run(context -> assertRefused(
                        context,
                        "maxOvershoot is 5%, but LEAKY_BUCKET is always exact and does not support it",
                        "use one of TOKEN_BUCKET, GCRA, FIXED_WINDOW, SLIDING_WINDOW."));
    }

    @Test
    void whatDecidesWithoutRedisHasNoMeaningForALimitInMemory() {
        runner.withPropertyValues(
                        "rate-limit.limits.search.rate=5/h",
                        "rate-limit.limits.search.backend=memory",
                        "rate-limit.limits.search.on-failure=deny")
                .run(context -> assertRefused(
                        context,
                        "Rate limit 'search' is invalid: onFailure is deny, but backend"
                                + " memory does not support it",
                        "set backend to redis"));
    }

    /** So that one configuration runs on a developer's machine in memory, and on Redis elsewhere. */
    @Test
    void aLimitMaySayWhatItIsOnRedisWhileAllAreInMemory() {
        runner.withPropertyValues(
                        "rate-limit.limits.search.rate=5/h",
                        "rate-limit.limits.search.on-failure=deny",
                        "rate-limit.limits.search.max-overshoot=5%")
                .run(context -> assertThat(limiter(context)).isInstanceOf(InMemoryRateLimiter.class));
    }

    @Test
    void aDefaultOvershootIsForTheLimitsThatCanHaveOne() {
        runner.withPropertyValues(
                        "rate-limit.backend=redis",
                        "rate-limit.defaults.max-overshoot=5%",
                        "rate-limit.limits.search.rate=5/h",
                        "rate-limit.limits.login.rate=5/h",
                        "rate-limit.limits.login.algorithm=sliding-log")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    assertThat(limits.limit("search").properties().get("max-overshoot"))
                            .isEqualTo("5%");
                    assertThat(limits.limit("login").properties().get("max-overshoot"))
                            .isNull();
                });
    }

    @Test
    void theYamlOfThePageIsAnApplicationThatStarts() throws Exception {
        Matcher yaml = Pattern.compile("(?ms)^```yaml\\n(.*?)^```$")
                .matcher(Files.readString(Path.of("..", "docs", "cluster.md")));
        assertThat(yaml.find()).isTrue();
        List<PropertySource<?>> page = new YamlPropertySourceLoader()
                .load("page", new ByteArrayResource(yaml.group(1).getBytes(StandardCharsets.UTF_8)));

        withoutData
                .withClassLoader(new FilteredClassLoader("org.springframework.data", "org.springframework.boot.data"))
                .withInitializer(
                        context -> page.forEach(context.getEnvironment().getPropertySources()::addLast))
                .withPropertyValues("rate-limit.redis.url=redis://127.0.0.1:" + server.port())
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    TestLimits limits = TestLimits.of(context);
                    assertThat(limits.configured("login").limiter()).isInstanceOf(RedisRateLimiter.class);
                    assertThat(limits.limit("login").properties().get("on-failure"))
                            .isEqualTo("deny");
                    assertThat(limits.configured("prices").limiter()).isInstanceOf(RedisRateLimiter.class);
                    assertThat(limits.configured("recommendations").limiter()).isInstanceOf(InMemoryRateLimiter.class);
                    assertThat(context.getBean(RedisBackend.class).health().nodes())
                            .isEqualTo(3);
                });
    }

    @Test
    void theConstantsOfBothModulesAreTheSame() {
        assertThat(OnFailure.values())
                .extracting(Enum::name)
                .containsExactlyElementsOf(Arrays.stream(LimitProperty.OnFailure.values())
                        .map(Enum::name)
                        .toList());
        assertThat(RedisBackendOptions.TimeSource.values())
                .extracting(Enum::name)
                .containsExactlyElementsOf(Arrays.stream(RateLimitProperties.Redis.TimeSource.values())
                        .map(Enum::name)
                        .toList());
    }

    @Test
    void theClientHasTheServerAndTheCredentialsOfTheApplication() {
        runner.withPropertyValues(
                        "spring.data.redis.host=redis.example",
                        "spring.data.redis.port=6380",
                        "spring.data.redis.database=3",
                        "spring.data.redis.username=limits",
                        "spring.data.redis.password=secret",
                        "spring.data.redis.client-name=shop")
                .run(context -> {
                    RedisURI uri = uri(context);
                    assertThat(uri.getHost()).isEqualTo("redis.example");
                    assertThat(uri.getPort()).isEqualTo(6380);
                    assertThat(uri.getDatabase()).isEqualTo(3);
                    assertThat(uri.getClientName()).isEqualTo("shop");
                    assertThat(uri.isSsl()).isFalse();
                    var credentials =
                            uri.getCredentialsProvider().resolveCredentials().block();
                    assertThat(credentials.getUsername()).isEqualTo("limits");
                    assertThat(credentials.getPassword()).containsExactly("secret".toCharArray());
                });
    }

    @Test
    void theClientHasTheUrlAndTheTlsOfTheApplication() {
        runner.withPropertyValues("spring.data.redis.url=rediss://limits:secret@redis.example:6390")
                .run(context -> {
                    RedisURI uri = uri(context);
                    assertThat(uri.getHost()).isEqualTo("redis.example");
                    assertThat(uri.getPort()).isEqualTo(6390);
                    assertThat(uri.isSsl()).isTrue();
                });
    }

    @Test
    void theClientHasTheSslBundleOfTheApplication() {
        runner.withPropertyValues(
                        "spring.data.redis.ssl.bundle=limits",
                        "spring.ssl.bundle.jks.limits.options.enabled-protocols=TLSv1.3")
                .run(context -> {
                    assertThat(uri(context).isSsl()).isTrue();
                    SslOptions tls = settings(context).options().getSslOptions();
                    assertThat(tls.createSslContextBuilder()).isNotNull();
                    assertThat(tls).extracting("protocols").isEqualTo(new String[] {"TLSv1.3"});
                });
    }

    @Test
    void theClientHasTheSentinelsOfTheApplication() {
        runner.withPropertyValues(
                        "spring.data.redis.sentinel.master=primary",
                        "spring.data.redis.sentinel.nodes=one:26379,two:26380",
                        "spring.data.redis.sentinel.password=watch",
                        "spring.data.redis.password=secret")
                .run(context -> {
                    RedisURI uri = uri(context);
                    assertThat(uri.getSentinelMasterId()).isEqualTo("primary");
                    assertThat(uri.getSentinels())
                            .extracting(RedisURI::getHost, RedisURI::getPort)
                            .containsExactlyInAnyOrder(tuple("one", 26379), tuple("two", 26380));
                });
    }

    @Test
    void theClientHasTheClusterOfTheApplication() {
        runner.withPropertyValues(
                        "spring.data.redis.cluster.nodes=one:7000,two:7001", "spring.data.redis.password=secret")
                .run(context -> {
                    RedisClientSettings settings = settings(context);
                    assertThat(settings.options()).isInstanceOf(ClusterClientOptions.class);
                    assertThat(settings.uris())
                            .extracting(RedisURI::getHost, RedisURI::getPort)
                            .containsExactlyInAnyOrder(tuple("one", 7000), tuple("two", 7001));
                    assertThat(settings.uris())
                            .allSatisfy(uri -> assertThat(password(uri)).isEqualTo("secret"));
                });
    }

    @Test
    void optionsForAClusterMakeNoClusterOfAServer() {
        LettuceClientConfiguration client = LettuceClientConfiguration.builder()
                .clientOptions(
                        ClusterClientOptions.builder().requestQueueSize(77).build())
                .build();
        for (RedisConfiguration server : List.of(
                new RedisStandaloneConfiguration(),
                new RedisSentinelConfiguration("primary", Set.of("one:26379")),
                new RedisSocketConfiguration())) {
            LimitsClient limits = DataRedisSettings.client(new LettuceConnectionFactory(server, client));
            limits.destroy();
            ClientOptions options = limits.settings().options();
            assertThat(options).as(server.toString()).isNotInstanceOf(ClusterClientOptions.class);
            assertThat(options.getRequestQueueSize()).isEqualTo(77);
        }
    }

    /** One customizer may set up the refresh of topologies for all applications. */
    @Test
    void aServerDecidesThoughTheOptionsAreForACluster() {
        runner.withBean(
                        LettuceClientConfigurationBuilderCustomizer.class,
                        () -> client -> client.clientOptions(ClusterClientOptions.create()))
                .withPropertyValues("rate-limit.backend=redis", "rate-limit.limits.search.rate=5/h")
                .run(context ->
                        assertThat(limiter(context).peek("eve", 1, 0).source()).isEqualTo(Decision.Source.REDIS));
    }

    /** What Spring Data makes of its settings is only in its client. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "spring.data.redis.url=rediss://limits:secret@redis.example:6390/4",
                "spring.data.redis.password=secret",
                "spring.data.redis.ssl.enabled=true",
                "spring.data.redis.client-name=shop"
            })
    void theAddressIsThatOfTheApplicationsClient(String property) {
        runner.withPropertyValues(property).run(context -> {
            Object client = context.getBean(LettuceConnectionFactory.class).getRequiredNativeClient();
            RedisURI applications = (RedisURI) ReflectionTestUtils.getField(client, "redisURI");
            RedisURI ours = uri(context);
            assertThat(ours).isEqualTo(applications);
            assertThat(ours.toURI()).isEqualTo(applications.toURI());
            assertThat(ours.getVerifyMode()).isEqualTo(applications.getVerifyMode());
            assertThat(ours.getClientName()).isEqualTo(applications.getClientName());
            assertThat(password(ours)).isEqualTo(password(applications));
        });
    }

    private static String password(RedisURI uri) {
        char[] password =
                uri.getCredentialsProvider().resolveCredentials().block().getPassword();
        return password == null ? "" : new String(password);
    }

    @Test
    void theResourcesAreTheApplicationsAndTheClientIsNot() {
        runner.run(context -> assertThat(settings(context).resources())
                .isSameAs(context.getBean(LettuceConnectionFactory.class)
                        .getRequiredNativeClient()
                        .getResources()));
    }

    private static RateLimiter limiter(AssertableApplicationContext context) {
        return TestLimits.of(context).configured("search").limiter();
    }

    /** What limits would connect with. */
    private static RedisClientSettings settings(AssertableApplicationContext context) {
        LimitsClient client = DataRedisSettings.client(context.getBean(LettuceConnectionFactory.class));
        client.destroy();
        return client.settings();
    }

    private static RedisURI uri(AssertableApplicationContext context) {
        return settings(context).uris().get(0);
    }

    private static void assertRefused(AssertableApplicationContext context, String told, String remedy) {
        assertThat(context).hasFailed();
        FailureAnalysis analysis = Contexts.analyse(context.getStartupFailure());
        assertThat(analysis.getDescription()).contains(told);
        assertThat(analysis.getAction()).contains(remedy).isNotBlank();
    }
}
