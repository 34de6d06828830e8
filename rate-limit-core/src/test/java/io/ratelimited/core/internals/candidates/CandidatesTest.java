package io.ratelimited.core.internals.candidates;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.InvalidLimitException;
import io.ratelimited.core.Limit;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class CandidatesTest {

    private static final Limit LIVE = Limit.of("search", Algorithm.TOKEN_BUCKET)
            .rate("100/m")
            .burst(7)
            .block(Duration.ofMinutes(1))
            .build();

    @Test
    void aCandidateIsTheLimitWithAnotherRateAndItsBurst() {
        List<Limit> candidates = Candidates.of(LIVE, "200/m, 50/m; 1/s  burst 30,50/m");
        assertThat(candidates)
                .extracting(one -> one.rate() + " " + one.burst())
                .containsExactly("50/m 7", "1/s 30", "200/m 7");
        assertThat(candidates)
                .extracting(one -> Candidates.name(one, LIVE))
                .containsExactly("50/m", "1/s burst 30", "200/m");
        assertThat(candidates).allMatch(one -> one.block() == null);
    }

    @Test
    void autoIsNineStepsAroundThePresentRate() {
        assertThat(Candidates.of(LIVE, "auto"))
                .hasSize(9)
                .extracting(Limit::rate)
                .extracting(Object::toString)
                .contains("100/m", "25/m", "25600/m", "2/m");
        assertThat(Candidates.of(
                        Limit.of("a", Algorithm.SLIDING_LOG).rate("9000/d").build(), "auto"))
                .allMatch(one -> one.rate().permits() <= 10_000);
    }

    @Test
    void autoGoesOnAroundWhatIsSeen() {
        Limit live = Limit.of("search", Algorithm.TOKEN_BUCKET).rate("100/m").build();
        CandidateTracker tracker = new CandidateTracker(live, Candidates.of(live, "auto"), new ManualTicker(), 0);
        IntStream.range(0, 1_000).forEach(i -> tracker.tried(null, 1, 0, false));
        List<Limit> next = Candidates.around(live, tracker.report());
        assertThat(next).hasSize(9);
        assertThat(next.get(0).rate()).hasToString("400/m");
        assertThat(next.get(8).rate()).hasToString("1600/m");
    }

    @Test
    void mistakesNameTheValueAndTheRemedy() {
        assertThatThrownBy(() -> Candidates.of(LIVE, "50"))
                .isInstanceOf(InvalidLimitException.class)
                .hasMessageStartingWith(
                        "candidates contain \"50\", which is not a rate that this limit can have: rate is \"50\", but must be");
        assertThatThrownBy(() -> Candidates.of(LIVE, "0/m")).hasMessageContaining("must have a number above 0");
        assertThatThrownBy(() -> Candidates.of(LIVE, "5/m burst x")).hasMessageContaining("burst x");
        assertThatThrownBy(() -> Candidates.of(LIVE, "5/month")).hasMessageContaining("5/month");
        assertThatThrownBy(() -> Candidates.of(LIVE, "5/m,,6/m")).hasMessageContaining("contain \"\"");
        assertThatThrownBy(() -> Candidates.of(LIVE, "5/m,".repeat(17)))
                .hasMessageContaining("but must be 1 to 16 rates, or auto");
        Limit flying = Limit.of("a", Algorithm.CONCURRENCY).maxConcurrent(1).build();
        assertThatThrownBy(() -> Candidates.of(flying, "5/m")).hasMessageContaining("CONCURRENCY");
        Limit open = Limit.of("a", Algorithm.TOKEN_BUCKET).rate("unlimited").build();
        assertThatThrownBy(() -> Candidates.of(open, "auto"))
                .hasMessageContaining("are auto, but must be 1 to 16 rates, or auto if the limit has a number");
        assertThat(Candidates.of(open, "5/m")).hasSize(1);
        Limit log = Limit.of("a", Algorithm.SLIDING_LOG).rate("5/m").build();
        assertThatThrownBy(() -> Candidates.of(log, "10001/m"))
                .hasMessageContaining("under SLIDING_LOG at most 10000 permits");
    }
}
