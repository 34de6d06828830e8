package io.ratelimited.core.several;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.End;
import io.ratelimited.core.Reservation;
import java.time.Duration;
import java.util.Comparator;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** A reservation of several limits for one call. */
interface Joint extends Reservation {

    /** "Never" before every time, and an unknown time behind it. */
    Comparator<Decision> LONGEST_FIRST = Comparator.comparing((Decision refusal) -> !refusal.never())
            .thenComparing(
                    Decision::retryAfter,
                    Comparator.nullsFirst(Comparator.<Duration>naturalOrder()).reversed())
            .thenComparing(refusal -> refusal.source() == Source.UNAVAILABLE)
            .thenComparing(Decision::limit);

    /** As {@link AllOf#member}. */
    Reservation member(int claim);

    /** As {@link AllOf#refusals}. */
    @Nullable
    Decision[] refusals();

    /** The decision of the longest refusal, else of the longest wait. */
    @Override
    default Decision decision() {
        @Nullable Decision[] decisions = refusals();
        return Objects.requireNonNull(decisions[decisive(decisions)]);
    }

    @Override
    default void release() {
        release(End.ANSWERED);
    }

    @Override
    void release(End end);

    /** As {@link AllOf#decisive}. */
    static int decisive(@Nullable Decision[] refusals) {
        int decisive = -1;
        for (int i = 0; i < refusals.length; i++) {
            Decision refusal = refusals[i];
            Decision longest = decisive < 0 ? null : refusals[decisive];
            if (refusal != null && (longest == null || LONGEST_FIRST.compare(refusal, longest) < 0)) {
                decisive = i;
            }
        }
        return decisive;
    }
}
