package io.ratelimited.redis.internals.limiter;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.internals.connection.GuardedConnection;
import io.ratelimited.redis.internals.connection.KeyNames;
import io.ratelimited.redis.internals.connection.RedisConnector;
import io.ratelimited.redis.internals.connection.RedisLink;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import io.ratelimited.redis.internals.connection.SentArguments;
import io.ratelimited.redis.internals.connection.Threads;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The arguments of calls: those that are kept from the last call are sent for equal calls only. */
class ScriptParametersTest {

    private String time = "";
    private final LimiterContext context = context(word -> time);
    private final Limit limit =
            Limit.of("limit", Algorithm.TOKEN_BUCKET).rate("100/d").build();
    private ScriptParameters parameters = parameters(limit);

    /**
     * What limiters have in common where no server is asked.
     *
     * @param testTime replaces the time argument of scripts; see {@code time.lua}
     */
    static LimiterContext context(UnaryOperator<String> testTime) {
        ManualTicker clock = new ManualTicker();
        KeyNames keys = new KeyNames("rl");
        GuardedConnection connection = new GuardedConnection(
                new Nobody(),
                keys,
                Duration.ofSeconds(1).toNanos(),
                clock,
                new Threads(clock, Runnable::run, Runnable::run),
                false,
                testTime);
        return new LimiterContext(
                connection, keys, clock, Runnable::run, new Nodes("node", 1), IllegalStateException::new);
    }

    /** Nothing is sent here. */
    private static final class Nobody implements RedisConnector {

        @Override
        public CompletionStage<Set<String>> discover() {
            return new CompletableFuture<>();
        }

        @Override
        public String address(String key) {
            return "";
        }

        @Override
        public CompletionStage<RedisLink> connect(String address) {
            return new CompletableFuture<>();
        }

        @Override
        public boolean isCluster() {
            return false;
        }

        @Override
        public void close() {
            // Nothing is open.
        }
    }

    private ScriptArguments arguments(String operation, PermitRequest... calls) {
        return arguments(parameters, operation, calls);
    }

    private ScriptArguments arguments(ScriptParameters limited, String operation, PermitRequest... calls) {
        return limited.arguments(operation, context.connection().time(), List.of(calls));
    }

    private ScriptParameters parameters(Limit limited) {
        return new ScriptParameters(limited, context.ticker(), context.nodes());
    }

    /** What a limit says that has not been asked before. */
    private void assertAnew(String operation, PermitRequest... calls) {
        ScriptParameters fresh = parameters(parameters.limit());
        assertThat(SentArguments.of(arguments(operation, calls)))
                .containsExactlyElementsOf(SentArguments.of(arguments(fresh, operation, calls)));
    }

    private static PermitRequest call(long permits, long maxWaitNanos) {
        return new PermitRequest(permits, maxWaitNanos);
    }

    @Test
    void ofTheLastCallAreKeptForTheNextThatAsksForTheSame() {
        assertThat(arguments("take", call(3, 5_000))).isSameAs(arguments("take", call(3, 5_000)));
    }

    @Test
    void areThoseOfTheCallThatAsks() {
        arguments("take", call(3, 5_000));
        assertAnew("take", call(4, 5_000));
        arguments("take", call(3, 5_000));
        assertAnew("take", call(3, 6_000));
        assertAnew("take", call(3, 6_000), call(3, 6_000));
        assertAnew("peek", call(3, 6_000));
        assertAnew("take", PermitRequest.refund(3, "1+0@1/1+0@0"));
    }

    @Test
    void areThoseOfTheLimitAsItIsNow() {
        arguments("take", call(3, 0));
        parameters = parameters(limit.toBuilder().rate("50/d").build());
        assertAnew("take", call(3, 0));
    }

    @Test
    void haveTheTimeOfTheCallWhereTheNodeSaysIt() {
        arguments("take", call(3, 0));
        time = "1000000 0 0";
        assertAnew("take", call(3, 0));
        time = "2000000 0 0";
        assertAnew("take", call(3, 0));
        time = "";
        assertAnew("take", call(3, 0));
    }

    /** Of a bucket: the time, V, its part and its epoch, and how many calls it admits. No call waits for 57 years. */
    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG", "CONCURRENCY"})
    void theReplyOfAnotherAlgorithmIsNone(Algorithm algorithm) {
        Limit.Builder builder = Limit.of("limit", algorithm);
        parameters =
                parameters((algorithm.countsCallsInFlight() ? builder.maxConcurrent(5) : builder.rate("5/d")).build());
        List<Object> reply = List.of(1_796_065_873_166_710L, 1_796_065_873_166_710L, 0L, 0L, 1L, 0L);
        List<PermitRequest> calls =
                List.of(new PermitRequest(1, Duration.ofDays(1).toNanos()));
        assertThatThrownBy(() -> parameters.read(reply, calls)).isInstanceOf(IllegalArgumentException.class);
    }
}
