package io.ratelimited.spring.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Threads;
import io.ratelimited.redis.RedisProcess;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;

/** Applications that use one Redis, each with a limit that is called login. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("spring-boot")
@Tag("slow")
class SeveralApplicationsTest {
    private static final String NAMELESS = "spring.application.name is not set";
    private static RedisProcess server;

    private final List<ConfigurableApplicationContext> started = new ArrayList<>();

    @BeforeAll
    static void startServer() {
        server = RedisProcess.start();
    }

    @AfterAll
    static void stopServer() {
        server.close();
    }

    @BeforeEach
    void empty() {
        server.ask(commands -> commands.flushall());
    }

    @AfterEach
    void close() {
        started.forEach(ConfigurableApplicationContext::close);
    }

    @Test
    void eachApplicationHasItsOwnBudgets(CapturedOutput output) {
        TestLimits orders = limits("spring.application.name=orders");
        TestLimits billing = limits("spring.application.name=billing");

        assertThat(orders.tryAcquire("login", "ann", 5)).isTrue();
        assertThat(orders.tryAcquire("login", "ann")).isFalse();
        assertThat(billing.tryAcquire("login", "ann", 5)).isTrue();
        assertThat(server.<List<String>>ask(commands -> commands.keys("*login*")))
                .allMatch(key -> key.startsWith("rl:orders:{") || key.startsWith("rl:billing:{"))
                .hasSize(2);
        assertThat(output).doesNotContain(NAMELESS);
    }

    @Test
    void aChangeForTheFleetIsThatOfOneApplication() {
        TestLimits billing = limits("spring.application.name=billing");
        billing.change("login", LimitChange.rate("0/s"));

        // Both have read what is changed for their fleets when they have started.
        assertThat(limits("spring.application.name=orders").tryAcquire("login", "ann"))
                .isTrue();
        assertThat(limits("spring.application.name=billing").tryAcquire("login", "ann"))
                .isFalse();
    }

    /** A gateway and a service behind it, or an application that gets another name, share on purpose. */
    @ParameterizedTest
    @CsvSource({"rl", "edge", "rl:orders"})
    void applicationsThatStateOnePrefixShare(String prefix, CapturedOutput output) {
        TestLimits gateway = limits("spring.application.name=gateway", "rate-limit.redis.key-prefix=" + prefix);
        TestLimits service = limits("spring.application.name=service", "rate-limit.redis.key-prefix=" + prefix);

        assertThat(gateway.tryAcquire("login", "ann", 4)).isTrue();
        assertThat(service.tryAcquire("login", "ann", 2)).isFalse();

        gateway.change("login", LimitChange.rate("0/s"));
        Threads.until(() -> !service.tryAcquire("login", "bob"));
        assertThat(output).doesNotContain(NAMELESS);
    }

    @Test
    void aNewNameKeepsItsBudgetsWithThePrefixOfTheOldOne() {
        assertThat(limits("spring.application.name=orders").tryAcquire("login", "ann", 5))
                .isTrue();

        assertThat(limits("spring.application.name=orders-v2", "rate-limit.redis.key-prefix=rl:orders")
                        .tryAcquire("login", "ann"))
                .isFalse();
    }

    @Test
    void applicationsWithoutANameShareAndTheLogSaysSo(CapturedOutput output) {
        TestLimits one = limits();
        assertThat(output).containsOnlyOnce("WARN").contains(NAMELESS, "the prefix rl", "rate-limit.redis.key-prefix");
        TestLimits other = limits("spring.application.name=");

        assertThat(one.tryAcquire("login", "ann", 5)).isTrue();
        assertThat(other.tryAcquire("login", "ann")).isFalse();
    }

    /** Braces in a name choose no slot, and a name that looks like a key of another application is none. */
    @Test
    void anyNameIsAPrefixOfItsOwn() {
        Stream.of("{orders}", "orders:{login}", "Größe & Co", "orders", "ORDERS")
                .map(name -> limits("spring.application.name=" + name))
                .forEach(application ->
                        assertThat(application.tryAcquire("login", "ann", 5)).isTrue());
    }

    private TestLimits limits(String... properties) {
        ConfigurableApplicationContext context = new SpringApplicationBuilder(App.class)
                .web(WebApplicationType.NONE)
                .properties(Stream.concat(
                                Stream.of(
                                        "spring.main.banner-mode=off",
                                        "rate-limit.backend=redis",
                                        "rate-limit.redis.url=redis://127.0.0.1:" + server.port(),
                                        "rate-limit.redis.timeout=20s",
                                        "rate-limit.limits.login.rate=5/d"),
                                Stream.of(properties))
                        .toArray(String[]::new))
                .run();
        started.add(context);
        return TestLimits.of(context);
    }

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({
        AopAutoConfiguration.class,
        RateLimitAutoConfiguration.class,
        RedisRateLimitAutoConfiguration.class
    })
    static class App {}
}
