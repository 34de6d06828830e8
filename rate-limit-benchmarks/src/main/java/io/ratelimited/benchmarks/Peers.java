package io.ratelimited.benchmarks;

import com.alibaba.csp.sentinel.Entry;
import com.alibaba.csp.sentinel.EntryType;
import com.alibaba.csp.sentinel.SphU;
import com.alibaba.csp.sentinel.slots.block.BlockException;
import com.alibaba.csp.sentinel.slots.block.RuleConstant;
import com.alibaba.csp.sentinel.slots.block.flow.FlowRule;
import com.alibaba.csp.sentinel.slots.block.flow.FlowRuleManager;
import com.alibaba.csp.sentinel.slots.block.flow.param.ParamFlowRule;
import com.alibaba.csp.sentinel.slots.block.flow.param.ParamFlowRuleManager;
import io.github.bucket4j.Bucket;
import io.github.resilience4j.ratelimiter.RateLimiter;
import io.github.resilience4j.ratelimiter.RateLimiterConfig;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import java.time.Duration;
import java.util.List;

/** The same limit, in the words of each library. */
final class Peers {

    private static final String RESOURCE = "benchmark";
    private static final String RESOURCE_BY_PARAMETER = "benchmark by parameter";

    private Peers() {}

    static Limit limit(Algorithm algorithm, String rate) {
        Limit.Builder limit = Limit.of("benchmark", algorithm).rate(rate);
        return algorithm == Algorithm.WARM_UP
                ? limit.warmup(Duration.ofMillis(1)).build()
                : limit.build();
    }

    /** Permits a second; 1 means one a day, to be refused. */
    static Bucket bucket4j(long permits) {
        Duration period = permits == 1 ? Duration.ofDays(1) : Duration.ofSeconds(1);
        return Bucket.builder()
                .addLimit(limit -> limit.capacity(permits).refillGreedy(permits, period))
                .withNanosecondPrecision()
                .build();
    }

    static RateLimiter resilience4j(int permits) {
        return RateLimiter.of(
                "benchmark",
                RateLimiterConfig.custom()
                        .limitForPeriod(permits)
                        .limitRefreshPeriod(permits == 1 ? Duration.ofDays(1) : Duration.ofSeconds(1))
                        .timeoutDuration(Duration.ZERO)
                        .build());
    }

    static void sentinel(double permitsPerSecond) {
        FlowRule rule = new FlowRule(RESOURCE);
        rule.setGrade(RuleConstant.FLOW_GRADE_QPS);
        rule.setCount(permitsPerSecond);
        FlowRuleManager.loadRules(List.of(rule));
    }

    static boolean sentinel() {
        try (Entry entry = SphU.entry(RESOURCE)) {
            return entry != null;
        } catch (BlockException ex) {
            return false;
        }
    }

    static void sentinelByParameter(double permitsPerSecond) {
        ParamFlowRule rule = new ParamFlowRule(RESOURCE_BY_PARAMETER).setParamIdx(0);
        rule.setGrade(RuleConstant.FLOW_GRADE_QPS);
        rule.setCount(permitsPerSecond);
        ParamFlowRuleManager.loadRules(List.of(rule));
    }

    static boolean sentinelByParameter(String key) {
        try {
            SphU.entry(RESOURCE_BY_PARAMETER, EntryType.IN, 1, key).exit(1, key);
            return true;
        } catch (BlockException ex) {
            return false;
        }
    }
}
