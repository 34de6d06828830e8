package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Threads;
import io.ratelimited.core.internals.candidates.CandidateReport;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.internals.expression.CallResult;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeoutException;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.core.annotation.AliasFor;
import org.springframework.security.authentication.TestingAuthenticationToken;
import org.springframework.security.core.context.SecurityContextHolder;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** What calls are charged with when they have ended, beyond what {@link CallFacts} states of every kind. */
@Tag("slow")
final class ChargeTest {

    private final ManualTicker ticker = new ManualTicker();
    private final AnnotationConfigApplicationContext context = ContextRunner.start(
            ticker,
            new Class<?>[] {Journal.class, Observer.class, Service.class},
            "rate-limit.limits.tokens.rate=100/h",
            "rate-limit.limits.tokens.key=#user",
            "rate-limit.limits.tokens.tier=#plan",
            "rate-limit.limits.tokens.tiers.gold.rate=1000/h",
            "rate-limit.limits.tokens.tiers.internal.rate=unlimited",
            "rate-limit.limits.words.rate=100/h",
            "rate-limit.limits.fixed.rate=100/h",
            "rate-limit.limits.fixed.charge=7",
            "rate-limit.limits.stream.rate=100/h",
            "rate-limit.limits.unaware.rate=100/h",
            "rate-limit.limits.unaware.permits=10",
            "rate-limit.limits.unaware.charge=#cost",
            "rate-limit.limits.dry-run.rate=10/h",
            "rate-limit.limits.dry-run.policy=shadow",
            "rate-limit.limits.dry-run.charge=#cost / #parts",
            "rate-limit.limits.dry-run.candidates=50/h, 1000/h");
    private final TestLimits limits = TestLimits.of(context);
    private final Service service = context.getBean(Service.class);
    private final Journal journal = context.getBean(Journal.class);
    private final Observer observer = context.getBean(Observer.class);

    @AfterEach
    void stop() {
        context.close();
    }

    private long remaining(String limit, @Nullable Object key) {
        return limits.peek(limit, key).remaining();
    }

    @Test
    void twoLimitsOnOneMethodAreChargedEachByItsOwnCharge() {
        service.both("ann", "gold", "five words are in this");
        assertThat(remaining("words", null)).isEqualTo(95);
        service.both("ann", "free", "two words");
        assertThat(remaining("words", null)).isEqualTo(93);
        assertThat(remaining("tokens", "ann")).isEqualTo(100 - 9);
    }

    @Test
    void twoUsesOfOneLimitAndKeyAreChargedEachByItsOwnCharge() {
        service.transfer("ann", "ann", 3);
        assertThat(remaining("transfers", "ann")).isEqualTo(100 - 3 - 5);
        service.transfer("bob", "eve", 3);
        assertThat(remaining("transfers", "bob")).isEqualTo(100 - 3);
        assertThat(remaining("transfers", "eve")).isEqualTo(100 - 5);
        assertThat(observer.settled).containsExactly("transfers ann 10 3", "transfers bob 10 3");
    }

    @Test
    void aUseWithAChargeIsChargedWhileTheResponseOfTheCallContinues() {
        CompletableFuture<String> response = new CompletableFuture<>();
        service.transferLater("ann", "ann", 3, response).block();
        assertThat(remaining("transfers", "ann")).isEqualTo(100 - 3 - 5);
        response.complete("done");
        assertThat(remaining("transfers", "ann")).isEqualTo(100 - 3 - 5);
    }

    @Test
    void aPlaceBesideAChargeIsHeldUntilTheResponseOfTheCallHasEnded() {
        CompletableFuture<String> response = new CompletableFuture<>();
        service.inPlace(response).block();
        assertThat(limits.peek("places", null).admitted()).isFalse();
        response.complete("done");
        assertThat(limits.peek("places", null).admitted()).isTrue();
    }

    @Test
    void aTierIsChargedInsteadOfItsLimit() {
        service.both("ann", "gold", "five words are in this");
        assertThat(remaining("tokens", "ann")).isEqualTo(100);
        assertThat(limits.configured("tokens")
                        .limitersOfTiers()
                        .get("gold")
                        .peek("ann", 1, 0)
                        .remaining())
                .isEqualTo(1000 - 22);
        service.both("ann", "internal", "five words are in this");
        assertThat(remaining("tokens", "ann")).isEqualTo(100);
    }

