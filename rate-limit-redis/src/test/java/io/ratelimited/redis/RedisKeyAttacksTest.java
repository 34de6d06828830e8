package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import java.math.BigDecimal;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Keys that callers make up to fill Redis or to reach the budget of somebody else, and operators who read along. */
@Tag("once")
class RedisKeyAttacksTest {

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final RedisBackend backend = REDIS.backend(new ManualTicker());

    private record Customer(long id, String country) {}

    private RateLimiter limiter(Algorithm algorithm) {
        Limit.Builder limit = Limit.of("api", algorithm);
        if (algorithm == Algorithm.CONCURRENCY) {
            limit.maxConcurrent(1);
        } else {
            limit.rate("1/h");
        }
        if (algorithm == Algorithm.WARM_UP) {
            limit.warmup(Duration.ofHours(1));
        }
        return backend.limiter(limit.build(), RedisLimitOptions.DEFAULTS);
    }

    private static List<String> names() {
        return REDIS.server().ask(commands -> commands.keys("*"));
    }

    @Test
    void noKeyOfACallerIsInTheNameOfAKey() {
        List<Object> secrets = List.of(
                "sk-live-secret",
                "1F2E3D-session-secret",
                List.of("ann", "secret"),
                Map.of("token", "secret"),
                new Customer(7, "secret"));
        for (Algorithm algorithm : Algorithm.all()) {
            if (algorithm.findsItsLimit()) {
                continue;
            }
            RateLimiter limiter = limiter(algorithm);
            RateLimiter other = backend.limiter(
                    Limit.of("other", Algorithm.GCRA).rate("1/h").build(), RedisLimitOptions.DEFAULTS.tier("gold"));
            for (Object secret : secrets) {
                limiter.reserve(secret, 1, 0);
                AllOf.reserve(List.of(Claim.of(limiter, secret, 1, 0), Claim.of(other, secret, 1, 0)));
                limiter.peek(secret, 1, 0);
            }
            assertThat(names())
                    .hasSizeGreaterThanOrEqualTo(secrets.size())
                    .noneMatch(name -> name.contains("secret") || name.contains("ann") || name.contains("Customer"));
        }
    }

    @Test
    void noKeyOfACallerMakesTheNameOfAKeyLonger() {
        RateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET);
        Stream.of(
                        "",
                        "k",
                        "k".repeat(235),
                        "k".repeat(100_000),
                        List.of("k".repeat(1_000_000), "k"),
                        "🔑{}%~".repeat(9))
                .forEach(key -> assertThat(limiter.tryAcquire(key, 1)).isTrue());
        assertThat(names().stream().filter(name -> name.contains(":api~")))
                .hasSize(6)
                .allMatch(name -> name.matches("rl:\\{[\\w-]{27}}:api~\\w+"));
    }

    @Test
    void anotherSpellingOfANumberOrInstantBuysNoBudget() {
        RateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET);
        assertThat(Stream.of(
                                new BigDecimal("1.0"),
                                new BigDecimal("1.00"),
                                0.0,
                                -0.0,
                                OffsetDateTime.parse("2026-11-25T10:30+02:00"),
                                OffsetDateTime.parse("2026-11-25T08:30Z"))
                        .filter(key -> limiter.tryAcquire(key, 1)))
                .hasSize(3);
    }

    @Test
    void noTwoKeysShareABudget() {
        RateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET);
        String longText = "x".repeat(300);
        List<Object> keys = List.of(
                42,
                42L,
                "42",
                "(Long)42x",
                List.of("p, q", "r"),
                List.of("p", "q, r"),
                "[p, q, r]",
                Arrays.asList("p", null),
                List.of("p", "null"),
                Set.of("p"),
                List.of("p"),
                new Customer(7, "de"),
                "Customer[id=7, country=de]",
                longText + "?",
                longText + '\ud800',
                longText + '\ud801',
                "\ud800",
                "?");
        assertThat(keys).allMatch(key -> limiter.tryAcquire(key, 1)).noneMatch(key -> limiter.tryAcquire(key, 1));
    }

    @Test
    void equalKeysShareABudgetOnAllNodes() {
        RateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET);
        RateLimiter node = REDIS.backend(new ManualTicker())
                .limiter(Limit.of("api", Algorithm.TOKEN_BUCKET).rate("1/h").build(), RedisLimitOptions.DEFAULTS);
        List<Object> keys = List.of(42L, List.of("p", "q"), new Customer(7, "de"), "k".repeat(300));
        assertThat(keys).allMatch(key -> limiter.tryAcquire(key, 1)).noneMatch(key -> node.tryAcquire(key, 1));
        node.reset(List.of("p", "q"));
        assertThat(node.peek(new String[] {"p", "q"}, 1, 0).admitted()).isTrue();
    }

    @Test
    void whatHasNoKnownTextIsNoKey() {
        RateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> limiter.tryAcquire(new BitSet(), 1))
                .withMessageContaining("java.util.BitSet is not a key");
        assertThat(names()).noneMatch(name -> name.contains(":api~"));
    }
}
