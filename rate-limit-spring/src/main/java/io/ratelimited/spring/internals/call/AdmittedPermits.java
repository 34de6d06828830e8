package io.ratelimited.spring.internals.call;

import io.ratelimited.core.internals.Permits;
import io.ratelimited.spring.ReservedPermits;
import io.ratelimited.spring.internals.overload.CallEnd;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** Permits of an {@link Admission}. The first of its ends counts. Thread-safe. */
final class AdmittedPermits implements ReservedPermits {

    /** Null when it is over, or when nothing is limited. */
    private final AtomicReference<@Nullable Admission> admission;

    AdmittedPermits(@Nullable Admission admission) {
        this.admission = new AtomicReference<>(admission);
    }

    /**
     * The permits of a call that is admitted later. Cancelling the future gives them back.
     *
     * @param later runs the code of the caller, because the thread that admits the call may be that of another call
     */
    static CompletableFuture<ReservedPermits> of(CompletableFuture<Admission> entered, Executor later) {
        CompletableFuture<ReservedPermits> reserved = new CompletableFuture<>();
        reserved.whenComplete((ignored, failure) -> {
            if (failure != null && !entered.cancel(false) && !entered.isCompletedExceptionally()) {
                // Admitted, but the thread of the caller has not begun, and may never.
                entered.join().cancel();
            }
        });
        entered.whenComplete((admission, refusal) -> {
            try {
                later.execute(() -> {
                    if (refusal == null) {
                        reserved.complete(new AdmittedPermits(admission));
                    } else {
                        reserved.completeExceptionally(refusal);
                    }
                });
            } catch (RuntimeException | Error ex) {
                if (refusal == null && !reserved.isDone()) {
                    admission.cancel(); // before the caller learns of it
                }
                reserved.completeExceptionally(refusal == null ? ex : refusal);
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