    @Test
    void observersLearnWhatWasReservedAndWhatWasCharged() {
        service.both("ann", "free", "two words");
        assertThat(observer.settled).containsExactlyInAnyOrder("tokens ann 10 9", "words null 1 2");
        journal.cost = result -> "text";
        service.journaled();
        assertThat(observer.failed).containsExactly("stream null 10");
    }

    @Test
    void anObserverThatFailsFailsNoCall() {
        observer.failing = true;
        journal.cost = result -> "text";
        service.journaled();
        service.both("ann", "free", "two words");
        assertThat(remaining("tokens", "ann")).isEqualTo(91);
    }

    @Test
    void aPropertyOfTheLimitReplacesTheChargeOfItsAnnotation() {
        service.fixed();
        assertThat(remaining("fixed", null)).isEqualTo(93);
    }

    @Test
    void aChargeIsFixedAtTheStart() {
        assertThatThrownBy(() -> limits.change("fixed", LimitChange.of("charge", "1")))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("sets charge, but can only set [algorithm, ");
        assertThat(limits.limit("fixed").properties().get("charge")).isEqualTo("7");
    }

    @Test
    void aComposedAnnotationMayHaveACharge() {
        assertThatThrownBy(() -> service.login("wrong")).isInstanceOf(IllegalArgumentException.class);
        service.login("right");
        assertThat(remaining("failures", null)).isEqualTo(4);
    }

    @Test
    void aCallWithinACallIsChargedToo() {
        journal.cost = result -> 3;
        service.nesting(service);
        assertThat(remaining("stream", null)).isEqualTo(94);
    }

    @Test
    void aResultThatIsAStageIsAwaitedWhateverTheMethodDeclares() {
        CompletableFuture<String> later = new CompletableFuture<>();
        service.anything(() -> later);
        assertThat(remaining("stream", null)).isEqualTo(90);
        journal.cost = result -> 2;
        later.complete("done");
        assertThat(journal.ended).containsExactly(new CallResult("done", null, 1));
        assertThat(remaining("stream", null)).isEqualTo(98);
    }

    @Test
    void aStageThatCannotBeAwaitedFailsNoCallAndIsChargedAtOnce() {
        journal.cost = result -> 2;
        CompletionStage<String> own = new CompletableFuture<>() {
            @Override
            public CompletableFuture<String> whenComplete(BiConsumer<? super String, ? super Throwable> action) {
                throw new UnsupportedOperationException("as the test wants");
            }
        };
        assertThat(service.anything(() -> own)).isSameAs(own);
        assertThat(remaining("stream", null)).isEqualTo(98);
    }

    @Test
    void aFutureThatNobodyCompletesLeavesWhatWasReserved() {
        service.future(new CompletableFuture<>());
        ticker.advance(Duration.ofMinutes(3));
        assertThat(remaining("stream", null)).isEqualTo(95);
    }

    /** Without a request, as in a message of a WebSocket, the thread of the call knows its user. */
    @Test
    void thePrincipalIsThatOfTheThreadThatCalled() throws Exception {
        CompletableFuture<String> ofAnn = new CompletableFuture<>();
        CompletableFuture<String> ofNobody = new CompletableFuture<>();
        login("ann");
        service.owned(ofAnn);
        SecurityContextHolder.clearContext();
        service.owned(ofNobody);
        Thread other = new Thread(() -> {
            login("bartholomew");
            ofAnn.complete("");
            ofNobody.complete("");
        });
        other.start();
        other.join();

        assertThat(observer.settled).containsExactly("owned null 10 3");
        assertThat(observer.failed).containsExactly("owned null 10");
    }

    private static void login(String user) {
        SecurityContextHolder.getContext().setAuthentication(new TestingAuthenticationToken(user, null, "ROLE_USER"));
    }

    @Test
    void aFutureIsChargedOnceThoughItIsCancelledAfterItsEnd() {
        journal.cost = result -> 2;
        CompletableFuture<String> own = new CompletableFuture<>();
        CompletableFuture<String> call = service.future(own);
        own.complete("done");
        call.cancel(true);
        assertThat(call).isCompletedWithValue("done");
        assertThat(journal.ended).hasSize(1);
        assertThat(remaining("stream", null)).isEqualTo(98);
    }

