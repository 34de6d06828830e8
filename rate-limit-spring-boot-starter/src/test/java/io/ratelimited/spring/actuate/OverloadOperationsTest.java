package io.ratelimited.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.internals.overload.FoundLimitHistory;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordingFile;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.actuate.autoconfigure.endpoint.EndpointAutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** What operators see of a limit that finds itself, and what they can change. */
class OverloadOperationsTest {

    private final ManualTicker ticker = new ManualTicker();
    private final PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(
                    AopAutoConfiguration.class,
                    EndpointAutoConfiguration.class,
                    RateLimitAutoConfiguration.class,
                    RateLimitMetricsAutoConfiguration.class,
                    RateLimitsEndpointAutoConfiguration.class))
            .withBean(Ticker.class, () -> ticker)
            .withBean(MeterRegistry.class, () -> registry)
            .withBean(Calls.class)
            .withPropertyValues(
                    "spring.jmx.enabled=true",
                    "management.endpoints.jmx.exposure.include=ratelimits",
                    "rate-limit.limits.busy.algorithm=adaptive",
                    "rate-limit.limits.busy.max-concurrent=2",
                    "rate-limit.limits.busy.priorities=critical,batch",
                    "rate-limit.limits.plain.algorithm=adaptive");

    static class Calls {

        @RateLimited(name = "busy", priority = "#kind")
        public String call(String kind, Callable<String> body) throws Exception {
            return body.call();
        }
    }

    private static Callable<String> refused(Calls calls, String kind) {
        return () -> {
            assertThatThrownBy(() -> calls.call(kind, () -> "no place")).isInstanceOf(RateLimitExceededException.class);
            return "done";
        };
    }

    private double value(String meter, String... tags) {
        return registry.get(meter)
                .tag("limit", "busy")
                .tags(tags)
                .meter()
                .measure()
                .iterator()
                .next()
                .getValue();
    }

    @Test
    void metersShowWhatIsFoundAndWhoIsRefused() {
        runner.run(context -> {
            Calls calls = context.getBean(Calls.class);
            calls.call("batch", () -> {
                assertThat(value("rate.limit.in.flight")).isEqualTo(1);
                return refused(calls, "batch").call() + refused(calls, "else").call();
            });
            assertThat(value("rate.limit.concurrency")).isEqualTo(2);
            assertThat(value("rate.limit.in.flight")).isZero();
            assertThat(value("rate.limit.base.time")).isNaN();
            assertThat(value("rate.limit.refused", "priority", "batch")).isEqualTo(2);
            assertThat(value("rate.limit.refused", "priority", "critical")).isZero();
            assertThat(value("rate.limit.decisions", "outcome", "rejected")).isEqualTo(2);
            assertThat(registry.find("rate.limit.refused").tag("limit", "plain").meters())
                    .extracting(meter -> meter.getId().getTag("priority"))
                    .containsExactly("none");
            assertThat(registry.scrape()).contains("rate_limit_base_time_seconds{limit=\"busy\"}");
        });
        assertThat(registry.getMeters()).extracting(Meter::getId).isEmpty();
    }

    @Test
    void refusalsAreThoseOfTheirClassAlsoAfterAChange() {
        runner.run(context -> {
            Calls calls = context.getBean(Calls.class);
            TestLimits limits = TestLimits.of(context);
            calls.call("batch", refused(calls, "batch"));
            limits.change("busy", LimitChange.of("priorities", "batch, late, critical"));
            calls.call(
                    "batch",
                    () -> refused(calls, "late").call()
                            + refused(calls, "critical").call());
            assertThat(value("rate.limit.refused", "priority", "batch")).isEqualTo(1);
            assertThat(value("rate.limit.refused", "priority", "late")).isEqualTo(1);
            assertThat(value("rate.limit.refused", "priority", "critical")).isEqualTo(1);
        });
        assertThat(registry.getMeters()).isEmpty();
    }

    @Test
    void theEndpointShowsWhatIsFoundAndBoundsIt() {
        runner.run(context -> {
            RateLimitsEndpoint endpoint = context.getBean(RateLimitsEndpoint.class);
            Calls calls = context.getBean(Calls.class);
            calls.call("batch", refused(calls, "batch"));

            Map<String, Object> report = endpoint.limit("busy", null);
            assertThat(report)
                    .containsEntry("algorithm", "adaptive")
                    .containsEntry("maxConcurrent", 2)
                    .containsEntry("minConcurrent", 2)
                    .containsEntry("priorities", List.of("critical", "batch"))
                    .containsEntry("inFlight", 0L)
                    .doesNotContainKeys("busiest", "lateAfter", "shares", "rate");
            assertThat(report.get("found"))
                    .isEqualTo(Map.of(
                            "limit",
                            2,
                            "inFlight",
                            0L,
                            "waiting",
                            0,
                            "refused",
                            Map.of("critical", 0L, "batch", 1L),
                            "changes",
                            List.of()));

            Map<String, Object> changed =
                    endpoint.update("busy", "maxConcurrent=50, minConcurrent=10, lateAfter=1s, shares=batch=5%");
            assertThat(changed)
                    .containsEntry("maxConcurrent", 50)
                    .containsEntry("minConcurrent", 10)
                    .containsEntry("inFlight", 0L)
                    .containsEntry("lateAfter", "1s")
                    .containsEntry("shares", Map.of("batch", "5%"))
                    .containsEntry("scope", "instance");
            assertThat(changed.get("found"))
                    .extracting("changes")
                    .asInstanceOf(InstanceOfAssertFactories.LIST)
                    .first(InstanceOfAssertFactories.map(String.class, Object.class))
                    .containsEntry("from", 2)
                    .containsEntry("reason", "bounds")
                    .containsKeys("at", "to");

            assertThatThrownBy(() -> endpoint.update("busy", "minConcurrent=51"))
                    .hasMessageContaining("from 1 to maxConcurrent, which is 50")
                    .hasMessageContaining("Nothing was changed");
            assertThatThrownBy(() -> endpoint.update("busy", "shares=bulk=5%"))
                    .hasMessageContaining("must be one of the priorities");
            assertThatThrownBy(() -> endpoint.update("busy", "shares=5%"))
                    .hasMessageContaining("use a text such as \"batch=5%, normal=20%\"");
            TestLimits limits = TestLimits.of(context);
            assertThat(limits.revert("busy").maxConcurrent()).isEqualTo(2);
        });
    }

    @Test
    void prioritiesChangeWhileCallsGo() {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            limits.change("busy", LimitChange.of("priorities", "batch, critical"));
            assertThat(limits.limit("busy").limit().priorities()).containsExactly("batch", "critical");
            Calls calls = context.getBean(Calls.class);
            assertThat(calls.call("critical", () -> calls.call("batch", () -> "went")))
                    .isEqualTo("went");
            assertThatThrownBy(() -> limits.change("busy", LimitChange.of("priorities", "")))
                    .hasMessageContaining("but there are no priorities to choose from");
        });
    }

    @Test
    void theFlightRecorderHasEachChangeWithItsReason(@TempDir Path directory) throws IOException {
        try (Recording recording = new Recording()) {
            recording.enable("io.ratelimited.FoundLimit");
            recording.start();
            runner.run(context -> TestLimits.of(context)
                    .change("busy", LimitChange.of("max-concurrent", "50").with("min-concurrent", "10")));
            recording.stop();
            Path file = directory.resolve("found.jfr");
            recording.dump(file);
            assertThat(RecordingFile.readAllEvents(file))
                    .filteredOn(event -> event.getEventType().getName().equals("io.ratelimited.FoundLimit"))
                    .extracting(
                            event -> event.getString("limit"),
                            event -> event.getInt("from"),
                            event -> event.getString("reason"))
                    .containsExactly(tuple("busy", 2, "bounds"));
        }
    }

    @Test
    void onlyTheLastChangesAreKept() {
        FoundLimitHistory history = new FoundLimitHistory("busy", ticker);
        for (int i = 1; i <= 30; i++) {
            ticker.advance(Duration.ofSeconds(1));
            history.add(new io.ratelimited.core.overload.FoundLimitChange(
                    ticker.nanos(), i, i + 1, io.ratelimited.core.overload.FoundLimitChange.Reason.ROOM));
        }
        assertThat(history.last()).hasSize(20);
        assertThat(history.last().get(0).change().to()).isEqualTo(31);
        assertThat(Duration.between(
                        history.last().get(1).at(), history.last().get(0).at()))
                .isEqualTo(Duration.ofSeconds(1));
    }

    @Test
    void aShadowRefusesNobodyAndCountsWhomItWould() {
        runner.withPropertyValues("rate-limit.limits.busy.policy=shadow").run(context -> {
            Calls calls = context.getBean(Calls.class);
            assertThat(calls.call("batch", () -> calls.call("batch", () -> "went")))
                    .isEqualTo("went");
            assertThat(value("rate.limit.refused", "priority", "batch")).isEqualTo(1);
            assertThat(value("rate.limit.decisions", "outcome", "shadowed")).isEqualTo(1);
            assertThat(value("rate.limit.in.flight")).isZero();
        });
    }
}
