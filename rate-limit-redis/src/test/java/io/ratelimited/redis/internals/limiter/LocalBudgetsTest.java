package io.ratelimited.redis.internals.limiter;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.CallerLimit;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.internals.connection.GuardedConnection;
import io.ratelimited.redis.internals.connection.KeyNames;
import io.ratelimited.redis.internals.connection.RedisConnector;
import io.ratelimited.redis.internals.connection.RedisLink;
import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import io.ratelimited.redis.internals.connection.Threads;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.UnaryOperator;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** What a node admits by itself in one outage and in many. In one thread, on a time that the test moves. */
@Tag("slow")
class LocalBudgetsTest {

    private static final Duration LOOK = Duration.ofMillis(200);

    private final ManualTicker clock = new ManualTicker();
    private final TwoServers servers = new TwoServers();
    private final KeyNames keys = new KeyNames("rl");
    private final GuardedConnection connection = new GuardedConnection(
            servers,
            keys,
            Duration.ofMillis(50).toNanos(),
            clock,
            new Threads(clock, Runnable::run, Runnable::run),
            false,
            UnaryOperator.identity());
    private final Nodes nodes = new Nodes("node", 0);
    private final LimiterContext context =
            new LimiterContext(connection, keys, clock, Runnable::run, nodes, IllegalStateException::new);

    {
        share(1);
    }

    /** So many nodes are counted. */
    private void share(int count) {
        nodes.count(count, 0, 0);
        nodes.count(count, 0, Duration.ofMillis(Nodes.COUNT_MILLIS).toNanos());
    }

    /** Two primaries: the budgets of caller "b" are on the second, until its slot moves. A command to a server that is away fails. */
    private static final class TwoServers implements RedisConnector {

        private static final String SECOND = '{' + CanonicalKey.digest("b") + '}';

        private final Set<String> away = new HashSet<>();
        private Runnable whileAsked = () -> {};
        private boolean moved;
        private String first = "a";
        /** The reply to each charge. */
        private CompletionStage<List<Object>> charged = CompletableFuture.completedFuture(List.of());

        @Override
        public CompletionStage<Set<String>> discover() {
            return CompletableFuture.completedFuture(Set.of(first, "b"));
        }

        @Override
        public String address(String key) {
            return (key.contains(SECOND) && !moved) || key.contains("{b}") ? "b" : first;
        }

        @Override
        public CompletionStage<RedisLink> connect(String address) {
            return CompletableFuture.completedFuture(new Link(address));
        }

        @Override
        public boolean isCluster() {
            return false;
        }

        @Override
        public void close() {}

        private final class Link implements RedisLink {

            private final String address;

            private Link(String address) {
                this.address = address;
            }

            @Override
            public CompletionStage<List<Object>> eval(
                    Script script, String[] on, ScriptArguments args, boolean asking) {
                whileAsked.run();
                if (away.contains(address)) {
                    return CompletableFuture.failedFuture(new IllegalStateException("away"));
                }
                return script.equals(Script.DECIDE) ? charged : CompletableFuture.completedFuture(List.of());
            }

            @Override
            public CompletionStage<List<Object>> time() {
                throw new UnsupportedOperationException();
            }

            @Override
            public CompletionStage<Long> delete(String key) {
                return CompletableFuture.completedFuture(1L);
            }

            @Override
            public void onBreak(Runnable task) {}

            @Override
            public void close() {}
        }
    }

    @AfterEach
    void close() {
        connection.close();
    }

    private RedisRateLimiter limiter(Algorithm algorithm, String rate) {
        return new RedisRateLimiter(
                context, Limit.of("limit", algorithm).rate(rate).build(), "", failure -> null, 0, 100_000);
    }

    private void begin(String server) {
        servers.away.add(server);
        for (int i = 0; i < 5; i++) {
            assertThat(connection.eval(Script.PROBE, new String[] {"rl:{" + server + "}"}, new ScriptArguments()))
                    .isCompletedExceptionally();
        }
        assertThat(connection.isDown("rl:{" + server + "}")).isTrue();
    }

    private void end(String server) {
        servers.away.remove(server);
        clock.advance(LOOK);
        assertThat(connection.isDown("rl:{" + server + "}")).isFalse();
    }

    /** What Redis says of each group of permits that it is asked for. */
    private void charged(long... outcomes) {
        List<Object> each =
                LongStream.of(outcomes).<Object>mapToObj(List::<Object>of).toList();
        servers.charged = CompletableFuture.completedFuture(each.size() > 1 ? each : List.of(outcomes[0]));
    }

