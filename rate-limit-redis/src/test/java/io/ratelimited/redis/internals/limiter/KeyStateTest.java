package io.ratelimited.redis.internals.limiter;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.internals.limiter.KeyState.Joined;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What a node remembers of keys, and which calls are sent together. */
class KeyStateTest {

    private final ManualTicker ticker = new ManualTicker();
    private final KeyState.Keys keys = new KeyState.Keys(ticker, this::later, 10);
    private final KeyState key = keys.of("key");
    private final ScriptParameters parameters = new ScriptParameters(
            Limit.of("limit", Algorithm.TOKEN_BUCKET).rate("5/s").build(), ticker, new Nodes("node", 1));

    private void later(long millis, Runnable task) {
        ticker.schedule(ticker.nanos() + Duration.ofMillis(millis).toNanos(), task);
    }

    private static PermitRequest call() {
        return new PermitRequest(1, 0);
    }

    private ScriptReply refused() {
        return ScriptReply.local(~1_000_000_000L, 0, parameters);
    }

    @Test
    void aKeyThatIsLookedForStaysAndOthersAreDropped() {
        KeyState unused = keys.of("unused");
        for (int i = 0; i < 5; i++) {
            ticker.advance(Duration.ofSeconds(1));
            assertThat(keys.find("key")).isSameAs(key);
            keys.of("other" + i);
        }
        assertThat(keys.find("unused")).isNull();
        assertThat(keys.of("unused")).isNotSameAs(unused);
    }

    @Test
    void noMoreKeysAreRememberedThanTheMaximum() {
        for (int i = 0; i < 1_000; i++) {
            keys.of("key" + i);
            assertThat(keys.size()).isLessThanOrEqualTo(10);
        }
        assertThat(keys.find("key999")).isNotNull();
    }

    @Test
    void threeSecondsAfterAFloodOfRejectedKeysNoStateIsLeftThoughNoCallCame() {
        KeyState.Keys flooded = new KeyState.Keys(ticker, this::later, 1_000_000);
        for (int i = 0; i < 10_000; i++) {
            KeyState state = flooded.of("key" + i);
            state.join(call(), true);
            state.next();
            state.refused(call(), refused(), ticker.nanos(), 0);
            state.next();
            flooded.release(state);
        }
        assertThat(flooded.size()).isEqualTo(10_000);
        for (int i = 0; i < 3; i++) {
            ticker.advance(Duration.ofSeconds(1));
        }
        assertThat(flooded.size()).isZero();
        flooded.of("later");
        for (int i = 0; i < 3; i++) {
            ticker.advance(Duration.ofSeconds(1));
        }
        assertThat(flooded.size()).isZero();
    }

    @Test
    void oneSendsWhatAllOfThemAsk() {
        PermitRequest first = call();
        PermitRequest second = call();
        PermitRequest third = call();
        assertThat(key.join(first, true)).isEqualTo(Joined.SENDS);
        assertThat(key.next()).containsExactly(first);
        assertThat(key.join(second, true)).isEqualTo(Joined.WAITS);
        assertThat(key.join(third, true)).isEqualTo(Joined.WAITS);
        assertThat(key.next()).containsExactly(second, third);
        assertThat(key.next()).isNull();
        assertThat(key.join(first, true)).isEqualTo(Joined.SENDS);
    }

    @Test
    void aCommandDecidesABoundedNumberOfCalls() {
        for (int i = 0; i < 300; i++) {
            key.join(call(), true);
        }
        assertThat(key.next()).hasSize(256);
        assertThat(key.next()).hasSize(44);
    }

    @Test
    void aKeyIsDroppedOnceItsCallsAreDecidedAndNothingIsRemembered() {
        key.join(call(), true);
        keys.release(key);
        assertThat(keys.find("key")).isSameAs(key);
        key.next();
        assertThat(key.next()).isNull();
        keys.release(key);
        assertThat(keys.find("key")).isNull();
        assertThat(key.join(call(), true)).isEqualTo(Joined.NOT);
    }

