package io.ratelimited.spring.internals.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.RateLimiterClosedException;
import io.ratelimited.spring.internals.limit.RequestThreads;
import io.ratelimited.spring.internals.limit.Sleeper;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** Permits of an attempt that ends just when it is to be cancelled would be held by nobody. */
class CallerThreadsTest {

    private final List<Boolean> attempts = new ArrayList<>();

    /** Ends before anybody can cancel it. */
    private static final class Late extends CompletableFuture<String> {

        @Override
        public boolean cancel(boolean mayInterruptIfRunning) {
            complete("admitted");
            return super.cancel(mayInterruptIfRunning);
        }
    }

    /** Is rejected before anybody can cancel it. */
    private static final class Rejected extends CompletableFuture<String> {

        private final RuntimeException rejection;

        private Rejected(RuntimeException rejection) {
            this.rejection = rejection;
        }

        @Override
        public boolean cancel(boolean mayInterruptIfRunning) {
            completeExceptionally(rejection);
            super.cancel(mayInterruptIfRunning);
            return false;
        }
    }

    private String await(RequestThreads threads, CompletableFuture<String> first) throws InterruptedException {
        return await(threads, first, () -> {});
    }

    /** @param meanwhile happens after the first attempt has begun */
    private String await(RequestThreads threads, CompletableFuture<String> first, Runnable meanwhile)
            throws InterruptedException {
        return new CallerThreads(() -> threads).await("client", "", true, mayWait -> {
            attempts.add(mayWait);
            if (attempts.size() > 1) {
                return CompletableFuture.completedFuture("at once");
            }
            meanwhile.run();
            return first;
        });
    }

    private static void enter(RequestThreads threads) {
        assertThat(threads.tryEnter(0, new Sleeper(List.of(), List.of()))).isTrue();
    }

    @Test
    void anAttemptForWhichThereIsNoThreadDoesNotWait() throws InterruptedException {
        RequestThreads crowded = new RequestThreads(2);
        enter(crowded);
        assertThat(await(crowded, CompletableFuture.completedFuture("now"))).isEqualTo("now");
        assertThat(attempts).containsExactly(false);
    }

    @Test
    void anAttemptThatIsCancelledForWantOfThreadsIsMadeAgainWithoutAWait() throws InterruptedException {
        RequestThreads threads = new RequestThreads(2);
        assertThat(await(threads, new CompletableFuture<>(), () -> enter(threads)))
                .isEqualTo("at once");
        assertThat(attempts).containsExactly(true, false);
    }

    @Test
    void anAttemptThatEndsWhenItIsToBeCancelledForWantOfThreadsIsTheResult() throws InterruptedException {
        RequestThreads threads = new RequestThreads(2);
        assertThat(await(threads, new Late(), () -> enter(threads))).isEqualTo("admitted");
        assertThat(attempts).containsExactly(true);
    }

    @Test
    void anInterruptCancelsTheAttemptAndFreesTheSeat() throws InterruptedException {
        RequestThreads threads = new RequestThreads(2);
        CompletableFuture<String> attempt = new CompletableFuture<>();
        Thread.currentThread().interrupt();
        assertThatThrownBy(() -> await(threads, attempt)).isInstanceOf(InterruptedException.class);
        assertThat(attempt).isCancelled();
        enter(threads);
    }

    @Test
    void anAttemptThatEndsWhenAnInterruptCancelsItIsTheResultAndTheFlagIsSet() throws InterruptedException {
        Thread.currentThread().interrupt();
        assertThat(await(new RequestThreads(2), new Late())).isEqualTo("admitted");
        assertThat(Thread.interrupted()).isTrue();
    }

    @Test
    void anAttemptThatIsRejectedWhenAnInterruptCancelsItFailsWithTheRejectionAndTheFlagIsSet() {
        RuntimeException rejection = new RateLimiterClosedException();
        Thread.currentThread().interrupt();
        assertThatThrownBy(() -> await(new RequestThreads(2), new Rejected(rejection)))
                .isSameAs(rejection);
        assertThat(Thread.interrupted()).isTrue();
    }
}
