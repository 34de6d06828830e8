package io.ratelimited.spring.config;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.limit.RequestThreads;
import org.junit.jupiter.api.Test;

/** A child context shares the limits of its parent until it closes. */
final class HierarchyMemberTest {

    private static ContextRunner with(int threads) {
        return ContextRunner.limited().withBean(RequestThreads.class, () -> new RequestThreads(threads));
    }

    @Test
    void theThreadsOfAChildContextBoundWaitsUntilItCloses() {
        with(100).run(parent -> {
            LimitRegistry registry = parent.getBean(LimitRegistry.class);
            with(20).withParent(parent).run(child -> {
                assertThat(registry.threads().number()).isEqualTo(20);
                with(8).withParent(parent)
                        .run(other -> assertThat(registry.threads().number()).isEqualTo(8));
                assertThat(registry.threads().number()).isEqualTo(20);
            });
            assertThat(registry.threads().number()).isEqualTo(100);
        });
    }

    @Test
    void aParentThatServesNoRequestsIsUnboundedWithoutItsChild() {
        ContextRunner.limited().run(parent -> {
            LimitRegistry registry = parent.getBean(LimitRegistry.class);
            with(20).withParent(parent)
                    .run(child -> assertThat(registry.threads().number()).isEqualTo(20));
            assertThat(registry.threads().number()).isZero();
        });
    }
}
