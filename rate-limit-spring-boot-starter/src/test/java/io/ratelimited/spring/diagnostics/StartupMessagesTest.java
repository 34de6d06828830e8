package io.ratelimited.spring.diagnostics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.internals.text.PropertyText;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.beans.factory.BeanCreationException;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Mistakes that Spring Boot finds when it binds properties, and how it shows ours: place, value and remedy. */
class StartupMessagesTest {

    /** A mistake: the classes and properties that have it, and what the user must read. */
    record Mistake(String fact, List<Class<?>> beans, List<String> properties, List<String> told, String remedy) {

        static Mistake of(String fact, Class<?>... beans) {
            return new Mistake(fact, List.of(beans), List.of(), List.of(), "");
        }

        Mistake with(String... all) {
            return new Mistake(fact, beans, List.of(all), told, remedy);
        }

        Mistake tells(String... all) {
            return new Mistake(fact, beans, properties, List.of(all), remedy);
        }

        Mistake and(String action) {
            return new Mistake(fact, beans, properties, told, action);
        }

        @Override
        public String toString() {
            return fact;
        }
    }

    @ParameterizedTest
    @MethodSource
    void mistakesStopTheStart(Mistake mistake) {
        Contexts.with(Contexts.runner(), mistake.beans.toArray(Class<?>[]::new))
                .withPropertyValues(mistake.properties.toArray(String[]::new))
                .run(context -> {
                    assertThat(context).hasFailed();
                    FailureAnalysis analysis =
                            Contexts.analyse(context.getStartupFailure(), mistake.properties.toArray(String[]::new));
                    assertThat(analysis.getDescription()).contains(mistake.told);
                    assertThat(analysis.getAction()).contains(mistake.remedy).isNotBlank();
                });
    }

