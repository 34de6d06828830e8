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
        entered.whenComplete((admission, refusal) -> {
            try {
                later.execute(() -> {
                    if (refusal != null) {
                        reserved.completeExceptionally(refusal);
                    } else if (!reserved.complete(new AdmittedPermits(admission))) {
                        admission.cancel();
                    }
                });
            } catch (RuntimeException | Error ex) {
                if (admission != null) {
                    admission.cancel();
                }
                reserved.completeExceptionally(refusal == null ? ex : refusal);
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
