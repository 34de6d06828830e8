package io.ratelimited.spring.check;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.autoconfigure.client.ClientRateLimitAutoConfiguration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.restclient.autoconfigure.RestClientAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** Blocks that mean nothing stop the start, with limit, place, value and remedy. */
class BlockMistakesTest {

    private static final String HERE = BlockMistakesTest.class.getName();

    record Mistake(String fact, List<Class<?>> beans, List<String> properties, String told, String remedy) {

        @Override
        public String toString() {
            return fact;
        }
    }

    private static Mistake of(String fact, Class<?> bean, String told, String remedy, String... properties) {
        return new Mistake(fact, List.of(bean), List.of(properties), told, remedy);
    }

    static Stream<Mistake> mistakes() {
        String keyed = "'keyed' (rate-limit.limits.keyed.";
        return Stream.of(
                of(
                        "no key",
                        Unkeyed.class,
                        "'Unkeyed.call' (@RateLimited on " + HERE + "$Unkeyed.call()): block has no meaning for calls"
                                + " without a key, as those of @RateLimited on " + HERE + "$Unkeyed.call(): 1m",
                        "Set the key of these calls, or remove block. [RL-103]"),
                of(
                        "a tier, and no key",
                        Unblocked.class,
                        "'Unblocked.call' (rate-limit.limits[Unblocked.call].tiers.gold.block): block has no meaning",
                        "remove block",
                        "rate-limit.limits[Unblocked.call].tiers.gold.block=1m",
                        "rate-limit.limits[Unblocked.call].tiers.gold.rate=2/s"),
                of(
                        "CONCURRENCY",
                        InFlight.class,
                        "'InFlight.call' (@RateLimited on " + HERE
                                + "$InFlight.call(java.lang.String)): block has no meaning"
                                        .replace("(java.lang.String)", "(String)")
                                + " for CONCURRENCY: PT1M",
                        "Correct it in the annotation"),
                of(
                        "a factor without a block",
                        Factor.class,
                        "$Factor.call(String)): blockFactor has no meaning without block; set block, or remove it: 3.0",
                        "Correct it in the annotation"),
                of(
                        "a longest block without a block",
                        Keyed.class,
                        keyed + "block-max): blockMax has no meaning without block; set block, or remove it: PT1H",
                        "Correct it in the annotation or under rate-limit.limits.keyed",
                        "rate-limit.limits.keyed.block-max=1h"),
                of(
                        "a negative block",
                        Keyed.class,
                        keyed + "block): block must be longer than 0s: PT-1S",
                        "Correct it",
                        "rate-limit.limits.keyed.block=-1s"),
                of(
                        "a block of years",
                        Keyed.class,
                        keyed + "block): block must be at most 365d: PT8784H",
                        "Correct it",
                        "rate-limit.limits.keyed.block=366d"),
                of(
                        "a longest block that is shorter",
                        Keyed.class,
                        keyed + "block-max): blockMax must be from block, 1h, to 365d: PT1M",
                        "Correct it",
                        "rate-limit.limits.keyed.block=1h",
                        "rate-limit.limits.keyed.block-max=1m"),
                of(
                        "a factor that shortens",
                        Keyed.class,
                        keyed + "block-factor): blockFactor must be from 1 to 1000: 0.5",
                        "Correct it",
                        "rate-limit.limits.keyed.block=1h",
                        "rate-limit.limits.keyed.block-factor=0.5"),
                of(
                        "no duration",
                        Soon.class,
                        "$Soon.call(String)): block must be a duration such as 500ms, 10s or PT10S: \"soon\"",
                        "Correct the annotation"),
                of(
                        "uses that differ in what offends",
                        Charges.class,
                        "'guesses' (rate-limit.limits.guesses.block): block counts either what calls are charged, as"
                                + " @RateLimited on " + HERE
                                + "$Charges.charged(String) says, or refused calls, as those"
                                + " of @RateLimited on " + HERE + "$Charges.uncharged(String): 1m",
                        "Give both a charge or none, or use two limits.",
                        "rate-limit.limits.guesses.rate=1/s",
                        "rate-limit.limits.guesses.block=1m"),
                of(
                        "a route, which charges nothing",
                        Charged.class,
                        "as @RateLimited on " + HERE + "$Charged.charged(String) says, or refused calls, as those of"
                                + " rate-limit.routes[0]: 1m",
                        "use two limits",
                        "rate-limit.limits.guesses.rate=1/s",
                        "rate-limit.limits.guesses.block=1m",
                        "rate-limit.routes[0].path=/login",
                        "rate-limit.routes[0].key=clientIp",
                        "rate-limit.routes[0].limits=guesses"),
                of(
                        "a client without a key",
                        Keyed.class,
                        keyed + "block): block has no meaning for calls without a key, as those of"
                                + " rate-limit.clients.partner: 1m",
                        "Set the key",
                        "rate-limit.limits.keyed.rate=1/s",
                        "rate-limit.limits.keyed.block=1m",
                        "rate-limit.clients.partner.hosts=partner.example",
                        "rate-limit.clients.partner.limits=keyed"),
                of(
                        "a route without a key",
                        Keyed.class,
                        keyed
                                + "block): block has no meaning for calls without a key, as those of"
                                + " rate-limit.routes[0]",
                        "Set the key",
                        "rate-limit.limits.keyed.rate=1/s",
                        "rate-limit.limits.keyed.block=1m",
                        "rate-limit.routes[0].path=/login",
                        "rate-limit.routes[0].limits=keyed"));
    }