    @Test
    void aMonoThatHasEmittedHasReturnedThoughItIsCancelledThen() {
        Sinks.One<String> sink = Sinks.one();
        service.flux(sink.asMono().flux().concatWith(Mono.never())).next().subscribe();
        Disposable mono = service.mono(Mono.create(emitter -> sink.asMono().subscribe(emitter::success)))
                .flux()
                .concatWith(Mono.never())
                .subscribe();
        sink.tryEmitValue("value");
        mono.dispose();
        assertThat(journal.ended).hasSize(2).contains(new CallResult("value", null, 1));
    }

    @Test
    void aStreamThatIsCancelledKnowsItsLastElementAndTheirNumber() {
        journal.cost = CallResult::count;
        Sinks.Many<String> sink = Sinks.many().unicast().onBackpressureBuffer();
        Disposable call = service.flux(sink.asFlux()).subscribe();
        sink.tryEmitNext("one");
        sink.tryEmitNext("two");
        call.dispose();
        assertThat(journal.ended).singleElement().satisfies(end -> {
            assertThat(end.value()).isEqualTo("two");
            assertThat(end.count()).isEqualTo(2);
            assertThat(end.error()).isInstanceOf(CancellationException.class);
        });
        assertThat(remaining("stream", null)).isEqualTo(98);
    }

    @Test
    void aStreamThatFailsKnowsItsElementsAndItsError() {
        IllegalStateException failure = new IllegalStateException("broken");
        service.flux(Flux.just("one", "two").concatWith(Mono.error(failure)))
                .onErrorComplete()
                .blockLast();
        assertThat(journal.ended).containsExactly(new CallResult("two", failure, 2));
    }

    @Test
    void anElementThatComesWithTheCancellationDoesNotHideIt() {
        journal.cost = result -> result.error() == null ? 0 : 5;
        service.flux(Flux.<String>create(sink -> {
                    sink.onCancel(() -> sink.next("late"));
                    sink.next("one");
                }))
                .take(1)
                .blockLast();
        assertThat(remaining("stream", null)).isEqualTo(95);
    }

    /** A charge that does not read #cancelled: nobody has thought of callers who end a call themselves. */
    @Test
    void aCallThatIsEndedFromOutsideCostsAtLeastWhatItReserved() {
        service.unaware(new CompletableFuture<>(), 3).cancel(true);
        assertThat(remaining("unaware", null)).as("cancelled").isEqualTo(90);
        service.unaware(new CompletableFuture<>(), 3).completeExceptionally(new TimeoutException("of the caller"));
        assertThat(remaining("unaware", null)).as("failed by its caller").isEqualTo(80);
        service.unaware(new CompletableFuture<>(), 3).complete("instead");
        assertThat(remaining("unaware", null)).as("completed by its caller").isEqualTo(70);
        service.unawareMono(Mono.never(), 3).subscribe().dispose();
        assertThat(remaining("unaware", null)).as("Mono").isEqualTo(60);
        service.unawareFlux(Flux.just("one").concatWith(Mono.never()), 3).next().block();
        assertThat(remaining("unaware", null)).as("Flux").isEqualTo(50);
        service.unawareFlux(Flux.just("one").concatWith(Mono.never()), 20)
                .next()
                .block();
        assertThat(remaining("unaware", null)).as("more than reserved").isEqualTo(30);
    }

    @Test
    void aCallThatEndsByItselfCostsWhatTheChargeSays() {
        service.unaware(CompletableFuture.completedFuture("done"), 3).join();
        CompletableFuture<String> failing = new CompletableFuture<>();
        service.unaware(failing, 3);
        failing.completeExceptionally(new IllegalStateException("as the test wants"));
        CompletableFuture<String> late = new CompletableFuture<>();
        CompletableFuture<String> call = service.unaware(late, 3);
        late.complete("done");
        call.cancel(true);
        service.unawareMono(Mono.just("done"), 3).block();
        assertThat(remaining("unaware", null)).isEqualTo(100 - 4 * 3);
    }

