package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** The facts, for functions that return Kotlin's Flow, and what is particular to them. */
final class FlowCallsTest extends CallFacts {

    @Override
    Class<?> service() {
        return FlowService.class;
    }

    @Override
    CompletableFuture<String> call(String method, String id) {
        return SuspendServiceKt.callFlow(context.getBean(FlowService.class), method, id);
    }

    @Test
    void flowIsDecidedWhenItIsCollectedAndBeforeItsFunctionIsCalled() {
        FlowService service = context.getBean(FlowService.class);
        service.rejecting("never collected");
        service.rejecting("never collected");
        assertThat(journal.bodies).isEmpty();
        assertThat(result(call("rejecting", "a"))).isEqualTo("body a");
    }

    @Test
    void suspendFunctionThatReturnsAFlowWaitsWithoutAThread() {
        assertThat(result(call("suspended", "a"))).isEqualTo("body a");
        CompletableFuture<String> second = call("suspended", "b");
        assertThat(second).isNotDone();
        assertThat(ticker.sleeping()).isEqualTo(1);
        ticker.advance(Duration.ofSeconds(1));
        assertThat(result(second)).isEqualTo("body b");
    }

    @Test
    void compoundKeyIsReadFromTheParametersOfFunctionsOfBothKinds() {
        assertThat(result(keyed(false, "ann", "gold"))).isEqualTo("ann of gold");
        assertRefused(keyed(true, "ann", "gold"), "keyed");
        assertRefused(keyed(false, "ann", "blue"), "keyed");
        assertThat(result(keyed(true, "ann", "silver"))).isEqualTo("ann of silver");
        assertThat(result(keyed(true, "bob", "gold"))).isEqualTo("bob of gold");
        assertThat(limits().peek("keyed", List.of("ann", 4)).remaining()).isZero();
    }

    private CompletableFuture<String> keyed(boolean suspended, String id, String plan) {
        return SuspendServiceKt.callKeyed(context.getBean(FlowService.class), suspended, id, plan);
    }
}