    @Test
    void aRefusalIsRememberedUntilPermitsAreTakenOrComeBack() {
        key.refused(call(), refused(), ticker.nanos(), 0);
        assertThat(key.denial()).isNotNull();
        keys.release(key);
        assertThat(keys.find("key")).isSameAs(key);
        key.changed(ticker.nanos());
        assertThat(key.denial()).isNull();
        long sentAt = ticker.nanos();
        ticker.advance(Duration.ofMillis(1));
        key.changed(ticker.nanos());
        key.refused(call(), refused(), sentAt, 0);
        assertThat(key.denial()).isNull();
        key.refused(call(), refused(), ticker.nanos(), 0);
        assertThat(key.denial()).isNotNull();
    }

    /** A permit takes 142857 microseconds and a seventh, and times are whole ones, rounded up. */
    @Test
    void aRefusalSaysOfMorePermitsOnlyWhatIsExact() {
        ScriptParameters sevenths = new ScriptParameters(
                Limit.of("limit", Algorithm.TOKEN_BUCKET).rate("7/s").burst(20).build(), ticker, new Nodes("node", 1));
        Denial denial = Denial.of(call(), ScriptReply.local(~1_000_000_000L, 0, sevenths), ticker.nanos(), 0);
        assertThat(denial.refusal(sevenths, new Wanted(2, 0), ticker.nanos())).isNull();
        ScriptReply eight = denial.refusal(sevenths, new Wanted(8, 0), ticker.nanos());
        assertThat(eight).isNotNull();
        assertThat(eight.retryNanos()).isEqualTo(2_000_000_000L);
    }

    @Test
    void theLastRefusalOfABatchIsRememberedUnlessACallBehindItGoes() {
        List<PermitRequest> two = List.of(new PermitRequest(3, 0), new PermitRequest(2, 0));
        ScriptReply goes = ScriptReply.local(0, 0, parameters);
        key.decided(two, new ScriptReply[] {refused(), goes}, 0, ticker.nanos(), null);
        assertThat(key.denial()).isNull();
        key.decided(two, new ScriptReply[] {goes, refused()}, 0, ticker.nanos(), null);
        assertThat(key.denial()).isNotNull();
        assertThat(key.denial().permits()).isEqualTo(2);
    }

    /** Replies come in any order. */
    @Test
    void aDecisionIsOlderThanAnyCommandThatWasSentLater() {
        long first = ticker.nanos();
        key.changed(first + 20);
        key.changed(first + 10);
        key.refused(call(), refused(), first + 15, 0);
        assertThat(key.denial()).isNull();
        key.refused(call(), refused(), first + 20, 0);
        assertThat(key.denial()).isNotNull();
    }

    @Test
    void thatACallWouldBeAdmittedIsRememberedUntilACommandTakesPermitsThatWasSentLater() {
        PermitRequest two = new PermitRequest(2, 0);
        ScriptReply goes = ScriptReply.local(0, 5, parameters);
        long before = ticker.nanos();
        key.wouldAdmit(call(), goes, before);
        assertThat(key.admits(parameters, call(), before)).isTrue();
        assertThat(key.admits(parameters, two, before)).isFalse();
        ticker.advance(Duration.ofMillis(1));
        key.decided(List.of(two), new ScriptReply[] {goes}, 0, ticker.nanos(), null);
        assertThat(key.admits(parameters, call(), ticker.nanos())).isFalse();
        key.wouldAdmit(call(), goes, before);
        assertThat(key.admits(parameters, call(), ticker.nanos())).isFalse();
        key.wouldAdmit(call(), goes, ticker.nanos());
        assertThat(key.admits(parameters, call(), ticker.nanos())).isTrue();
        ticker.advance(Duration.ofSeconds(1));
        assertThat(key.admits(parameters, call(), ticker.nanos())).isFalse();
    }

    @Test
    void theAnswerToAnAdmittedQuestionServesNoneAboutMorePermits() {
        PermitRequest two = new PermitRequest(2, 0);
        KeyState.Peek first = key.peek(parameters, two, 1_000_000_000L, ticker.nanos());
        two.complete(ScriptReply.local(0, 5, parameters));
        assertThat(key.peek(parameters, new PermitRequest(1, 0), 1_000_000_000L, ticker.nanos()))
                .isSameAs(first);
        assertThat(key.peek(parameters, new PermitRequest(3, 0), 1_000_000_000L, ticker.nanos()))
                .isNotSameAs(first);
    }
}