    static Stream<Mistake> mistakesStopTheStart() {
        return Stream.of(
                Mistake.of("an order that is no number")
                        .with("rate-limit.aspect.order=first")
                        .tells("Property rate-limit.aspect.order is first (", "), but must be a whole number"),
                Mistake.of("the algorithm of an annotation that states none, in a property")
                        .with("rate-limit.limits.search.rate=5/s", "rate-limit.limits.search.algorithm=default")
                        .tells("Property rate-limit.limits.search.algorithm is default, but must be one of "
                                + PropertyText.values(Algorithm.class))
                        .and("remove it"),
                Mistake.of("the policy of an annotation that states none, in a property", Good.class)
                        .with("rate-limit.limits[Good.call].policy=default")
                        .tells(
                                "Property rate-limit.limits[Good.call].policy is default, but must be one of [reject, wait, shadow]")
                        .and("remove it"),
                Mistake.of("the algorithm of an annotation that states none, in the defaults")
                        .with("rate-limit.defaults.algorithm=default")
                        .tells("Property rate-limit.defaults.algorithm is default, but must be one of [token-bucket, "),
                Mistake.of("the algorithm of an annotation that states none, in a tier", Tiered.class)
                        .with(
                                "rate-limit.limits.tiered.rate=5/s",
                                "rate-limit.limits.tiered.tiers.gold.algorithm=default")
                        .tells(
                                "Property rate-limit.limits.tiered.tiers.gold.algorithm is default, but must be one of [token-bucket, "),
                Mistake.of("an element of a list that is none of its values")
                        .with("rate-limit.clients.partner.hosts=one.example", "rate-limit.clients.partner.obey=retry")
                        .tells(
                                "Property rate-limit.clients.partner.obey is retry",
                                "but must be one of [retry-after, rate-limit]"),
                Mistake.of("a backend that is not there", Good.class)
                        .with("rate-limit.backend=redis")
                        .tells("Property rate-limit.backend is redis, but nothing provides it")
                        .and("rate-limit-redis"),
                Mistake.of("an unknown property of a limit", Good.class)
                        .with("rate-limit.limits[Good.call].bursts=5")
                        .tells("no property rate-limit.limits[Good.call].bursts: 5", "did you mean 'burst'?"),
                Mistake.of("a property of a limit with two letters swapped", Good.class)
                        .with("rate-limit.limits[Good.call].brust=5")
                        .tells("rate-limit.limits[Good.call].brust: 5", "did you mean 'burst'?"),
                Mistake.of("an unknown property of a tier", Tiered.class)
                        .with("rate-limit.limits.tiered.tiers.gold.rte=5/s", "rate-limit.limits.tiered.rate=5/s")
                        .tells("rate-limit.limits.tiered.tiers.gold.rte", "did you mean 'rate'?"),
                Mistake.of("an unknown property of the defaults")
                        .with("rate-limit.defaults.polcy=wait")
                        .tells("rate-limit.defaults.polcy", "did you mean 'policy'?"),
                Mistake.of("an unknown property of a route")
                        .with(
                                "rate-limit.limits.x.rate=5/s",
                                "rate-limit.routes[0].path=/a",
                                "rate-limit.routes[0].limits=x",
                                "rate-limit.routes[0].keys=clientIp")
                        .tells("rate-limit.routes[0].keys: clientIp", "did you mean 'key'?"),
                Mistake.of("a name with a dot without brackets", Good.class)
                        .with("rate-limit.limits.Good.call.rate=5/s")
                        .tells("rate-limit.limits.Good.call.rate", "5/s")
                        .and("rate-limit.limits[OrderController.place].rate"),
                Mistake.of("an unknown property of a route")
                        .with("rate-limit.routes[0].limit=search")
                        .tells("no property rate-limit.routes[0].limit: search", "did you mean 'limits'?"),
                Mistake.of("an empty number", Good.class)
                        .with("rate-limit.limits[Good.call].burst=")
                        .tells("Property rate-limit.limits[Good.call].burst has no value"),
                Mistake.of("an empty backend")
                        .with("rate-limit.backend=")
                        .tells("Property rate-limit.backend has no value"),
                Mistake.of("an empty key", Good.class)
                        .with("rate-limit.limits[Good.call].key=")
                        .tells("'Good.call'", "key is not a SpEL expression: \"\""),
                Mistake.of("a list that does not begin at 0")
                        .with("rate-limit.routes[1].path=/a")
                        .tells("rate-limit.routes[1].path: /a is not used", "from 0 without a gap"),
                Mistake.of("a list within an element that does not begin at 0")
                        .with("rate-limit.clients.partner.hosts[1]=one.example")
                        .tells(
                                "rate-limit.clients.partner.hosts[1]: one.example is not used",
                                "replaces the whole list"),
                Mistake.of("neither enabled nor disabled")
                        .with("rate-limit.enabled=treu")
                        .tells("Property rate-limit.enabled is treu (", "), but must be true or false")
                        .and("Correct it, or remove it to use the default. [RL-102]"),
                Mistake.of("a number in words", Good.class)
                        .with("rate-limit.limits[Good.call].burst=ten")
                        .tells("Property rate-limit.limits[Good.call].burst is ten (", "), but must be a whole number")
                        .and("Correct it, or remove it to use the default. [RL-102]"),
                Mistake.of("a city in the place of a time zone", Good.class)
                        .with("rate-limit.limits[Good.call].zone=Berlin")
                        .tells(
                                "Property rate-limit.limits[Good.call].zone is Berlin (",
                                "), but must be a time zone such as Europe/Berlin")
                        .and("[RL-102]"),
                Mistake.of("a factor in words", Good.class)
                        .with("rate-limit.limits[Good.call].cold-factor=three")
                        .tells(
                                "Property rate-limit.limits[Good.call].cold-factor is three (",
                                "), but must be a number"),
                Mistake.of("a duration in words", Good.class)
                        .with("rate-limit.limits[Good.call].max-wait=soon")
                        .tells(
                                "Property rate-limit.limits[Good.call].max-wait is soon (",
                                "), but must be a duration such as 500ms")
                        .and("[RL-102]"),
                Mistake.of("a duration without its unit", Good.class)
                        .with("rate-limit.limits[Good.call].max-wait=5")
                        .tells(
                                "Property rate-limit.limits[Good.call].max-wait is 5, but must be a duration such as 500ms")
                        .and("Add its unit. [RL-102]"),
                Mistake.of("a number that does not fit", Good.class)
                        .with("rate-limit.http.status=5000000000")
                        .tells("Property rate-limit.http.status is 5000000000 (", "), but must be a whole number"),
                Mistake.of("a route whose limit nothing defines")
                        .with(
                                "rate-limit.limits.search.rate=5/s",
                                "rate-limit.routes[0].path=/a",
                                "rate-limit.routes[0].limits=serch")
                        .tells("Rate limit 'serch' is invalid: there is no rate limit named 'serch' (did you mean"
                                + " 'search'?); there are [search]. Origin: rate-limit.routes[0].limits[0].")
                        .and("Set rate-limit.limits.serch.rate, or correct the name"),
                Mistake.of("a route whose limit only an annotation defines", Good.class)
                        .with("rate-limit.routes[0].path=/a", "rate-limit.routes[0].limits=Good.call")
                        .tells("there is no rate limit named 'Good.call'", "Origin: rate-limit.routes[0].limits[0].")
                        .and(
                                "Set rate-limit.limits[Good.call].rate, or correct the name; routes and clients use"
                                        + " limits of properties, so repeat the values of a limit that an annotation defines. [RL-104]"),
                Mistake.of("a route whose limit has its rate in an annotation", Good.class)
                        .with(
                                "rate-limit.limits[Good.call].policy=wait",
                                "rate-limit.routes[0].path=/a",
                                "rate-limit.routes[0].limits=Good.call")
                        .tells("'Good.call' is invalid: rate is missing", "Origin: rate-limit.limits[Good.call].")
                        .and("repeat the values of a limit that an annotation defines. [RL-104]"),
                Mistake.of("a pattern of a route that cannot be parsed", Good.class)
                        .with(
                                "rate-limit.limits.search.rate=5/s",
                                "rate-limit.routes[0].path=/a*/**/b",
                                "rate-limit.routes[0].limits=search")
                        .tells("\"/a*/**/b\" is not a path pattern", "Origin: rate-limit.routes[0].path.")
                        .and("Correct the pattern, as in /api/** or /users/{id}. [RL-112]"),
                Mistake.of("a rate in the place of a limit")
                        .with("rate-limit.limits.search=100/s")
                        .tells("Property rate-limit.limits.search has nested properties, but no value: 100/s")
                        .and("rate-limit.limits.search.rate: 100/s"),
                Mistake.of("a rate in the place of all limits")
                        .with("rate-limit.limits=100/s")
                        .tells("Property rate-limit.limits has nested properties, but no value: 100/s"),
                Mistake.of("an address in the place of Redis")
                        .with("rate-limit.redis=redis://localhost")
                        .tells(
                                "Property rate-limit.redis has nested properties, but no value (\"rate-limit.redis\" from")
                        .and("Set a property below it, as in rate-limit.redis.url: redis://localhost:6379"),
                Mistake.of("an unknown algorithm", Good.class)
                        .with("rate-limit.limits[Good.call].algorithm=buckets")
                        .tells(
                                "but must be one of [token-bucket, ",
                                "Property rate-limit.limits[Good.call].algorithm is buckets (")
                        .and("Correct it"),
                Mistake.of("a status that refuses nothing")
                        .with("rate-limit.http.status=200")
                        .tells("rate-limit.http.status is 200, but must be from 400 to 599"),
                Mistake.of("no keys")
                        .with("rate-limit.memory.maximum-keys=0")
                        .tells("rate-limit.memory.maximum-keys is 0, but must be at least 1"),
                Mistake.of("no nodes")
                        .with("rate-limit.redis.expected-nodes=0")
                        .tells("rate-limit.redis.expected-nodes is 0, but must be at least 1"),
                Mistake.of("no time for Redis")
                        .with("rate-limit.redis.timeout=0ms")
                        .tells("rate-limit.redis.timeout is 0s, but must be from 1ms to 1m"),
                Mistake.of("an impossible prefix of addresses")
                        .with("rate-limit.http.ipv6-prefix-length=129")
                        .tells("rate-limit.http.ipv6-prefix-length is 129, but must be from 1 to 128"));
    }

