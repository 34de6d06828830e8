package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.fields.RateLimitHeaderReader;
import io.ratelimited.spring.fields.ResponseLimits;
import io.ratelimited.spring.fields.ResponseLimits.Quota;
import io.ratelimited.spring.internals.client.ClientGate.Entered;
import io.ratelimited.spring.internals.client.ClientPace.Pass;
import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Answers of the other side, read by readers of the application, with values at the ends of their types. */
class ExtremeAnswersTest {

    private static final long SECOND = 1_000_000_000L;
    private static final long MAX_PAUSE = 60 * SECOND;
    private static final long[] QUOTAS = {Quota.UNKNOWN, 0, 1, 100, Long.MAX_VALUE};
    private static final long[] WINDOWS = {Quota.UNKNOWN, 1, 2 * SECOND, MAX_PAUSE, Long.MAX_VALUE};
    private static final long[] RESETS = {MAX_PAUSE, Duration.ofDays(366).toNanos(), Long.MAX_VALUE};

    private final ManualTicker ticker = new ManualTicker();

    private ClientGate gate() {
        return new ClientGate("", null, new WaitingRoom(ticker, () -> 1_000), ticker, MAX_PAUSE);
    }

    private static ResponseLimits nothingLeft(long quota, long window, long reset) {
        return new ResponseLimits(0, List.of(new Quota("a", quota, 0, window, reset)));
    }

    /** As of concurrent limits, whose fields are zero, and of services that do not tell their limit. */
    @ParameterizedTest
    @ValueSource(longs = {Quota.UNKNOWN, 0})
    void whereNothingIsLeftOfAnUnknownQuotaOneCallGoesAtTheReset(long quota) {
        ClientGate gate = gate();
        Pass pass = gate.enter("", 0).join().pass();
        gate.answered(pass, nothingLeft(quota, Quota.UNKNOWN, 5 * SECOND), true);
        CompletableFuture<Entered> next = gate.enter("", 10 * SECOND);
        CompletableFuture<Entered> second = gate.enter("", 11 * SECOND);
        ticker.advanceNanos(5 * SECOND - 1);
        assertThat(next).isNotDone();
        ticker.advanceNanos(1);
        assertThat(next).isCompletedWithValueMatching(entered -> entered.pass() != null);
        assertThat(second).isNotDone();
    }

    @Test
    void aResetThatNeverComesDoesNotEndTheWindowBeforeIt() {
        ClientGate gate = gate();
        Pass one = gate.enter("", 0).join().pass();
        Pass two = gate.enter("", 0).join().pass();
        gate.answered(one, nothingLeft(100, MAX_PAUSE, SECOND), false);
        ticker.advanceNanos(3 * SECOND / 2);
        gate.answered(two, nothingLeft(100, MAX_PAUSE, Long.MAX_VALUE), false);
        assertThat(gate.enter("", 0).join().pass())
                .as("one call asks at the reset")
                .isNotNull();
        assertThat(gate.enter("", 0).join().pass()).isNull();
        CompletableFuture<Entered> next = gate.enter("", 2 * MAX_PAUSE);
        ticker.advanceNanos(MAX_PAUSE - 1);
        assertThat(next).isNotDone();
        ticker.advanceNanos(1);
        assertThat(next).isCompletedWithValueMatching(entered -> entered.pass() != null);
    }

    @ParameterizedTest
    @ValueSource(longs = {Long.MIN_VALUE, -3600 * SECOND, 0, Long.MAX_VALUE - SECOND})
    void callsAreSpreadWhateverTimeTheClockShows(long start) {
        ManualTicker clock = new ManualTicker(start, Instant.EPOCH);
        ClientGate gate = new ClientGate("", null, new WaitingRoom(clock, () -> 1_000), clock, MAX_PAUSE);
        Pass pass = gate.enter("", 0).join().pass();
        gate.answered(pass, new ResponseLimits(0, List.of(new Quota("a", 100, 9, MAX_PAUSE, MAX_PAUSE))), false);
        CompletableFuture<Entered> next = gate.enter("", 10 * SECOND);
        assertThat(next).isNotDone();
        clock.advanceNanos(6 * SECOND);
        assertThat(next).isCompletedWithValueMatching(entered -> entered.pass() != null);
    }

    /** Its reset is between the earliest and the latest that responses state; the remote service may have counted the call. */
    @Test
    void aCallWithoutAResponseIsCountedInTheWindowThatMayHaveBegun() {
        ClientGate gate = gate();
        Pass one = gate.enter("", 0).join().pass();
        Pass two = gate.enter("", 0).join().pass();
        gate.answered(one, nothingLeft(5, MAX_PAUSE / 2, 10 * SECOND), false);
        ticker.advanceNanos(4 * SECOND);
        gate.answered(two, nothingLeft(5, MAX_PAUSE / 2, 10 * SECOND), false);
        ticker.advanceNanos(6 * SECOND);
        Pass lost = gate.enter("", 0).join().pass();
        ticker.advanceNanos(4 * SECOND);
        gate.failed(lost);
        List<CompletableFuture<Entered>> next =
                Stream.generate(() -> gate.enter("", MAX_PAUSE)).limit(6).toList();
        ticker.advanceNanos(MAX_PAUSE / 2 - 1);
        assertThat(next).filteredOn(CompletableFuture::isDone).hasSize(4);
    }