    @ParameterizedTest
    @MethodSource
    void mistakes(Mistake mistake) {
        String[] properties = mistake.properties.toArray(String[]::new);
        ApplicationContextRunner runner = Contexts.runner()
                .withConfiguration(AutoConfigurations.of(
                        RestClientAutoConfiguration.class, ClientRateLimitAutoConfiguration.class));
        Contexts.with(runner, mistake.beans.toArray(Class<?>[]::new))
                .withPropertyValues(properties)
                .run(context -> {
                    assertThat(context).hasFailed();
                    FailureAnalysis analysis = Contexts.analyse(context.getStartupFailure(), properties);
                    assertThat(analysis.getDescription()).contains(mistake.told);
                    assertThat(analysis.getAction()).contains(mistake.remedy);
                });
    }

    /** Requests of a route have no result: the charge of the properties is for the methods that the limit may have besides. */
    @Test
    void aLimitOfARouteBlocksForRefusedCallsWhateverItsCharge() {
        Contexts.runner()
                .withPropertyValues(
                        "rate-limit.limits.guesses.rate=1/s",
                        "rate-limit.limits.guesses.block=1m",
                        "rate-limit.limits.guesses.charge=#error == null ? 0 : 1",
                        "rate-limit.routes[0].path=/login",
                        "rate-limit.routes[0].key=clientIp",
                        "rate-limit.routes[0].limits=guesses")
                .run(context -> assertThat(
                                TestLimits.of(context).limit("guesses").limit().blocksByCharge())
                        .isFalse());
    }

    static class Unkeyed {
        @RateLimited(rate = "1/s", block = "1m")
        public void call() {}
    }

    static class Unblocked {
        @RateLimited(rate = "1/s")
        public void call() {}
    }

    static class InFlight {
        @RateLimited(algorithm = Algorithm.CONCURRENCY, maxConcurrent = 2, key = "#who", block = "1m")
        public void call(String who) {}
    }

    static class Factor {
        @RateLimited(rate = "1/s", key = "#who", blockFactor = 3)
        public void call(String who) {}
    }

    static class Soon {
        @RateLimited(rate = "1/s", key = "#who", block = "soon")
        public void call(String who) {}
    }

    static class Keyed {
        @RateLimited(name = "keyed", rate = "1/s", key = "#who")
        public void call(String who) {}
    }

    static class Charged {
        @RateLimited(name = "guesses", key = "#who", charge = "1")
        public void charged(String who) {}
    }

    static class Charges extends Charged {
        @RateLimited(name = "guesses", key = "#who + '-'")
        public void uncharged(String who) {}
    }
}
