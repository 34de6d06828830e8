package io.ratelimited.spring.check;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.limit.LimitRegistry;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.event.ContextRefreshedEvent;

/** What the start says of limits that callers can get around with keys of their own, or that fill memory with them. */
@ExtendWith(OutputCaptureExtension.class)
class KeyAttacksTest {

    private static final String INVENTED = "callers can invent the key";

    private final ApplicationContextRunner runner =
            Contexts.runner(new ManualTicker()).withBean("keys", Keys.class);

    static class Keys {

        public @Nullable String owner(@Nullable String apiKey) {
            return apiKey;
        }
    }

    static class Prices {

        @RateLimited(name = "prices", rate = "5/m")
        public void all() {}
    }

    private ApplicationContextRunner withKey(String key) {
        return runner.withBean(Prices.class).withPropertyValues("rate-limit.limits.prices.key=" + key);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "header('X-Api-Key')",
                "header('X-Api-Key') ?: clientIp",
                "header('X-Api-Key')?.toLowerCase()",
                "#root.header('X-Api-Key')",
                "{clientIp, header('X-Api-Key')}",
                "'key ' + header('X-Api-Key')",
                "@keys.owner('ann') ?: header('X-Api-Key')",
                "T(java.lang.String).valueOf(header('X-Api-Key'))",
                "session",
                "session ?: clientIp",
                "#root.session"
            })
    void aKeyThatCallersInventIsReported(String key, CapturedOutput output) {
        withKey(key).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output)
                    .containsOnlyOnce("public void " + Prices.class.getName() + ".all(): " + INVENTED
                            + " of rate limit 'prices' \"" + key + "\", and each new key has a new budget. Add a limit"
                            + " with the key clientIp to the same call, or let a bean look the key up, as in"
                            + " @keys.owner(header('X-Api-Key')).");
        });
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "@keys.owner(header('X-Api-Key'))",
                "@keys.owner(header('X-Api-Key')) ?: clientIp",
                "@keys.owner(session).length()",
                "{clientIp, @keys.owner(header('X-Api-Key'))}",
                "clientIp",
                "principal",
                "'session'",
                "'header'"
            })
    void aKeyThatABeanLooksUpIsNotReported(String key, CapturedOutput output) {
        withKey(key).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output).doesNotContain(INVENTED);
        });
    }

    static class Bounded {

        @RateLimited(name = "address", rate = "50/s", key = "clientIp")
        @RateLimited(name = "caller", rate = "5/s", key = "header('X-Api-Key')")
        public void byAddress() {}

        @RateLimited(name = "all", rate = "50/s")
        @RateLimited(name = "other", rate = "5/s", key = "session")
        public void byAll() {}
    }

    @Test
    void aLimitBesideItBoundsAnInventedKey(CapturedOutput output) {
        runner.withBean(Bounded.class).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output).doesNotContain(INVENTED);
        });
    }

    static class Unbounded {

        @RateLimited(name = "header", rate = "50/s", key = "header('X-Api-Key')")
        @RateLimited(name = "session", rate = "5/s", key = "session")
        public void both() {}

        @RateLimited(name = "watched", rate = "50/s", key = "clientIp")
        @RateLimited(name = "third", rate = "5/s", key = "header('X-Api-Key')")
        public void shadowed() {}

        @RateLimited(name = "sometimes", rate = "50/s", key = "clientIp", when = "#wanted")
        @RateLimited(name = "fourth", rate = "5/s", key = "header('X-Api-Key')")
        public void conditional(boolean wanted) {}
    }

    @Test
    void aLimitThatDoesNotRefuseBoundsNothing(CapturedOutput output) {
        runner.withBean(Unbounded.class)
                .withPropertyValues("rate-limit.limits.watched.policy=shadow")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(output)
                            .containsOnlyOnce(INVENTED + " of rate limit 'header'")
                            .containsOnlyOnce(INVENTED + " of rate limit 'session'")
                            .containsOnlyOnce(INVENTED + " of rate limit 'third'")
                            .containsOnlyOnce(INVENTED + " of rate limit 'fourth'");
                });
    }

    @RateLimited(name = "class", rate = "5/s", key = "header('X-Api-Key')")
    static class OfAClass {

        public void one() {}
    }

    @Test
    void theLimitOfAClassIsLookedAt(CapturedOutput output) {
        runner.withBean(OfAClass.class)
                .run(context -> assertThat(output).containsOnlyOnce(INVENTED + " of rate limit 'class'"));
    }

    @Test
    void aRouteOfEveryRequestBoundsTheMethodsBehindIt(CapturedOutput output) {
        withKey("header('X-Api-Key')")
                .withPropertyValues(
                        "rate-limit.limits.api.rate=5/m",
                        "rate-limit.limits.api.key=session",
                        "rate-limit.limits.address.rate=50/s",
                        "rate-limit.routes[0].path=/**",
                        "rate-limit.routes[0].limits=address",
                        "rate-limit.routes[0].key=clientIp",
                        "rate-limit.routes[1].path=/api/**",
                        "rate-limit.routes[1].limits=api")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(output).doesNotContain(INVENTED);
                });
    }

    @Test
    void aRouteWhoseKeyCallersInventIsReported(CapturedOutput output) {
        runner.withPropertyValues(
                        "rate-limit.limits.api.rate=50/s",
                        "rate-limit.limits.address.rate=50/s",
                        "rate-limit.limits.address.key=clientIp",
                        "rate-limit.routes[0].path=/api/**",
                        "rate-limit.routes[0].limits=api",
                        "rate-limit.routes[0].key=header('X-Api-Key')",
                        "rate-limit.routes[1].path=/other/**",
                        "rate-limit.routes[1].limits=address",
                        "rate-limit.routes[2].path=/bounded/**",
                        "rate-limit.routes[2].limits=api",
                        "rate-limit.routes[2].key=session",
                        "rate-limit.routes[3].path=/bounded/**",
                        "rate-limit.routes[3].limits=address")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(output)
                            .containsOnlyOnce("rate-limit.routes[0]: " + INVENTED + " of rate limit 'api'")
                            .doesNotContain("rate-limit.routes[2]: ");
                });
    }

    static class Keyed {

        @RateLimited(name = "users", rate = "5/m", key = "#user")
        public void users(String user) {}

        @RateLimited(
                name = "log",
                rate = "5000/d",
                key = "#user",
                algorithm = io.ratelimited.core.Algorithm.SLIDING_LOG)
        public void log(String user) {}

        @RateLimited(name = "everybody", rate = "5/m")
        public void everybody() {}
    }

    private void startWithHeap(ApplicationContextRunner application, long maximumKeys, long megabytes) {
        application.withPropertyValues("rate-limit.memory.maximum-keys=10").run(context -> {
            assertThat(context).hasNotFailed();
            context.getBean(RateLimits.class).all();
            LimitLog log = new LimitLog(context.getBean(LimitRegistry.class), maximumKeys, megabytes << 20);
            log.onApplicationEvent(new ContextRefreshedEvent(context));
            log.onApplicationEvent(new ContextRefreshedEvent(context));
        });
    }

    @Test
    void keysThatDoNotFitInMemoryAreReported(CapturedOutput output) {
        startWithHeap(runner.withBean(Keyed.class), 1_000_000, 128);
        assertThat(output)
                .containsOnlyOnce("Callers with many keys can fill memory: the limits log, users may remember 1,000,000"
                        + " keys each, which take 38,719 MB, more than half of the heap of 128 MB. Set"
                        + " rate-limit.memory.maximum-keys to 1652, or give the JVM a larger heap (-Xmx).");
    }

    @Test
    void theMaximumThatTheReportNamesFits(CapturedOutput output) {
        startWithHeap(runner.withBean(Keyed.class), 1_652, 128);
        startWithHeap(runner.withBean(Prices.class), 1_000_000, 128);
        assertThat(output).doesNotContain("fill memory");
    }
}
