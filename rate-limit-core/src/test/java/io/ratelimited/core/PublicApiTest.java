package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The public API of the core. */
@Tag("once")
class PublicApiTest {

    @Test
    void itIsTheReviewedOne() throws Exception {
        PublicApi.requireReviewed();
    }

    @Test
    void theSamePackagesAreInternalForEveryTool() throws Exception {
        PublicApi.requireSameInternalPackages();
        PublicApi.requireInternalByName();
    }

    @Test
    void aMemberThatGoesAndOneThatComesAreNamedWithTheirType() {
        assertThat(PublicApi.difference(
                        List.of("class A", "  f()", "class B", "  g()"),
                        List.of("class A", "class B", "  f()", "  g()")))
                .containsExactly("- class A:  f()", "+ class B:  f()");
    }

    @Test
    void protectedMembersOfAClassThatCanBeExtendedAreListedAndOthersAreNot() throws Exception {
        assertThat(PublicApi.linesOf(Open.class))
                .containsExactly(
                        "public static class io.ratelimited.core.PublicApiTest$Open",
                        "  protected Open(String name)",
                        "  protected void inherited() throws IOException");
        assertThat(PublicApi.linesOf(Closed.class))
                .containsExactly(
                        "public static final class io.ratelimited.core.PublicApiTest$Closed extends PublicApiTest$Open");
    }

    /** Can be extended. */
    public static class Open {

        protected Open(String name) {}

        protected void inherited() throws IOException {}

        void hidden() {}
    }

    /** Can not. */
    public static final class Closed extends Open {

        Closed() {
            super("");
        }
    }
}
