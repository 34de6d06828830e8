package io.ratelimited.spring.internals.check;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.TestLimits;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.context.event.ContextRefreshedEvent;

@ExtendWith(CapturedLog.Capture.class)
class LimitLogTest {

    @Test
    void eachLimitIsSaidOnce(CapturedLog output) {
        ContextRunner.plain()
                .withPropertyValues(
                        "rate-limit.limits.search.rate=100/s",
                        "rate-limit.limits.search.burst=200",
                        "rate-limit.limits.search.policy=wait",
                        "rate-limit.limits.search.max-wait=5000ms",
                        "rate-limit.limits.search.key=clientIp",
                        "rate-limit.limits.search.tier=#plan",
                        "rate-limit.limits.search.tiers.gold.rate=1000/s")
                .run(context -> {
                    TestLimits.of(context).limit("search");
                    context.publishEvent(new ContextRefreshedEvent(context));
                    context.publishEvent(new ContextRefreshedEvent(context));

                    assertThat(output.toString().lines().filter(line -> line.contains("Rate limit search")))
                            .singleElement()
                            .asString()
                            .contains("INFO")
                            .endsWith("Rate limit search: token-bucket, rate 100/s, burst 200, policy wait up to 5s,"
                                    + " key clientIp, tiers [gold], tier #plan (rate-limit.limits.search)");
                });
    }

    @Test
    void theLineOfALimitShowsEachValueThatIsSet(CapturedLog output) {
        ContextRunner.plain()
                .withPropertyValues(
                        "rate-limit.limits.reports.algorithm=adaptive",
                        "rate-limit.limits.reports.late-after=PT0.5S",
                        "rate-limit.limits.reports.priorities=critical,batch",
                        "rate-limit.limits.reports.shares.batch=5%",
                        "rate-limit.limits.login.rate=5/m",
                        "rate-limit.limits.login.key=#user",
                        "rate-limit.limits.login.charge=#error != null ? 1 : 0",
                        "rate-limit.limits.login.block=PT10S",
                        "rate-limit.limits.login.block-factor=3",
                        "rate-limit.limits.login.missing-key=deny",
                        "rate-limit.limits.login.max-waiting=7",
                        "rate-limit.limits.login.http-headers=none")
                .run(context -> {
                    context.publishEvent(new ContextRefreshedEvent(context));

                    assertThat(output)
                            .contains(", late-after 500ms")
                            .contains(", priorities critical,batch")
                            .contains(", shares batch=5%")
                            .contains(", charge #error != null ? 1 : 0")
                            .contains("block 10s")
                            .contains(", block-factor 3")
                            .contains(", missing-key deny")
                            .contains(", max-waiting 7")
                            .contains(", http-headers none");
                });
    }

    @Test
    void aClosedTierIsWarnedOfUnlessTheLimitIsClosedForTheOthers(CapturedLog output) {
        ContextRunner.plain()
                .withPropertyValues(
                        "rate-limit.limits.open.rate=1/s",
                        "rate-limit.limits.open.tiers.shut.rate=0/s",
                        "rate-limit.limits.open.tiers.gold.rate=5/s",
                        "rate-limit.limits.members.rate=0/s",
                        "rate-limit.limits.members.tiers.gold.rate=5/s")
                .run(context -> {
                    context.publishEvent(new ContextRefreshedEvent(context));

                    assertThat(output)
                            .containsOnlyOnce("[RL-270]")
                            .contains("Tier 'shut' of rate limit 'open' rejects every call, because its rate is 0/s."
                                    + " Origin: rate-limit.limits.open. Set a number above 0, or remove the tier.");
                });
    }

    @Test
    void theLineOfALimitNamesTheDefaultsWhereItHasTheirValues(CapturedLog output) {
        ContextRunner.plain()
                .withPropertyValues(
                        "rate-limit.defaults.policy=shadow",
                        "rate-limit.limits.search.rate=10/s",
                        "rate-limit.limits.search.max-wait=2s",
                        "rate-limit.limits.login.rate=5/m",
                        "rate-limit.limits.login.policy=reject")
                .run(context -> {
                    context.publishEvent(new ContextRefreshedEvent(context));

                    assertThat(output)
                            .contains("Rate limit search: token-bucket, rate 10/s, burst 10, policy shadow, max-wait 2s"
                                    + " (rate-limit.limits.search, with rate-limit.defaults)")
                            .contains("Rate limit login: token-bucket, rate 5/m, burst 5, policy reject"
                                    + " (rate-limit.limits.login)");
                });
    }

    @Test
    void aLimitWithTwoMistakesIsWarnedOfBothOnce(CapturedLog output) {
        ContextRunner.plain()
                .withPropertyValues("rate-limit.limits[Shut.call#2].rate=0/s", "rate-limit.limits[c#-api].rate=1/s")
                .run(context -> {
                    context.publishEvent(new ContextRefreshedEvent(context));

                    assertThat(output).containsOnlyOnce("[RL-270]").containsOnlyOnce("[RL-272]");
                });
    }
}
