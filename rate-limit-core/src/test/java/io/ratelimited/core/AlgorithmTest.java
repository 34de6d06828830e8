package io.ratelimited.core;

import static io.ratelimited.core.Algorithm.ADAPTIVE;
import static io.ratelimited.core.Algorithm.CONCURRENCY;
import static io.ratelimited.core.Algorithm.DEFAULT;
import static io.ratelimited.core.Algorithm.FIXED_WINDOW;
import static io.ratelimited.core.Algorithm.GCRA;
import static io.ratelimited.core.Algorithm.LEAKY_BUCKET;
import static io.ratelimited.core.Algorithm.SLIDING_LOG;
import static io.ratelimited.core.Algorithm.SLIDING_WINDOW;
import static io.ratelimited.core.Algorithm.SMOOTH_BURSTY;
import static io.ratelimited.core.Algorithm.TOKEN_BUCKET;
import static io.ratelimited.core.Algorithm.WARM_UP;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm.Family;
import java.util.List;
import java.util.function.Predicate;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** The facts that other modules go by. */
class AlgorithmTest {

    private static List<Algorithm> those(Predicate<Algorithm> fact) {
        return Algorithm.all().stream().filter(fact).toList();
    }

    @Test
    void everyAlgorithmBelongsToAFamily() {
        assertThat(those(algorithm -> algorithm.family() == Family.BUCKET)).containsExactly(TOKEN_BUCKET, GCRA);
        assertThat(those(algorithm -> algorithm.family() == Family.PACED))
                .containsExactly(SMOOTH_BURSTY, WARM_UP, LEAKY_BUCKET);
        assertThat(those(algorithm -> algorithm.family() == Family.WINDOW))
                .containsExactly(FIXED_WINDOW, SLIDING_WINDOW, SLIDING_LOG);
        assertThat(those(Algorithm::countsCallsInFlight)).containsExactly(CONCURRENCY, ADAPTIVE);
        assertThat(those(Algorithm::findsItsLimit)).containsExactly(ADAPTIVE);
    }

    @Test
    void whatAnAnnotationLeavesOpenIsNeitherAnAlgorithmNorAPolicy() {
        assertThat(Algorithm.all()).hasSize(10).doesNotContain(DEFAULT).isSubsetOf(Algorithm.values());
        assertThat(Policy.all()).containsExactly(Policy.REJECT, Policy.WAIT, Policy.SHADOW);
        List<ThrowingCallable> questions = List.of(
                DEFAULT::family,
                DEFAULT::countsCallsInFlight,
                () -> TOKEN_BUCKET.canChangeTo(DEFAULT),
                DEFAULT::findsItsLimit,
                DEFAULT::followsCalendar,
                DEFAULT::queues,
                DEFAULT::startsEmpty,
                DEFAULT::storesOneSecond,
                DEFAULT::canBeLeased,
                DEFAULT::defaultPolicy);
        assertThat(questions).allSatisfy(question -> assertNoAlgorithm(question));
        assertThat(Limit.Attribute.values()).allSatisfy(attribute -> assertNoAlgorithm(() -> DEFAULT.uses(attribute)));
    }

    private static void assertNoAlgorithm(ThrowingCallable question) {
        assertThatThrownBy(question)
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("DEFAULT is not an algorithm; use one of " + Algorithm.all());
    }

    @Test
    void bucketsAndCountedWindowsCanBeLeasedAndNothingElse() {
        assertThat(those(Algorithm::canBeLeased)).containsExactly(TOKEN_BUCKET, GCRA, FIXED_WINDOW, SLIDING_WINDOW);
    }

    @Test
    void aQueueWaitsByDefaultAndAllOthersReject() {
        assertThat(those(Algorithm::queues)).containsExactly(LEAKY_BUCKET);
        assertThat(those(algorithm -> algorithm.defaultPolicy() == Policy.WAIT)).containsExactly(LEAKY_BUCKET);
    }

    @Test
    void callsInFlightChangeToNothingElse() {
        assertThat(those(CONCURRENCY::canChangeTo)).containsExactly(CONCURRENCY);
        assertThat(those(ADAPTIVE::canChangeTo)).containsExactly(ADAPTIVE);
        assertThat(those(TOKEN_BUCKET::canChangeTo)).hasSize(8).doesNotContain(CONCURRENCY, ADAPTIVE);
        Limit limit = Limit.of("export", CONCURRENCY).maxConcurrent(2).build();
        limit.requireChangeableTo(limit.toBuilder().maxConcurrent(3).build());
        assertThatThrownBy(() -> limit.requireChangeableTo(
                        Limit.of("export", GCRA).rate("1/s").build()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("export")
                .hasMessageContaining("CONCURRENCY to GCRA")
                .hasMessageContaining("restart");
    }

    /** Calls in flight have no rate, so they are neither closed nor unlimited. */
    @Test
    void aLimitIsClosedOrUnlimitedByItsRateOnly() {
        assertThat(Limit.of("a", TOKEN_BUCKET).rate("0/s").build().isClosed()).isTrue();
        assertThat(Limit.of("a", TOKEN_BUCKET).rate("unlimited").build().isUnlimited())
                .isTrue();
        Limit none = Limit.of("a", CONCURRENCY).maxConcurrent(0).build();
        assertThat(none.isClosed() || none.isUnlimited()).isFalse();
    }
}