    private static int takeAll(RedisRateLimiter limiter, String key) {
        int taken = 0;
        while (!limiter.reserveLocally(key, 1, 0).isRefused()) {
            taken++;
        }
        return taken;
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA"})
    void eightOutagesGiveOneBurstAndWhatRefillsInThem(Algorithm algorithm) {
        RedisRateLimiter limiter = limiter(algorithm, "10/s");
        int taken = 0;
        for (int outage = 0; outage < 8; outage++) {
            begin("a");
            taken += takeAll(limiter, "k");
            clock.advance(Duration.ofMillis(300));
            taken += takeAll(limiter, "k");
            end("a");
            clock.advance(Duration.ofSeconds(60));
        }
        assertThat(taken).isEqualTo(10 + 8 * 3);
    }

    /** A reply that is late: no time passes in an outage with one call. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "LEAKY_BUCKET"})
    void permitsThatRedisWouldHaveAdmittedComeBack(Algorithm algorithm) {
        RedisRateLimiter limiter = limiter(algorithm, "10/d");
        charged(0);
        for (int late = 0; late < 40; late++) {
            assertThat(limiter.reserveLocally("k", 1, 0).isRefused()).isFalse();
            clock.advance(LOOK);
        }
    }

    @Test
    void permitsThatAreDebtInRedisOrMayBeLostDoNot() {
        RedisRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, "10/d");
        charged(-1);
        limiter.reserveLocally("k", 4, 0);
        clock.advance(LOOK);
        servers.charged = CompletableFuture.failedFuture(new IllegalStateException("lost"));
        limiter.reserveLocally("k", 3, 0);
        clock.advance(LOOK);
        charged(0);
        limiter.reserveLocally("k", 2, 0);
        clock.advance(LOOK);
        assertThat(takeAll(limiter, "k")).isEqualTo(10 - 4 - 3);
    }

    /** Redis was refilled in that time, too. */
    @Test
    void permitsThatHaveBeenRefilledInTheOutageDoNotComeBackAgain() {
        RedisRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, "10/s");
        charged(-1);
        limiter.reserveLocally("k", 4, 0);
        clock.advance(LOOK);
        begin("a");
        limiter.reserveLocally("k", 5, 0);
        clock.advance(Duration.ofMillis(300));
        limiter.reserveLocally("k", 1, 0);
        charged(0);
        end("a");
        assertThat(takeAll(limiter, "k")).isEqualTo(10 - 4);
    }

