package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Rate;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** With {@code rate-limit.enabled: false} every call goes, and code that asks for limits works as ever. */
@ExtendWith(CapturedLog.Capture.class)
final class DisabledTest {

    @Test
    void everyCallGoesWhateverItsNameAndBudget() {
        run(limits -> {
            for (int i = 0; i < 5; i++) {
                assertThat(limits.tryAcquire("login", "ann")).isTrue();
                assertThat(limits.tryAcquire("only an annotation has it", "ann"))
                        .isTrue();
                assertThat(limits.<String>execute("closed", null, () -> "called"))
                        .isEqualTo("called");
            }
        });
    }

    @Test
    void peekReportsThatTheCallGoes() {
        run(limits -> assertThat(new String[] {"login", "closed", "cluster", "flight", "only an annotation has it"})
                .allSatisfy(name -> {
                    assertThat(limits.peek(name, "ann").admitted()).isTrue();
                    assertThat(limits.peek(name, "ann").limit()).isEqualTo(name);
                }));
    }

    @Test
    void nobodyHasAQuota() {
        run(limits -> {
            limits.limit("login");
            assertThat(limits.remaining("ann")).isEmpty();
        });
    }

    @Test
    void resetDoesNothing() {
        run(limits -> {
            limits.reset("login", "ann");
            limits.reset("only an annotation has it", "ann");
        });
    }

    @Test
    void limitsOfThePropertiesCanBeReadAndChanged() {
        run(limits -> {
            assertThat(limits.limits())
                    .extracting(NamedLimit::name)
                    .containsExactly("closed", "cluster", "flight", "login");
            assertThat(limits.limit("login").limit().rate()).isEqualTo(Rate.parse("5/m"));
            assertThat(limits.limit("cluster").limit().algorithm()).isEqualTo(Algorithm.GCRA);
            assertThat(limits.change("login", LimitChange.rate("9/m")).rate()).isEqualTo(Rate.parse("9/m"));
        });
    }

    /** An annotation may define the rest. */
    @Test
    void aLimitThatPropertiesDefineInPartIsLeftOutWithoutAWarning(CapturedLog output) {
        ContextRunner.limited()
                .withPropertyValues(
                        "rate-limit.enabled=false",
                        "rate-limit.limits.login.rate=5/m",
                        "rate-limit.limits.search.policy=shadow")
                .run(context -> assertThat(TestLimits.of(context).limits())
                        .extracting(NamedLimit::name)
                        .containsExactly("login"));
        assertThat(output).doesNotContain("is ignored");
    }

    /** Nobody reads annotations then, so that any other name may be that of one. */
    @Test
    void limitsOfAnnotationsCanBeReadAndChangedToNoEffect() {
        run(limits -> {
            String name = "only an annotation has it";
            assertThat(limits.limit(name).name()).isEqualTo(name);
            assertThat(limits.limit(name).limit().isUnlimited()).isTrue();
            assertThat(limits.limit(name).tiers()).isEmpty();
            assertThat(limits.change(name, LimitChange.rate("9/m")).isUnlimited())
                    .isTrue();
            assertThat(limits.change(name, LimitChange.rate("9/m")).isUnlimited())
                    .isTrue();
            assertThat(limits.revert(name).isUnlimited()).isTrue();
            limits.override(name, "ann", LimitChange.rate("9/m"), null);
            limits.removeOverride(name, "ann");
            assertThat(limits.tryAcquire(name, "ann")).isTrue();
        });
    }

    private static void run(Consumer<TestLimits> test) {
        ContextRunner.limited()
                .withPropertyValues(
                        "rate-limit.enabled=false",
                        "rate-limit.limits.login.rate=5/m",
                        "rate-limit.limits.login.key=#user",
                        "rate-limit.limits.closed.rate=0/s",
                        "rate-limit.limits.flight.algorithm=concurrency",
                        "rate-limit.limits.flight.max-concurrent=1",
                        "rate-limit.limits.cluster.algorithm=gcra",
                        "rate-limit.limits.cluster.rate=5/m",
                        "rate-limit.limits.cluster.backend=redis",
                        "rate-limit.limits.cluster.max-overshoot=5%",
                        "rate-limit.limits.cluster.on-failure=deny")
                .run(context -> test.accept(TestLimits.of(context)));
    }
}
