package io.ratelimited.spring.internals.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Properties of a limit that calls of {@link RateLimits} do not read are warned of, once. */
@ExtendWith(CapturedLog.Capture.class)
final class CallsInCodeTest {

    private static final String PREFIX = "rate-limit.limits.search.";
    private static final String CODE = "[RL-219]";

    /** What calls of code do not read, and what they read. */
    private static final String[] BOTH = {
        PREFIX + "rate=9/m",
        PREFIX + "burst=20",
        PREFIX + "http-headers=none",
        PREFIX + "permits=#a0",
        PREFIX + "when=#a0 > 1",
        PREFIX + "charge=#a0",
        PREFIX + "tier=#a1",
        PREFIX + "tiers.gold.rate=90/m",
        PREFIX + "fallback=none",
        PREFIX + "missing-key=deny"
    };

    private static final String UNREAD = "Rate limit 'search' sets permits, when, charge, tier, fallback, missing-key,"
            + " which RateLimits ignores";

    static Stream<Consumer<RateLimits>> calls() {
        return Stream.of(
                limits -> limits.execute("search", "ann", () -> "found"),
                limits -> limits.tryAcquire("search", "ann"),
                limits -> limits.tryAcquire("search", "ann", 2),
                limits -> limits.reserve("search", "ann", 2).close(),
                limits -> limits.reserveAsync("search", "ann", 2).join().close(),
                limits -> limits.executeAsync("search", "ann", () -> CompletableFuture.completedFuture("found"))
                        .join());
    }

    @ParameterizedTest
    @MethodSource("calls")
    void theFirstCallNamesWhatItDoesNotRead(Consumer<RateLimits> call, CapturedLog log) {
        run(BOTH, limits -> {
            limits.peek("search", "ann");
            limits.remaining("ann");
            assertThat(log).doesNotContain(CODE);
            call.accept(limits);
            assertThat(log).containsOnlyOnce(CODE).contains(UNREAD, "Origin: rate-limit.limits.search.");
            List.of(limits, limits.withPriority("batch")).forEach(call);
            assertThat(log).containsOnlyOnce(CODE);
        });
    }

    /** A key that code passes is not missed, and the property lists the limit among those with keys. */
    @ParameterizedTest
    @CsvSource(nullValues = "none", textBlock = """
            key=#user,          none, true
            key=#user,          ann,  false
            permits=2,          ann,  true
            permits=1,          ann,  false
            permits=,           ann,  false
            missing-key=shared, none, false
            missing-key=skip,   ann,  true
            """)
    void namesNothingThatMakesNoDifference(String property, String key, boolean named, CapturedLog log) {
        run(new String[] {PREFIX + "rate=9/m", PREFIX + property}, limits -> {
            limits.execute("search", key, () -> "found");
            assertThat(log.toString().contains("sets " + property.split("=")[0] + ", which RateLimits ignores"))
                    .isEqualTo(named);
            assertThat(log.toString().contains(CODE)).isEqualTo(named);
        });
    }

    @Test
    void theOtherPropertiesOfUses(CapturedLog log) {
        run(
                new String[] {
                    PREFIX + "algorithm=concurrency",
                    PREFIX + "max-concurrent=2",
                    PREFIX + "priorities=critical,batch",
                    PREFIX + "priority='batch'"
                },
                limits -> {
                    limits.execute("search", null, () -> "found");
                    assertThat(log).contains("sets priority, which RateLimits ignores");
                });
    }

    /** With blocks, the property says that charges are the violations, and code settles them. */
    @Test
    void aChargeOfALimitWithBlocksIsRead(CapturedLog log) {
        run(
                new String[] {
                    PREFIX + "rate=9/m", PREFIX + "block=1m", PREFIX + "charge=1", PREFIX + "block-unless=#known"
                },
                limits -> {
                    limits.reserve("search", "ann", 1).close();
                    assertThat(log).contains("sets block-unless, which RateLimits ignores");
                });
    }

    @ParameterizedTest
    @ValueSource(strings = {"concurrency", "adaptive"})
    void aCallInFlightIsNotTried(String algorithm) {
        run(new String[] {PREFIX + "algorithm=" + algorithm, PREFIX + "max-concurrent=2"}, limits -> {
            for (String key : new String[] {null, "ann"}) {
                assertThatThrownBy(() -> limits.tryAcquire("search", key))
                        .isInstanceOf(UnsupportedOperationException.class)
                        .hasMessageContaining("'search'")
                        .hasMessageContaining("execute or reserve");
            }
        });
    }

    /** Those of an annotation are of its method, and defaults are of many limits. */
    @Test
    void thoseOfOthersAreNotNamed(CapturedLog log) {
        ContextRunner.with(ContextRunner.limited(new ManualTicker()), Search.class)
                .withPropertyValues("rate-limit.defaults.missing-key=deny")
                .run(context -> {
                    context.getBean(RateLimits.class).execute("search", "ann", () -> "found");
                    assertThat(log).doesNotContain(CODE);
                });
    }

    private static void run(String[] properties, Consumer<RateLimits> calls) {
        ContextRunner.limited(new ManualTicker())
                .withPropertyValues(properties)
                .run(context -> calls.accept(context.getBean(RateLimits.class)));
    }

    static class Search {

        @RateLimited(
                name = "search",
                rate = "9/m",
                key = "#user",
                permits = "#cost",
                when = "#cost > 0",
                charge = "1",
                fallback = "none")
        public String find(String user, long cost) {
            return user + cost;
        }

        public String none(String user, long cost) {
            return "none" + user + cost;
        }
    }
}
