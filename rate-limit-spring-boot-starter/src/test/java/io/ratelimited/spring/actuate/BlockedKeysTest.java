package io.ratelimited.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.TestLimits;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** What operators see of blocked keys, and do about them. */
class BlockedKeysTest {

    private final ManualTicker ticker = new ManualTicker();
    private final ApplicationContextRunner runner = Contexts.runner(ticker)
            .withConfiguration(AutoConfigurations.of(
                    RateLimitsEndpointAutoConfiguration.class, RateLimitMetricsAutoConfiguration.class))
            .withBean(MeterRegistry.class, SimpleMeterRegistry::new)
            .withPropertyValues(
                    "management.endpoints.web.exposure.include=ratelimits",
                    "management.endpoints.jmx.exposure.include=ratelimits",
                    "rate-limit.limits.door.rate=1/s",
                    "rate-limit.limits.door.block=1m",
                    "rate-limit.limits.door.tiers.gold.rate=2/s",
                    "rate-limit.limits.plain.rate=1/s");

    private static void offend(TestLimits limits, Object... keys) {
        for (Object key : keys) {
            limits.tryAcquire("door", key);
            limits.tryAcquire("door", key);
        }
    }

    private String until(Duration left) {
        return Instant.EPOCH
                .plusNanos(ticker.epochNanos())
                .plus(left)
                .plusNanos(999_999_999)
                .truncatedTo(ChronoUnit.SECONDS)
                .toString();
    }

    @Test
    void aLimitListsItsBlockedKeysAndWhenTheirBlocksEnd() {
        runner.withPropertyValues("rate-limit.actuator.mask-keys=false").run(context -> {
            TestLimits limits = TestLimits.of(context);
            RateLimitsEndpoint endpoint = context.getBean(RateLimitsEndpoint.class);
            assertThat(endpoint.limit("door", null))
                    .containsEntry("block", "1m")
                    .containsEntry("blockFactor", 2.0)
                    .containsEntry("blockMax", "1d")
                    .containsEntry("blocked", 0)
                    .containsEntry("blockedKeys", List.of());

            offend(limits, "ann");
            ticker.advance(Duration.ofMinutes(1));
            offend(limits, "ann", 42);
            limits.override("door", "bob", LimitChange.rate("1/s"), null);
            offend(limits, "bob");
            ticker.advance(Duration.ofSeconds(10));

            String minute = until(Duration.ofSeconds(50));
            assertThat(endpoint.limit("door", null)).containsEntry("blocked", 3);
            assertThat(endpoint.limit("door", null).get("blockedKeys"))
                    .asInstanceOf(InstanceOfAssertFactories.LIST)
                    .startsWith(
                            Map.of("key", "ann", "until", until(Duration.ofSeconds(110)), "left", 110.0, "level", 2))
                    .contains(
                            Map.of("key", "(Integer)42", "until", minute, "left", 50.0, "level", 1),
                            Map.of("key", "bob", "until", minute, "left", 50.0, "level", 1));
            assertThat(endpoint.limit("door", "42"))
                    .containsEntry("blocked", true)
                    .containsEntry("blockedUntil", minute)
                    .containsEntry("blockLevel", 1)
                    .containsEntry("retryAfter", 50.0);
            assertThat(endpoint.limit("door", "bob")).containsEntry("blocked", true);
            assertThat(endpoint.limit("door", "eve"))
                    .containsEntry("blocked", false)
                    .doesNotContainKey("blockedUntil");
            assertThat(endpoint.limit("plain", null)).doesNotContainKeys("blocked", "block", "blockFactor", "blockMax");
            assertThat(endpoint.limit("plain", "ann")).doesNotContainKey("blocked");
        });
    }

    @Test
    void forgettingAKeyForgivesItAtOnce() {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            RateLimitsEndpoint endpoint = context.getBean(RateLimitsEndpoint.class);
            offend(limits, "ann", "bob");
            Object blocked = endpoint.limit("door", null).get("blockedKeys");
            String mask = ((List<?>) blocked).get(0) instanceof Map<?, ?> first ? "" + first.get("key") : "";
            assertThat(mask).startsWith("masked:");

            endpoint.forget("door", mask);

            assertThat(endpoint.limit("door", null)).containsEntry("blocked", 1);
            assertThat(limits.tryAcquire("door", "ann") ^ limits.tryAcquire("door", "bob"))
                    .isTrue();
            limits.reset("door", "ann");
            limits.reset("door", "bob");
            offend(limits, "ann");
            assertThat(limits.peek("door", "ann").retryAfter())
                    .as("the level is forgotten too")
                    .isEqualTo(Duration.ofMinutes(1));
        });
    }

    @Test
    void operatorsChangeBlocksAsOtherValues() {
        runner.run(context -> {
            RateLimitsEndpoint endpoint = context.getBean(RateLimitsEndpoint.class);
            assertThat(endpoint.update("door", "block=5m, blockFactor=3, blockMax=1h"))
                    .containsEntry("block", "5m")
                    .containsEntry("blockFactor", 3.0)
                    .containsEntry("blockMax", "1h");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> endpoint.update("door", "blockMax=1m"))
                    .withMessageContaining("blockMax is 1m, but must be from block, 5m, to 365d");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> endpoint.update("door", "block=soon"))
                    .withMessageContaining("block of rate limit 'door' cannot be \"soon\"; use a duration");
            assertThat(endpoint.update("door", "block=0s")).doesNotContainKeys("blockFactor", "blockMax", "blocked");
            assertThat(endpoint.update("door", "tier=gold, block=9m").get("tiers"))
                    .asInstanceOf(InstanceOfAssertFactories.MAP)
                    .extractingByKey("gold", InstanceOfAssertFactories.MAP)
                    .containsEntry("block", "9m");
            assertThat(endpoint.update("door", "revert=true")).containsEntry("block", "1m");
            assertThat(endpoint.update("plain", "block=1m"))
                    .as("a limit that only code uses has a key with each call")
                    .containsEntry("block", "1m");
        });
    }

    @Test
    void blocksAreCountedAndBlockedKeysMeasured() {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            MeterRegistry meters = context.getBean(MeterRegistry.class);
            assertThat(meters.get("rate.limit.blocks")
                            .tag("limit", "door")
                            .functionCounter()
                            .count())
                    .isZero();
            offend(limits, "ann", "bob", "ann");
            ticker.advance(Duration.ofMinutes(1));
            offend(limits, "ann");

            assertThat(meters.get("rate.limit.blocks")
                            .tag("limit", "door")
                            .functionCounter()
                            .count())
                    .isEqualTo(3);
            assertThat(meters.get("rate.limit.blocked")
                            .tag("limit", "door")
                            .gauge()
                            .value())
                    .isEqualTo(1);
            assertThat(meters.find("rate.limit.blocks").tag("limit", "plain").functionCounter())
                    .as("a limit without blocks")
                    .isNull();
            assertThat(meters.getMeters())
                    .filteredOn(meter -> meter.getId().getName().startsWith("rate.limit.block"))
                    .allSatisfy(meter -> assertThat(meter.getId().getTags()).hasSize(1));

            limits.change("plain", LimitChange.of("block", "1m"));
            limits.tryAcquire("plain", "ann");
            limits.tryAcquire("plain", "ann");
            assertThat(meters.get("rate.limit.blocks")
                            .tag("limit", "plain")
                            .functionCounter()
                            .count())
                    .isEqualTo(1);
        });
    }
}