    /** The time of all keys of a server passes from the first call of any. */
    @Test
    void noPermitsWithWhichTheCallsOfOtherKeysHadItRefilledComeBackAgain() {
        RedisRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, "10/s");
        charged(-1);
        takeAll(limiter, "k");
        charged(-1, -1);
        clock.advance(LOOK);
        begin("a");
        limiter.reserveLocally("other", 1, 0);
        clock.advance(Duration.ofMillis(300));
        assertThat(limiter.reserveLocally("k", 3, 0).isRefused()).isFalse();
        charged(0);
        end("a");
        assertThat(takeAll(limiter, "k")).isZero();
    }

    /** Redis would have admitted the first of them on credit. */
    @Test
    void severalCallsWhoseNextOnePaysGetNothingBack() {
        RedisRateLimiter limiter = limiter(Algorithm.SMOOTH_BURSTY, "10/s");
        begin("a");
        limiter.reserveLocally("k", 1, 0);
        clock.advance(Duration.ofMillis(500));
        assertThat(takeAll(limiter, "k")).isEqualTo(5);
        charged(0, -1);
        end("a");
        charged(-1);
        begin("a");
        assertThat(takeAll(limiter, "k")).isZero();
    }

    @Test
    void theShareHasPermitsForTheNextCallOnceRedisHasThem() {
        RedisRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, "10/d");
        charged(-1, -1);
        assertThat(takeAll(limiter, "k")).isEqualTo(10);
        clock.advance(LOOK);
        charged(-1);
        assertThat(takeAll(limiter, "k")).isZero();
        clock.advance(LOOK);
        charged(0);
        assertThat(limiter.reserveLocally("k", 3, 0).isRefused()).isTrue();
        clock.advance(LOOK);
        assertThat(takeAll(limiter, "k")).isEqualTo(3);
    }

    @Test
    void whatACallLackedIsNotAskedForOnceALaterOneIsAdmitted() {
        RedisRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, "10/d");
        charged(-1);
        limiter.reserveLocally("k", 8, 0);
        clock.advance(LOOK);
        charged(-1, 0);
        assertThat(limiter.reserveLocally("k", 5, 0).isRefused()).isTrue();
        assertThat(limiter.reserveLocally("k", 1, 0).isRefused()).isFalse();
        clock.advance(LOOK);
        assertThat(takeAll(limiter, "k")).isEqualTo(1);
    }

    @Test
    void callersWithNumbersOfTheirOwnGetTheirPermitsBack() {
        RedisRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, "10/d");
        RedisRateLimiter small = (RedisRateLimiter) limiter.ofCallers(CallerLimit.of("3/d"));
        charged(0);
        for (int late = 0; late < 10; late++) {
            assertThat(small.reserveLocally("small", 1, 0).isRefused()).isFalse();
            assertThat(limiter.reserveLocally("k", 1, 0).isRefused()).isFalse();
            clock.advance(LOOK);
        }
        assertThat(takeAll(small, "small")).isEqualTo(3);
        assertThat(takeAll(limiter, "k")).isEqualTo(10);
    }

    @Test
    void aCallThatIsRefundedGetsNothingBackAgain() {
        RedisRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, "10/d");
        charged(0);
        Reservation owed = limiter.reserveLocally("k", 4, 0);
        Reservation charged = limiter.reserveLocally("other", 4, 0);
        owed.settle(1);
        clock.advance(LOOK);
        charged.settle(1);
        assertThat(takeAll(limiter, "k")).isEqualTo(10);
        assertThat(takeAll(limiter, "other")).isEqualTo(10);
    }

    /** Where Redis is away; else it alone is charged. */
    @Test
    void permitsThatACallUsedBeyondItsReservationComeBack() {
        RedisRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, "10/d");
        begin("a");
        limiter.reserveLocally("k", 1, 0).settle(8);
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(2);
        charged(0);
        end("a");
        charged(-1);
        limiter.reserveLocally("k", 0, 0).settle(8);
        assertThat(takeAll(limiter, "k")).isEqualTo(10);
    }

    @Test
    void aReplyAfterAChangeOfTheLimitOrAResetFillsTheBucketAtMost() {
        RedisRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, "10/d");
        CompletableFuture<List<Object>> late = new CompletableFuture<>();
        servers.charged = late;
        limiter.reserveLocally("k", 4, 0);
        limiter.reserveLocally("reset", 4, 0);
        limiter.reserveLocally("changed", 2, 0);
        limiter.reserveLocally("changed", 8, 0);
        clock.advance(LOOK);
        limiter.update(Limit.of("limit", Algorithm.TOKEN_BUCKET).rate("5/d").build());
        limiter.reset("reset");
        assertThat(takeAll(limiter, "changed")).isZero();
        late.complete(List.of(0L));
        charged(-1);
        for (String key : List.of("k", "reset", "changed")) {
            assertThat(takeAll(limiter, key)).isEqualTo(5);
        }
    }

    /** Such a caller has found the breaker open, and comes to its decision late. */
    @Test
    void aCallerWhoIsDecidedAfterTheOutageMakesNoBudgetForTheNext() {
        RedisRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, "10/s");
        begin("a");
        assertThat(takeAll(limiter, "k")).isEqualTo(10);
        end("a");
        for (int late = 0; late < 3; late++) {
            assertThat(limiter.reserveLocally("k", 1, 0).isRefused()).isTrue();
            clock.advance(Duration.ofSeconds(60));
        }
        begin("a");
        assertThat(takeAll(limiter, "k")).isZero();
    }

    /** The charges of an outage are sent in the middle of the recovery: callers come right before and behind each. */
    @Test
    void noCallerBetweenTwoStepsOfARecoveryMakesABudgetForTheNextOutage() {
        RedisRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, "10/s");
        begin("a");
        takeAll(limiter, "k");
        takeAll(limiter, "other");
        int[] asked = {0};
        servers.whileAsked = () -> {
            asked[0]++;
            limiter.reserveLocally("k", 1, 0);
        };
        end("a");
        servers.whileAsked = () -> {};
        assertThat(asked[0]).isGreaterThanOrEqualTo(3);
        limiter.reserveLocally("k", 1, 0);
        clock.advance(Duration.ofSeconds(60));
        limiter.reserveLocally("k", 1, 0);
        begin("a");
        assertThat(takeAll(limiter, "k")).isLessThanOrEqualTo(2);
    }

    @Test
    void theOutageOfOneServerRefillsNothingForTheKeysOfAnother() {
        RedisRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, "10/s");
        begin("b");
        for (int outage = 0; outage < 3; outage++) {
            begin("a");
            assertThat(takeAll(limiter, "a")).isEqualTo(outage == 0 ? 10 : 0);
            end("a");
            clock.advance(Duration.ofSeconds(60));
            assertThat(takeAll(limiter, "b")).isEqualTo(10);
        }
    }

    /** Only buckets have the time of a server. */
    @ParameterizedTest
    @CsvSource({"TOKEN_BUCKET, 10", "FIXED_WINDOW, 0", "SLIDING_WINDOW, 0", "SLIDING_LOG, 0"})
    void aKeyWhoseSlotMovesHasAnotherBucketButTheSameWindow(Algorithm algorithm, int again) {
        RedisRateLimiter limiter = limiter(algorithm, "10/d");
        begin("b");
        assertThat(takeAll(limiter, "b")).isEqualTo(10);
        begin("a");
        servers.moved = true;
        assertThat(takeAll(limiter, "b")).isEqualTo(again);
        servers.moved = false;
        assertThat(takeAll(limiter, "b")).isZero();
    }

    /** As in Kubernetes, where each pod has an address of its own. */
    @Test
    void bucketsOfAnAddressThatHasNoPrimaryAnyMoreAreForgotten() {
        RedisRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, "10/d");
        limiter.reserveLocally("b", 1, 0);
        for (int restart = 0; restart < 20; restart++) {
            servers.first = "a" + restart;
            clock.advance(LOOK);
            // Whoever asks first has it looked for.
            connection.address("rl:{a}");
            for (int caller = 0; caller < 5; caller++) {
                limiter.reserveLocally("caller" + caller, 1, 0);
            }
        }
        assertThat(limiter.keys()).isEqualTo(1 + 5);
    }

    @Test
    void aKeyThatWasNeverSeenBeginsWithTheShareOfTheBurst() {
        share(3);
        RedisRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, "5/h");
        begin("a");
        assertThat(limiter.reserveLocally("first", 1, 0).isRefused()).isFalse();
        assertThat(limiter.reserveLocally("first", 1, 0).decision().retryAfter())
                .isEqualTo(Duration.ofMinutes(36));
        assertThat(takeAll(limiter, "second")).isEqualTo(1);
        end("a");
        clock.advance(Duration.ofDays(1));
        begin("a");
        assertThat(takeAll(limiter, "first")).isZero();
        assertThat(takeAll(limiter, "third")).isEqualTo(1);
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void aChangeOfTheLimitDuringAnOutageKeepsWhatIsSpent(Algorithm algorithm) {
        RedisRateLimiter limiter = limiter(algorithm, "20/d");
        begin("a");
        int taken = takeAll(limiter, "k");
        for (int change = 0; change < 5; change++) {
            limiter.update(Limit.of("limit", algorithm).rate(19 - change + "/d").build());
            taken += takeAll(limiter, "k");
            limiter.update(limiter(algorithm, "20/d").limit());
            taken += takeAll(limiter, "k");
        }
        assertThat(taken).isEqualTo(20);
    }

    @Test
    void aChangeOfTheNumberOfNodesKeepsWhatIsSpent() {
        RedisRateLimiter limiter = limiter(Algorithm.FIXED_WINDOW, "20/d");
        begin("a");
        share(4);
        int taken = takeAll(limiter, "k");
        share(2);
        taken += takeAll(limiter, "k");
        share(4);
        taken += takeAll(limiter, "k");
        share(2);
        taken += takeAll(limiter, "k");
        assertThat(taken).isLessThanOrEqualTo(10);
    }

    /** Less than one permit is one in a time of fixed length, which has no first day. */
    @Test
    void aNodeHasItsShareOfAQuotaOfTheCalendarInTheSameWindows() {
        Limit quota = Limit.of("quota", Algorithm.FIXED_WINDOW)
                .rate("100/month")
                .startsOn("15")
                .build();
        assertThat(InstanceShare.of(quota, 3)).hasToString("quota: fixed-window, rate 33/month, zone UTC, startsOn 15");
        Limit few = quota.toBuilder().rate("2/month").build();
        assertThat(InstanceShare.of(few, 3)).hasToString("quota: fixed-window, rate 1/62d, zone UTC");
        Limit yearly = Limit.of("quota", Algorithm.FIXED_WINDOW).rate("1/year").build();
        assertThat(InstanceShare.of(yearly, 20)).hasToString("quota: fixed-window, rate 1/3650d, zone UTC");
    }
}
