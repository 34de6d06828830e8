package io.ratelimited.spring.internals.call;

import io.ratelimited.core.internals.Permits;
import io.ratelimited.spring.ReservedPermits;
import io.ratelimited.spring.internals.overload.CallEnd;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** Permits of an {@link Admission}. The first of its ends counts. Thread-safe. */
final class AdmittedPermits implements ReservedPermits {

    /** Null when it is over, or when nothing is limited. */
    private final AtomicReference<@Nullable Admission> admission;

    AdmittedPermits(@Nullable Admission admission) {
        this.admission = new AtomicReference<>(admission);
    }

    /**
     * The permits of a call that is admitted later. Whoever ends the future gives them back.
     *
     * @param later runs the code of the caller, because the thread that admits the call may be that of another call
     */
    static CompletableFuture<ReservedPermits> of(CompletableFuture<Admission> entered, Executor later) {
        Reserving reserving = new Reserving(entered);
        entered.whenComplete((admission, refusal) -> {
            try {
                later.execute(() -> reserving.decided(admission, refusal));
            } catch (RuntimeException | Error ex) {
                reserving.completeExceptionally(refusal == null ? ex : refusal);
            }
        });
        return reserving;
    }

    /** The future that the caller gets. */
    private static final class Reserving extends CallerFuture<ReservedPermits> {

        private final CompletableFuture<Admission> entered;
        /** Whether the caller has the permits, or has ended this future before: one of the two. */
        private final AtomicBoolean claimed = new AtomicBoolean();

        private Reserving(CompletableFuture<Admission> entered) {
            this.entered = entered;
        }

        private void decided(@Nullable Admission admission, @Nullable Throwable refusal) {
            if (!claimed.compareAndSet(false, true)) {
                return;
            }
            if (refusal != null) {
                failed(refusal);
            } else if (!succeeded(new AdmittedPermits(admission)) && admission != null) {
                admission.cancel(); // ended by CompletableFuture.completeAsync
            }
        }

        /** Admitted or not: the thread of the caller has not begun, and may never. */
        @Override
        boolean endFirst(Predicate<CompletableFuture<ReservedPermits>> end) {
            if (claimed.compareAndSet(false, true)) {
                AsyncCalls.giveBack(entered);
            }
            return false;
        }
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
