package io.ratelimited.spring.internals.check;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.RateLimitExempt;
import io.ratelimited.spring.RateLimited;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Of annotations on types without a relation the first applies, and the others are warned of. */
@ExtendWith(CapturedLog.Capture.class)
class HiddenAnnotationsTest {

    private final ContextRunner runner = ContextRunner.limited(new ManualTicker());

    @ParameterizedTest
    @ValueSource(classes = {OfTwoInterfaces.class, OfInterfaceAndSuperclass.class, OfTwoTypes.class})
    void anAnnotationThatAnotherHidesIsWarnedOf(Class<?> type, CapturedLog output) {
        ContextRunner.with(runner, type).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output)
                    .containsOnlyOnce("does not apply. Annotate the")
                    .contains("@RateLimited on " + type.getName());
        });
    }

    @ParameterizedTest
    @ValueSource(classes = {ExemptBeforeLimited.class, ExemptSuperclass.class})
    void aLimitThatAnExemptionHidesIsWarnedOf(Class<?> type, CapturedLog output) {
        ContextRunner.with(runner, type).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output)
                    .containsOnlyOnce("does not apply. Annotate")
                    .contains("@RateLimitExempt on " + type.getName() + ".get() is that of ")
                    .contains("and @RateLimited of " + Reads.class.getMethod("get"));
        });
    }

    @Test
    void anExemptionThatALimitHidesIsWarnedOf(CapturedLog output) {
        ContextRunner.with(runner, LimitedBeforeExempt.class).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output)
                    .containsOnlyOnce("does not apply. Annotate")
                    .contains("@RateLimited on " + LimitedBeforeExempt.class.getName() + ".get() is that of ")
                    .contains("and @RateLimitExempt of " + Exempt.class.getMethod("get"));
        });
    }

    @Test
    void anAnnotationThatIsOverriddenIsNotWarnedOf(CapturedLog output) {
        ContextRunner.with(runner, Replacing.class, ReadsAll.class, Exempted.class, ExemptByClass.class)
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(output).doesNotContain("does not apply");
                });
    }

    interface Reads {
        @RateLimited(name = "reads", rate = "1/h")
        void get();
    }

    interface Caches {
        @RateLimited(name = "caches", rate = "2/h")
        void get();
    }

    static class OfTwoInterfaces implements Reads, Caches {
        @Override
        public void get() {}
    }

    static class ReadsAll implements Reads {
        @Override
        public void get() {}
    }

    static class OfInterfaceAndSuperclass extends ReadsAll implements Caches {}

    interface Exempt {
        @RateLimitExempt
        void get();
    }

    static class ExemptBeforeLimited implements Exempt, Reads {
        @Override
        public void get() {}
    }

    static class LimitedBeforeExempt implements Reads, Exempt {
        @Override
        public void get() {}
    }

    static class ExemptsAll {
        @RateLimitExempt
        public void get() {}
    }

    static class ExemptSuperclass extends ExemptsAll implements Reads {}

    static class Exempted extends ReadsAll implements Reads, Caches, Exempt {
        @Override
        @RateLimitExempt
        public void get() {}
    }

    @RateLimited(name = "exempt", rate = "1/h")
    static class ExemptByClass implements Exempt {
        @Override
        public void get() {}
    }

    @RateLimited(name = "reading", rate = "1/h")
    interface Reading {}

    @RateLimited(name = "writing", rate = "2/h")
    interface Writing {}

    static class OfTwoTypes implements Reading, Writing {
        public void get() {}
    }

    static class Replacing extends ReadsAll implements Reads, Caches {
        @Override
        @RateLimited(name = "replaced", rate = "3/h")
        public void get() {}
    }
}