    @Test
    void noExtremeEndsAWindowEarlyOrMakesItLongerThanTheLongestPause() {
        for (long quota : QUOTAS) {
            for (long window : WINDOWS) {
                for (long reset : RESETS) {
                    for (long later : RESETS) {
                        String of = quota + " in " + window + ", reset " + reset + ", then " + later;
                        ClientGate gate = gate();
                        Pass one = gate.enter("", 0).join().pass();
                        Pass two = gate.enter("", 0).join().pass();
                        gate.answered(one, nothingLeft(quota, window, reset), false);
                        gate.answered(two, nothingLeft(quota, window, later), false);
                        CompletableFuture<Entered> next = gate.enter("", Long.MAX_VALUE / 8);
                        ticker.advanceNanos(MAX_PAUSE - 1);
                        assertThat(next).as(of).isNotDone();
                        ticker.advanceNanos(1);
                        assertThat(next).as(of).isCompletedWithValueMatching(entered -> entered.pass() != null);
                    }
                }
            }
        }
    }

    @Test
    void aQuotaWithoutEndStopsNothing() {
        ClientGate gate = gate();
        Quota endless = new Quota("a", Long.MAX_VALUE, Long.MAX_VALUE, Long.MAX_VALUE, Long.MAX_VALUE);
        for (int i = 0; i < 100; i++) {
            Pass one = gate.enter("", 0).join().pass();
            Pass two = gate.enter("", 0).join().pass();
            gate.answered(one, new ResponseLimits(0, List.of(endless)), false);
            gate.giveBack(two);
        }
    }

    @Test
    void aPauseOfCenturiesIsAsLongAsTheLongestPause() {
        assertRefused(() -> new ResponseLimits(Long.MAX_VALUE, List.of()), 429);
        assertRefused(() -> nothingLeft(Long.MAX_VALUE, Long.MAX_VALUE, Long.MAX_VALUE), 200);
    }

    private void assertRefused(Supplier<ResponseLimits> answer, int status) {
        RateLimitHeaderReader reader = (ofStatus, fields, epochMillis) -> answer.get();
        LimitedClientsContext.runner(
                        ticker,
                        "rate-limit.clients.partner.hosts=partner.example",
                        "rate-limit.clients.partner.policy=reject")
                .withBean(RateLimitHeaderReader.class, () -> reader)
                .run(context -> {
                    URI uri = URI.create("https://partner.example");
                    LimitedClient client = context.getBean(LimitedClients.class).of(uri);
                    client.enter(new OutgoingRequest("GET", uri, name -> null)).answered(status, name -> null);
                    RateLimitExceededException refusal = catchThrowableOfType(
                            RateLimitExceededException.class,
                            () -> client.enter(new OutgoingRequest("GET", uri, name -> null)));
                    assertThat(refusal.decision().retryAfter()).isEqualTo(Duration.ofNanos(MAX_PAUSE));
                    ticker.advanceNanos(MAX_PAUSE);
                    client.enter(new OutgoingRequest("GET", uri, name -> null));
                });
    }

    /** What a reader computes of nonsense: none of it is an answer. */
    @Test
    void aReaderThatComputesNonsenseSaysNothing() {
        for (Supplier<ResponseLimits> nonsense : List.<Supplier<ResponseLimits>>of(
                () -> new ResponseLimits(Long.MIN_VALUE, List.of()),
                () -> new ResponseLimits((long) Double.NaN, List.of()),
                () -> new ResponseLimits(0, List.of(new Quota("a", Long.MIN_VALUE, 0, 1, 1))),
                () -> new ResponseLimits(0, List.of(new Quota("a", 1, -1, 1, 1))),
                () -> new ResponseLimits(0, List.of(new Quota("a", 1, 0, (long) -0.5, 1))),
                () -> new ResponseLimits(0, List.of(new Quota("a", 1, 0, 1, (long) Double.NEGATIVE_INFINITY))))) {
            RateLimitHeaderReader reader = (status, fields, epochMillis) -> nonsense.get();
            LimitedClientsContext.runner(
                            ticker,
                            "rate-limit.clients.partner.hosts=partner.example",
                            "rate-limit.clients.partner.policy=reject")
                    .withBean(RateLimitHeaderReader.class, () -> reader)
                    .run(context -> {
                        URI uri = URI.create("https://partner.example");
                        LimitedClient client =
                                context.getBean(LimitedClients.class).of(uri);
                        client.enter(new OutgoingRequest("GET", uri, name -> null))
                                .answered(200, name -> null);
                        client.enter(new OutgoingRequest("GET", uri, name -> null))
                                .answered(200, name -> null);
                    });
        }
    }
}
