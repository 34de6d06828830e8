package io.ratelimited.spring.internals.check;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimited;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** Calls that an object makes to itself from the classes inside its own are warned of, and calls of other objects are not. */
@ExtendWith(OutputCaptureExtension.class)
class InnerSelfCallsTest {

    private final ApplicationContextRunner runner = Contexts.runner(new ManualTicker());

    @ParameterizedTest
    @ValueSource(strings = {"byAnonymousClass", "byInnerClass", "byLambdaOfAnonymousClass"})
    void selfCallsOfInnerClassesAreWarnedOf(String method, CapturedOutput output) {
        runner.withBean(Outer.class)
                .run(context ->
                        assertThat(output).containsOnlyOnce("$Outer." + method + " calls place of the same object"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"directly", "resumed", "byLambda", "byObject", "byFlow", "inContext", "nested"})
    void selfCallsOfCoroutinesAreWarnedOf(String method, CapturedOutput output) {
        runner.withBean(KotlinSelfCalls.class)
                .run(context -> assertThat(output)
                        .containsOnlyOnce("KotlinSelfCalls." + method + " calls send of the same object"));
    }

    @Test
    void callsOfOtherObjectsAreNotWarnedOf(CapturedOutput output) {
        Contexts.with(runner, Outer.class, KotlinSelfCalls.class).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output).doesNotContain("Outer.other", "KotlinSelfCalls.other");
        });
    }

    static class Outer {

        @RateLimited(rate = "1/h")
        public String place() {
            return "placed";
        }

        public Supplier<String> byAnonymousClass() {
            return new Supplier<>() {
                @Override
                public String get() {
                    return place() + "!";
                }
            };
        }

        public Supplier<Supplier<String>> byLambdaOfAnonymousClass() {
            return new Supplier<>() {
                @Override
                public Supplier<String> get() {
                    return () -> place() + "!";
                }
            };
        }

        public String byInnerClass() {
            return new Inner().call();
        }

        public String other(Outer proxy) {
            return new Caller(proxy).call();
        }

        public Supplier<String> otherByAnonymousClass(Outer proxy) {
            return new Supplier<>() {
                @Override
                public String get() {
                    return proxy.place();
                }
            };
        }

        private class Inner {
            String call() {
                return place();
            }
        }

        record Caller(Outer proxy) {
            String call() {
                return proxy.place();
            }
        }
    }
}
