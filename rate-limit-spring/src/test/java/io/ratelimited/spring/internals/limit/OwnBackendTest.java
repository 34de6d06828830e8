package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.Explanation;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.TestLimits;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** A backend is a bean, and properties choose it by its name. */
class OwnBackendTest {

    private static final ContextRunner RUNNER = ContextRunner.limited().withBean(SharedMemoryBackend.class);

    @Test
    void allLimitsAreOnTheBackendThatThePropertyNames() {
        ContextRunner shared =
                RUNNER.withPropertyValues("rate-limit.backend=shared-memory", "rate-limit.limits.orders.rate=2/d");
        shared.run(first -> shared.run(second -> {
            assertThat(TestLimits.of(first).tryAcquire("orders", "ada")).isTrue();
            assertThat(TestLimits.of(second).tryAcquire("orders", "ada")).isTrue();
            assertThat(TestLimits.of(first).tryAcquire("orders", "ada")).isFalse();
            assertThat(TestLimits.of(first).tryAcquire("orders", "bob")).isTrue();
        }));
    }

    @Test
    void oneLimitIsOnTheBackendThatItNames() {
        ContextRunner shared = RUNNER.withPropertyValues(
                "rate-limit.limits.invoices.rate=1/d",
                "rate-limit.limits.invoices.backend=Shared-Memory",
                "rate-limit.limits.own.rate=1/d");
        shared.run(first -> shared.run(second -> {
            TestLimits limits = TestLimits.of(second);
            assertThat(TestLimits.of(first).tryAcquire("invoices", null)).isTrue();
            assertThat(limits.tryAcquire("invoices", null)).isFalse();
            assertThat(TestLimits.of(first).tryAcquire("own", null)).isTrue();
            assertThat(limits.tryAcquire("own", null)).isTrue();
            assertThat(limits.limit("invoices").properties().get("backend")).isEqualTo("shared-memory");
        }));
    }

    @Test
    void anUnknownNameIsRefusedAtTheStartWithTheNamesThatExist() {
        RUNNER.withPropertyValues("rate-limit.backend=share-memory").run(context -> {
            Explanation analysis = Explanation.of(context.getStartupFailure());
            assertThat(analysis.getDescription())
                    .contains("rate-limit.backend is share-memory")
                    .contains("did you mean 'shared-memory'?")
                    .contains("there are [memory, redis, shared-memory]");
            assertThat(analysis.getAction())
                    .contains("memory, redis, shared-memory")
                    .contains("LimiterFactory");
        });
    }

    /** Nothing of Redis is made unless a property names it, so no bean knows the name. */
    @Test
    void aMisspelledRedisIsSuggested() {
        for (String property :
                List.of("rate-limit.backend", "rate-limit.defaults.backend", "rate-limit.limits.orders.backend")) {
            ContextRunner.limited()
                    .withPropertyValues("rate-limit.limits.orders.rate=2/d", property + "=redsi")
                    .run(context -> assertThat(
                                    Explanation.of(context.getStartupFailure()).getDescription())
                            .as(property)
                            .contains("is redsi", "did you mean 'redis'?", "there are [memory, redis]"));
        }
    }

    @Test
    void anUnknownNameOfOneLimitIsRefusedAtTheStart() {
        RUNNER.withPropertyValues("rate-limit.limits.orders.rate=2/d", "rate-limit.limits.orders.backend=tape")
                .run(context -> assertThat(
                                Explanation.of(context.getStartupFailure()).getDescription())
                        .contains("orders", "rate-limit.limits.orders.backend", "backend is tape")
                        .contains("there are [memory, redis, shared-memory]"));
    }

    @Test
    void aPropertyThatTheBackendDoesNotReadIsRefused() {
        RUNNER.withPropertyValues(
                        "rate-limit.limits.orders.rate=2/d",
                        "rate-limit.limits.orders.backend=shared-memory",
                        "rate-limit.limits.orders.on-failure=deny")
                .run(context -> assertThat(
                                Explanation.of(context.getStartupFailure()).getDescription())
                        .contains("onFailure is deny, but backend shared-memory does not support it"));
    }

    @Test
    void aDisabledApplicationStartsWithoutItsBackend() {
        ContextRunner.limited()
                .withPropertyValues("rate-limit.enabled=false", "rate-limit.backend=redis")
                .run(context -> assertThat(context).hasNotFailed());
    }

    @Test
    void theGuideShowsTheBackendOfThisTest() throws IOException {
        Matcher snippet = Pattern.compile("(?s)```java\n(.*?)```")
                .matcher(Files.readString(Path.of("../docs/engineering/own-backend.md")));
        assertThat(snippet.find()).isTrue();
        assertThat(Files.readString(
                        Path.of("src/test/java/io/ratelimited/spring/internals/limit/SharedMemoryBackend.java")))
                .contains(snippet.group(1));
    }

    @Test
    void aBlockThatTheBackendWouldNotNoticeStopsTheStartAndAChange() {
        RUNNER.withPropertyValues(
                        "rate-limit.backend=shared-memory",
                        "rate-limit.limits.blocked.rate=1/s",
                        "rate-limit.limits.blocked.block=1m")
                .run(context -> assertThat(context.getStartupFailure())
                        .hasMessageContaining("'blocked' is invalid: block is 1m, but backend"
                                + " shared-memory does not support it"));
        RUNNER.withPropertyValues("rate-limit.backend=shared-memory", "rate-limit.limits.unblocked.rate=1/s")
                .run(context -> assertThatExceptionOfType(InvalidRateLimitException.class)
                        .isThrownBy(() -> TestLimits.of(context).change("unblocked", LimitChange.of("block", "1m")))
                        .withMessageContaining("but backend shared-memory does not support it"));
    }
}
