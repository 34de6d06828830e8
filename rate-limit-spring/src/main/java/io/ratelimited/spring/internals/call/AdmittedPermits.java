package io.ratelimited.spring.internals.call;

import io.ratelimited.core.internals.Permits;
import io.ratelimited.spring.ReservedPermits;
import io.ratelimited.spring.internals.overload.CallEnd;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** Permits of an {@link Admission}. The first of its ends counts. Thread-safe. */
final class AdmittedPermits implements ReservedPermits {

    /** Null when it is over, or when nothing is limited. */
    private final AtomicReference<@Nullable Admission> admission;

    AdmittedPermits(@Nullable Admission admission) {
        this.admission = new AtomicReference<>(admission);
    }

    /** The permits of a call that is admitted later. Cancelling the future gives them back. */
    static CompletableFuture<ReservedPermits> of(CompletableFuture<Admission> entered) {
        CompletableFuture<ReservedPermits> reserved = new CompletableFuture<>();
        entered.whenComplete((admission, refusal) -> {
            if (refusal != null) {
                reserved.completeExceptionally(refusal);
            } else if (!reserved.complete(new AdmittedPermits(admission))) {
                admission.cancel();
            }
        });
        reserved.whenComplete((ignored, cancellation) -> {
            if (cancellation != null) {
                entered.cancel(false);
            }
        });
        return reserved;
    }

    @Override
    public void cancel() {
        Admission reserved = admission.getAndSet(null);
        if (reserved != null) {
            reserved.cancel();
        }
    }

    @Override
    public void settle(long permits) {
        Permits.requireCharge(permits);
        Admission reserved = admission.get();
        if (reserved != null) {
            reserved.settle(permits);
        }
    }

    @Override
    public void end(@Nullable Throwable error) {
        Admission reserved = admission.getAndSet(null);
        if (reserved != null) {
            reserved.end(CallEnd.of(error, false));
        }
    }

    @Override
    public void close() {
        end(null);
    }
}