    @Test
    void aStageOfItsOwnThatItsCallerCannotEndCostsWhatTheChargeSays() {
        CompletableFuture<String> own = new CompletableFuture<>();
        service.unawareStage(own.minimalCompletionStage(), 3)
                .toCompletableFuture()
                .cancel(true);
        own.complete("done");
        assertThat(remaining("unaware", null)).isEqualTo(97);
    }

    @Test
    void aFutureThatWaitedIsEndedFromOutsideToo() {
        service.waiting(CompletableFuture.completedFuture("done"));
        CompletableFuture<String> own = new CompletableFuture<>();
        CompletableFuture<String> call = service.waiting(own);
        ticker.advance(Duration.ofSeconds(1));
        Threads.until(() -> own.getNumberOfDependents() > 0);
        call.completeExceptionally(new TimeoutException("of the caller"));
        assertThat(observer.settled).last().isEqualTo("waiting null 1 1");
    }

    @Test
    void aVariableWhoseNameBeginsWithCancelledIsNone() {
        service.orders(new CompletableFuture<>(), 0).cancel(true);
        assertThat(remaining("orders", null)).isEqualTo(90);
    }

    @Test
    void everySubscriptionIsACallOfItsOwnAndChargedOnce() {
        journal.cost = result -> 3;
        Flux<String> flux = service.flux(Flux.just("one"));
        flux.blockLast();
        flux.blockLast();
        assertThat(remaining("stream", null)).isEqualTo(94);
    }

    @Test
    void anEmptyResultIsNullAndCountsAsOneCall() {
        service.mono(Mono.empty()).block();
        service.flux(Flux.empty()).blockLast();
        assertThat(journal.ended).containsExactly(new CallResult(null, null, 1), new CallResult(null, null, 0));
    }

    @Test
    void aResultOfTheSameNameHidesAParameterWhichItsPositionStillNames() {
        service.hidden(4);
        assertThat(remaining("hidden", null)).isEqualTo(95);
    }

    private List<Double> sharesOfCandidates() {
        return limits.configured("dry-run").candidates().state().report().candidates().stream()
                .map(CandidateReport.Candidate::rejected)
                .toList();
    }

    /** The limit would have admitted one of the calls of 10, and 50/h five. */
    @Test
    void aCallThatADryRunWouldHaveRejectedCostsTheCandidates() {
        for (int i = 0; i < 20; i++) {
            service.dryRun(10, 1);
        }
        assertThat(sharesOfCandidates()).containsExactly(0.75, 0.0);
        assertThat(observer.settled).containsExactly("dry-run null 1 10");
    }

    /** 50/h admits 40 of those that cost the one permit that they reserved, beside the first. */
    @Test
    void aCallThatADryRunWouldHaveRejectedCostsTheCandidatesItsReservationIfItsChargeFails() {
        service.dryRun(10, 1);
        for (int i = 0; i < 79; i++) {
            service.dryRun(10, 0);
        }
        assertThat(sharesOfCandidates()).containsExactly(39 / 80.0, 0.0);
        assertThat(observer.failed).isEmpty();
    }

    @Test
    void aCallThatReservesMoreThanCanEverBeHadIsRefusedForEver() {
        assertThatThrownBy(() -> service.weighed(101))
                .isInstanceOfSatisfying(
                        RateLimitExceededException.class,
                        refusal -> assertThat(refusal.decision().never()).isTrue());
        assertThat(remaining("weighed", null)).isEqualTo(100);
    }

    /** A login that fails costs a permit. */
    @Retention(RetentionPolicy.RUNTIME)
    @RateLimited(rate = "5/h")
    @interface Failures {

        @AliasFor(annotation = RateLimited.class)
        String name();

        @AliasFor(annotation = RateLimited.class, attribute = "charge")
        String cost() default "#error != null ? 1 : 0";
    }

    static class Observer implements DecisionObserver {

        private final List<String> settled = new CopyOnWriteArrayList<>();
        private final List<String> failed = new CopyOnWriteArrayList<>();
        private boolean failing;

        @Override
        public void onDecision(RateLimitDecision decision) {}