    @Test
    void anAddressInThePlaceOfRedisIsNotShownBecauseItCanHoldAPassword() {
        String property = "rate-limit.redis=redis://me:secret@localhost";
        Contexts.runner().withPropertyValues(property).run(context -> {
            FailureAnalysis analysis = Contexts.analyse(context.getStartupFailure(), property);
            assertThat(analysis.getDescription()).doesNotContain("secret");
            assertThat(context.getStartupFailure()).hasStackTraceContaining("rate-limit.redis");
            StringWriter trace = new StringWriter();
            context.getStartupFailure().printStackTrace(new PrintWriter(trace));
            assertThat(trace.toString()).doesNotContain("secret");
        });
    }

    @Test
    @ExtendWith(OutputCaptureExtension.class)
    void theApplicationSaysWhatIsWrongAndWhatToDo(CapturedOutput output) {
        SpringApplication application = new SpringApplication(Application.class);
        application.setWebApplicationType(WebApplicationType.NONE);
        try {
            application.run();
        } catch (RuntimeException expected) {
            assertThat(output)
                    .contains("APPLICATION FAILED TO START")
                    .contains(
                            "Rate limit 'BadRate.call' is invalid: rate is ",
                            "Origin: @RateLimited on " + BadRate.class.getName() + ".call().")
                    .contains("Action:")
                    .doesNotContain("at io.ratelimited");
            return;
        }
        throw new AssertionError("started");
    }

    @Test
    @ExtendWith(OutputCaptureExtension.class)
    void aFinalClassIsNamedThoughAnotherBeanNeedsIt(CapturedOutput output) {
        SpringApplication application = new SpringApplication(NeedsFinalClass.class);
        application.setWebApplicationType(WebApplicationType.NONE);
        assertThatThrownBy(application::run).isInstanceOf(BeanCreationException.class);
        assertThat(output)
                .contains("APPLICATION FAILED TO START")
                .contains("class " + FinalClass.class.getName() + " is final", "woven");
    }

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({RateLimitAutoConfiguration.class, AopAutoConfiguration.class})
    static class Application {

        @Bean
        BadRate badRate() {
            return new BadRate();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({RateLimitAutoConfiguration.class, AopAutoConfiguration.class})
    static class NeedsFinalClass {

        @Bean
        String needs(FinalClass other) {
            return other.getClass().getName();
        }

        @Bean
        FinalClass other() {
            return new FinalClass();
        }
    }

    static class BadRate {
        @RateLimited(rate = "5 per s")
        public void call() {}
    }

    static final class FinalClass {
        @RateLimited(rate = "5/s")
        public void call() {}
    }

    static class Good {
        @RateLimited(rate = "5/s")
        public void call() {}
    }

    static class Tiered {
        @RateLimited(value = "tiered", tier = "#user")
        public void call(String user) {}
    }
}
