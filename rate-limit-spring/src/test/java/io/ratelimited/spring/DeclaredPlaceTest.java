package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** A limit that several beans declare alike is reported at the first of them, in the order of the beans: in every JVM. */
final class DeclaredPlaceTest {

    @Test
    void placeOfALimitIsTheFirstBeanThatDeclaresIt() {
        ContextRunner.with(ContextRunner.limited(), Delta.class, Alpha.class, Echo.class, Bravo.class, Charlie.class)
                .run(context -> assertThat(
                                TestLimits.of(context).limit("shared").place())
                        .contains("DeclaredPlaceTest$Delta"));
    }

    static class Alpha {
        @RateLimited(name = "shared", rate = "5/m")
        public void call() {}
    }

    static class Bravo {
        @RateLimited(name = "shared", rate = "5/m")
        public void call() {}
    }

    static class Charlie {
        @RateLimited(name = "shared", rate = "5/m")
        public void call() {}
    }

    static class Delta {
        @RateLimited(name = "shared", rate = "5/m")
        public void call() {}
    }

    static class Echo {
        @RateLimited(name = "shared", rate = "5/m")
        public void call() {}
    }
}