        @Override
        public void onCharge(RateLimitCharge charge) {
            String text = charge.limit().name() + " " + charge.key() + " " + charge.reserved();
            if (charge.failure() == null) {
                settled.add(text + " " + charge.charged());
            } else {
                failed.add(text);
            }
            fail();
        }

        private void fail() {
            if (failing) {
                throw new NoClassDefFoundError("of an observer");
            }
        }
    }

    static class Service {

        @RateLimited(name = "tokens", permits = "10", charge = "#result['tokens']")
        @RateLimited(name = "words", charge = "#text.split(' ').length")
        public Map<String, Integer> both(String user, String plan, String text) {
            return Map.of("tokens", text.length());
        }

        @RateLimited(name = "transfers", rate = "100/h", key = "#from", permits = "10", charge = "#cost")
        @RateLimited(name = "transfers", rate = "100/h", key = "#to", permits = "5")
        public void transfer(String from, String to, int cost) {}

        @RateLimited(name = "places", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        @RateLimited(name = "place-cost", rate = "100/h", charge = "3")
        public Mono<CompletionStage<String>> inPlace(CompletionStage<String> response) {
            return Mono.just(response);
        }

        @RateLimited(name = "transfers", rate = "100/h", key = "#from", permits = "10", charge = "#cost")
        @RateLimited(name = "transfers", rate = "100/h", key = "#to", permits = "5")
        public Mono<CompletionStage<String>> transferLater(
                String from, String to, int cost, CompletionStage<String> response) {
            return Mono.just(response);
        }

        @RateLimited(name = "fixed", permits = "5", charge = "6")
        public void fixed() {}

        @Failures(name = "failures")
        public void login(String password) {
            if (!password.equals("right")) {
                throw new IllegalArgumentException("wrong password");
            }
        }

        @RateLimited(name = "stream", permits = "10", charge = Journal.CHARGE)
        public void journaled() {}

        @RateLimited(name = "stream", permits = "10", charge = Journal.CHARGE)
        public void nesting(Service self) {
            self.journaled();
        }

        @RateLimited(name = "stream", permits = "10", charge = Journal.CHARGE)
        public Object anything(Supplier<Object> result) {
            return result.get();
        }

        @RateLimited(name = "stream", permits = "10", charge = Journal.CHARGE)
        public CompletableFuture<String> future(CompletableFuture<String> future) {
            return future;
        }

        @RateLimited(name = "stream", permits = "10", charge = Journal.CHARGE)
        public Mono<String> mono(Mono<String> mono) {
            return mono;
        }

        @RateLimited(name = "stream", permits = "10", charge = Journal.CHARGE)
        public Flux<String> flux(Flux<String> flux) {
            return flux;
        }

        @RateLimited(name = "owned", rate = "100/h", permits = "10", charge = "principal.name.length()")
        public CompletableFuture<String> owned(CompletableFuture<String> future) {
            return future;
        }

        @RateLimited("unaware")
        public CompletableFuture<String> unaware(CompletableFuture<String> future, int cost) {
            return future;
        }

        @RateLimited("unaware")
        public CompletionStage<String> unawareStage(CompletionStage<String> stage, int cost) {
            return stage;
        }

        @RateLimited("unaware")
        public Mono<String> unawareMono(Mono<String> mono, int cost) {
            return mono;
        }

        @RateLimited("unaware")
        public Flux<String> unawareFlux(Flux<String> flux, int cost) {
            return flux;
        }

        @RateLimited(
                name = "waiting",
                algorithm = Algorithm.LEAKY_BUCKET,
                rate = "1/s",
                burst = 5,
                maxWait = "5s",
                charge = "0")
        public CompletableFuture<String> waiting(CompletableFuture<String> future) {
            return future;
        }

        @RateLimited(name = "orders", rate = "100/h", permits = "10", charge = "#cancelledOrders")
        public CompletableFuture<String> orders(CompletableFuture<String> future, int cancelledOrders) {
            return future;
        }

        @RateLimited("dry-run")
        public void dryRun(int cost, int parts) {}

        @RateLimited(name = "hidden", rate = "100/h", charge = "#count + #a0")
        public void hidden(int count) {}

        @RateLimited(name = "weighed", algorithm = Algorithm.SLIDING_LOG, rate = "100/h", permits = "#n", charge = "0")
        public void weighed(int n) {}
    }
}
