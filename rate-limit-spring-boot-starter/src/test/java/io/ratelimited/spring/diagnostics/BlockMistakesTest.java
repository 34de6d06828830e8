package io.ratelimited.spring.diagnostics;

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
        String keyed = ". Origin: rate-limit.limits.keyed.";
        return Stream.of(
                of(
                        "no key",
                        Unkeyed.class,
                        "Rate limit 'Unkeyed.call' is invalid: block is 1m, but calls without a key cannot be blocked, as those of"
                                + " @RateLimited on " + HERE + "$Unkeyed.call(). Origin: @RateLimited on " + HERE
                                + "$Unkeyed.call().",
                        "Set the key of these calls, or remove block. [RL-103]"),
                of(
                        "a tier, and no key",
                        Unblocked.class,
                        "Unblocked.call(). Origin: rate-limit.limits[Unblocked.call].tiers.gold.block.",
                        "remove block",
                        "rate-limit.limits[Unblocked.call].tiers.gold.block=1m",
                        "rate-limit.limits[Unblocked.call].tiers.gold.rate=2/s"),
                of(
                        "CONCURRENCY",
                        InFlight.class,
                        "Rate limit 'InFlight.call' is invalid: block is 1m, but CONCURRENCY does not support it",
                        "Correct it in the annotation"),
                of(
                        "a factor without a block",
                        Factor.class,
                        "blockFactor is 3.0, but has no effect without block; set block, or remove it. Origin: @RateLimited on "
                                + HERE + "$Factor.call(String).",
                        "Correct it in the annotation"),
                of(
                        "a longest block without a block",
                        Keyed.class,
                        "blockMax is 1h, but has no effect without block; set block, or remove it" + keyed
                                + "block-max.",
                        "Correct it in the annotation or under rate-limit.limits.keyed",
                        "rate-limit.limits.keyed.block-max=1h"),
                of(
                        "a negative block",
                        Keyed.class,
                        "block is -1s, but must be longer than 0s" + keyed + "block.",
                        "Correct it",
                        "rate-limit.limits.keyed.block=-1s"),
                of(
                        "a block of years",
                        Keyed.class,
                        "block is 366d, but must be at most 365d" + keyed + "block.",
                        "Correct it",
                        "rate-limit.limits.keyed.block=366d"),
                of(
                        "a longest block that is shorter",
                        Keyed.class,
                        "blockMax is 1m, but must be from block, 1h, to 365d" + keyed + "block-max.",
                        "Correct it",
                        "rate-limit.limits.keyed.block=1h",
                        "rate-limit.limits.keyed.block-max=1m"),
                of(
                        "a factor that shortens",
                        Keyed.class,
                        "blockFactor is 0.5, but must be from 1 to 1000" + keyed + "block-factor.",
                        "Correct it",
                        "rate-limit.limits.keyed.block=1h",
                        "rate-limit.limits.keyed.block-factor=0.5"),
                of(
                        "no duration",
                        Soon.class,
                        "block is \"soon\", but must be a duration such as 500ms, 10s or PT10S. Origin: @RateLimited on "
                                + HERE + "$Soon.call(String).",
                        "Correct the annotation"),
                of(
                        "uses that differ in what offends",
                        Charges.class,
                        "Rate limit 'guesses' is invalid: block is 1m, but violations are either charges, as of @RateLimited on "
                                + HERE + "$Charges.charged(String), or rejected calls, as of @RateLimited on " + HERE
                                + "$Charges.uncharged(String). Origin: rate-limit.limits.guesses.block.",
                        "Set charge for both or for none, or use two limits.",
                        "rate-limit.limits.guesses.rate=1/s",
                        "rate-limit.limits.guesses.block=1m"),
                of(
                        "a route, which charges nothing",
                        Charged.class,
                        "as of @RateLimited on " + HERE
                                + "$Charged.charged(String), or rejected calls, as of rate-limit.routes[0].",
                        "use two limits",
                        "rate-limit.limits.guesses.rate=1/s",
                        "rate-limit.limits.guesses.block=1m",
                        "rate-limit.routes[0].path=/login",
                        "rate-limit.routes[0].key=clientIp",
                        "rate-limit.routes[0].limits=guesses"),
                of(
                        "a client without a key",
                        Keyed.class,
                        "block is 1m, but calls without a key cannot be blocked, as those of rate-limit.clients.partner"
                                + keyed + "block.",
                        "Set the key",
                        "rate-limit.limits.keyed.rate=1/s",
                        "rate-limit.limits.keyed.block=1m",
                        "rate-limit.clients.partner.hosts=partner.example",
                        "rate-limit.clients.partner.limits=keyed"),
                of(
                        "a route without a key",
                        Keyed.class,
                        "block is 1m, but calls without a key cannot be blocked, as those of rate-limit.routes[0]",
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
