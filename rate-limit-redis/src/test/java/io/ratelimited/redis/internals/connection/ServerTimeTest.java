package io.ratelimited.redis.internals.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.OtherTime;
import io.ratelimited.redis.RedisServers;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What a node makes of the replies to TIME. */
class ServerTimeTest {

    private static final long LOST = -1;
    /** The reply to a decision, in its place. */
    private static final long ANOTHER = -2;

    private final ManualTicker ticker = RedisServers.ticker();
    private final ManualTicker clock = RedisServers.ticker();
    private final Threads threads = new Threads(clock, Runnable::run, Runnable::run);
    /** Round trips to come, in milliseconds. The way there takes all of it, which is the worst for the estimate. */
    private final Deque<Long> trips = new ArrayDeque<>();
    /** Microseconds by which the server's clock has stepped. */
    private long stepped;

    private final ServerTime time =
            new ServerTime(ticker, true, this::answer, threads, new Deadlines(threads, 50_000_000));

    private CompletionStage<List<Object>> answer() {
        Long trip = trips.poll();
        if (trip == null || trip == LOST) {
            return CompletableFuture.failedFuture(new IllegalStateException("lost"));
        }
        if (trip == ANOTHER) {
            return CompletableFuture.completedFuture(List.of(0L, 999_321L, 65_000_000_000L, 0L));
        }
        ticker.advance(Duration.ofMillis(trip));
        return CompletableFuture.completedFuture(OtherTime.reply(server()));
    }

    @AfterEach
    void stop() {
        threads.close();
    }

    /** Microseconds. */
    private long server() {
        return ticker.epochNanos() / 1000 + stepped;
    }

    /** How far the node is ahead of the server, in microseconds. */
    private long error() {
        return Long.parseLong(time.word()) - server();
    }

    private void ask(Long... millis) {
        trips.addAll(List.of(millis));
        time.ask();
        assertThat(trips).isEmpty();
    }

    @Test
    void isUnknownUntilAServerHasToldIt() {
        assertThat(time.isKnown()).isFalse();
        assertThat(time.word()).isEmpty();
        ask(LOST);
        assertThat(time.isKnown()).isFalse();
        assertThat(time.failure()).hasMessage("lost");
        assertThat(time.firstKnown()).isNotDone();
    }

    @Test
    void isTakenFromTheShortestRoundTripAndWrongByHalfOfItAtMost() {
        ask(40L, 7L, 1L, 3L, 20L);
        assertThat(error()).isEqualTo(500);
        assertThat(time.failure()).isNull();
        assertThat(time.firstKnown()).isDone();
    }

    @Test
    void aServerThatDoesNotReplyIsAskedAgainAfterHalfASecondOnly() {
        ask(6L, 2L, LOST);
        assertThat(error()).isEqualTo(1000);
        ask(LOST);
        assertThat(error()).isEqualTo(1000);
        trips.addAll(List.of(2L, 4L, 4L, 4L, 4L));
        clock.advance(Duration.ofMillis(499));
        time.look();
        assertThat(trips).hasSize(5);
        clock.advance(Duration.ofMillis(1));
        time.look();
        assertThat(trips).isEmpty();
    }

    @Test
    void aStepOfTheServersClockIsKnownAfterASecond() {
        ask(2L, 2L, 2L, 2L, 2L);
        stepped = 3_000_000;
        trips.addAll(List.of(2L, 2L, 2L, 2L, 2L));
        clock.advance(Duration.ofMillis(999));
        time.look();
        assertThat(error()).isEqualTo(1000 - stepped);
        clock.advance(Duration.ofMillis(1));
        time.look();
        assertThat(error()).isEqualTo(1000);
    }

    /** Otherwise scripts would be told a time in 1970, and then all keys would be full. */
    @Test
    void theReplyToAnotherCommandIsNoTime() {
        ask(2L, ANOTHER);
        assertThat(error()).isEqualTo(1000);
    }

    @Test
    void goesOnWithTheTickerWhateverTheWallClockDoes() {
        ask(2L, 2L, 2L, 2L, 2L);
        long before = Long.parseLong(time.word());
        ticker.advance(Duration.ofSeconds(29));
        ticker.setWallClock(java.time.Instant.EPOCH);
        assertThat(Long.parseLong(time.word()) - before).isEqualTo(29_000_000);
    }
}
