package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.SharedRecords.Outcome;
import io.ratelimited.redis.internals.connection.LettuceConnector;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Records that nodes share, on a server that loses a part of them. */
@Tag("once")
@Tag("slow")
class SharedRecordsTest {

    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final SharedRecords.Key LIMIT = new SharedRecords.Key("search", null);
    private static final SharedRecords.Key ANN = new SharedRecords.Key("search", "ann");
    private static final SharedRecords.Key BOB = new SharedRecords.Key("search", "bob");

    private final RedisProcess server = RedisProcess.start();
    private final Deque<RedisBackend> backends = new ArrayDeque<>();
    private SharedRecords one;
    private SharedRecords two;

    @BeforeEach
    void nodes() {
        one = node();
        two = node();
    }

    @AfterEach
    void close() {
        backends.forEach(RedisBackend::close);
        server.close();
    }

    private SharedRecords node() {
        return node(FarNode.PATIENT);
    }

    private SharedRecords node(RedisBackendOptions options) {
        backends.push(RedisBackend.of(RedisServers.settings(server.port()), options));
        return backends.getFirst().records();
    }

    /** A node by whose ticker Redis has the time, too. */
    private SharedRecords node(ManualTicker ticker) {
        RedisClientSettings client = RedisServers.settings(server.port());
        backends.push(RedisBackend.of(
                LettuceConnector.of(client.resources(), client.options(), client.uris()),
                FarNode.PATIENT.ticker(ticker),
                time -> ticker.epochNanos() / 1000 + RedisServers.OUTLIVES));
        return backends.getFirst().records();
    }

    /** On a busy machine a node may have missed a reply, and then asks nobody for a moment. */
    private static void write(SharedRecords records, SharedRecords.Key key, String text, @Nullable Duration lasting) {
        until(
                () -> {
                    SharedRecords.Entry known = records.find(key);
                    try {
                        return records.write(
                                        key, known == null ? 0 : known.version(), text, lasting, "ann ♥ bob", 10_000)
                                == SharedRecords.Outcome.WRITTEN;
                    } catch (RedisUnavailableException ex) {
                        return false;
                    }
                },
                "a node writes " + text,
                PATIENCE);
    }

    private static void awaitText(SharedRecords records, SharedRecords.Key key, String text) {
        until(
                () -> {
                    SharedRecords.Entry found = records.find(key);
                    return found != null && found.text().equals(text);
                },
                "a node has " + text,
                PATIENCE);
    }

    private String key(String part) {
        return server.ask(commands -> commands.keys("*" + part)).stream()
                .findFirst()
                .orElseThrow();
    }

    @Test
    void whatTheServerAloneHasLostIsThereAgainThoughNobodyWasDisconnected() {
        write(one, ANN, "rate=3/d", Duration.ofHours(24));
        awaitText(two, ANN, "rate=3/d");

        server.ask(commands -> commands.flushall());
        write(two, LIMIT, "rate=5/d", null);

        awaitText(one, LIMIT, "rate=5/d");
        SharedRecords three = node();
        awaitText(three, ANN, "rate=3/d");
        awaitText(three, LIMIT, "rate=5/d");
    }

    /** A removed record is in no sum: the writer finds out that Redis does not know of it. */
    @Test
    void aRecordWhoseRemovalTheServerHasLostCanBeWritten() {
        write(one, LIMIT, "rate=5/d", null);
        write(one, LIMIT, "", null);

        server.ask(commands -> commands.flushall());
        write(two, ANN, "rate=3/d", null);
        awaitText(one, ANN, "rate=3/d");

        long basedOn = Objects.requireNonNull(one.find(LIMIT)).version();
        SharedRecords.Outcome outcome = one.write(LIMIT, basedOn, "rate=6/d", null, null, 10_000);
        if (outcome == SharedRecords.Outcome.OUTDATED) {
            write(one, LIMIT, "rate=6/d", null);
        }
        awaitText(two, LIMIT, "rate=6/d");
    }

    @Test
    void aServerThatHasEvictedTheRecordsButNotTheirPositionsGetsThemBack() {
        write(one, LIMIT, "rate=5/d", null);
        write(one, ANN, "rate=3/d", null);
        awaitText(two, ANN, "rate=3/d");

        server.ask(commands -> commands.del(key("changes2")));
        write(two, new SharedRecords.Key("search", "bob"), "rate=4/d", null);

        SharedRecords three = node();
        awaitText(three, ANN, "rate=3/d");
        awaitText(three, LIMIT, "rate=5/d");
    }

    @Test
    void aRecordThatWasRemovedLongAgoCanBeWrittenAgain() {
        ManualTicker ticker = RedisServers.ticker();
        SharedRecords node = node(ticker);
        write(node, ANN, "rate=3/d", null);
        write(node, ANN, "", null);
        write(node, LIMIT, "rate=5/d", Duration.ofMinutes(30));

        ticker.advance(Duration.ofMinutes(61));
        write(node, new SharedRecords.Key("search", "bob"), "rate=4/d", null);
        write(node, ANN, "rate=7/d", null);
        write(node, LIMIT, "rate=6/d", null);

        assertThat(node.find(ANN)).extracting(SharedRecords.Entry::text).isEqualTo("rate=7/d");
        assertThat(node.find(LIMIT)).extracting(SharedRecords.Entry::text).isEqualTo("rate=6/d");
    }

    /** Records of callers come and go: what was removed an hour ago is on no node and not in Redis. */
    @Test
    void whatWasRemovedLongAgoIsForgottenByAllNodes() {
        ManualTicker ticker = RedisServers.ticker();
        SharedRecords writer = node(ticker);
        SharedRecords reader = node(ticker);
        write(writer, ANN, "rate=3/d", null);
        write(writer, ANN, "", null);
        write(writer, BOB, "rate=7/d", Duration.ofSeconds(1));
        awaitText(reader, BOB, "rate=7/d");
        Queue<SharedRecords.Change> changes = reader.follow(() -> {});
        ticker.advance(Duration.ofMinutes(59));
        write(writer, LIMIT, "rate=4/d", null);
        awaitText(reader, LIMIT, "rate=4/d");
        assertThat(reader.find(ANN)).isNotNull();

        ticker.advance(Duration.ofMinutes(2));
        write(writer, LIMIT, "rate=5/d", null);

        until(() -> reader.find(ANN) == null && writer.find(ANN) == null, "no node has it", PATIENCE);
        until(() -> reader.find(BOB) == null && writer.find(BOB) == null, "nor what has ended", PATIENCE);
        // Those who follow may have kept it.
        assertThat(changes)
                .filteredOn(change -> change.key().equals(BOB))
                .singleElement()
                .extracting(change -> change.entry().text())
                .isEqualTo("");
        List<String> fields = server.ask(commands -> commands.hkeys(key("changes2")));
        assertThat(fields).containsOnly("version", "lsearch");
    }

    /** Ended texts are remembered for an hour: those that last for a moment would fill Redis and all nodes meanwhile. */
    @Test
    void atMostTwiceAsManyCallersAreRememberedAsMayHaveAText() {
        ManualTicker ticker = RedisServers.ticker();
        SharedRecords node = node(ticker);
        Duration moment = Duration.ofMillis(1);
        for (int i = 0; i < 20; i++) {
            assertThat(outcome(node, "caller " + i, "rate=3/d", moment)).isEqualTo(Outcome.WRITTEN);
            ticker.advance(moment);
        }

        assertThat(outcome(node, "another", "rate=3/d", moment)).isEqualTo(Outcome.FULL);
        for (int i = 0; i < 10; i++) {
            assertThat(outcome(node, "caller " + i, "rate=4/d", null)).isEqualTo(Outcome.WRITTEN);
        }
        assertThat(outcome(node, "caller 10", "rate=4/d", null)).isEqualTo(Outcome.FULL);
        assertThat(outcome(node, "caller 0", "", null)).isEqualTo(Outcome.WRITTEN);
        assertThat(outcome(node, "caller 10", "rate=4/d", null)).isEqualTo(Outcome.WRITTEN);

        ticker.advance(Duration.ofMinutes(61));
        assertThat(outcome(node, "caller 10", "", null)).isEqualTo(Outcome.WRITTEN);
        for (int i = 0; i < 10; i++) {
            assertThat(outcome(node, "later " + i, "rate=3/d", moment)).isEqualTo(Outcome.WRITTEN);
            ticker.advance(moment);
        }
        assertThat(outcome(node, "another", "rate=3/d", moment)).isEqualTo(Outcome.FULL);
        List<String> fields = server.ask(commands -> commands.hkeys(key("changes2")));
        assertThat(fields).hasSize(1 + 20);
    }

    /** As by a job that ends the overrides of all customers, of whom few have one: the hour would reject the next ones. */
    @Test
    void theRemovalOfATextThatNobodyHasLeavesNothing() {
        for (int i = 0; i < 21; i++) {
            assertThat(outcome(one, "caller " + i, "", null)).isEqualTo(Outcome.WRITTEN);
        }

        assertThat(one.callers("search")).isEmpty();
        assertThat(outcome(one, "another", "rate=3/d", null)).isEqualTo(Outcome.WRITTEN);
        List<String> fields = server.ask(commands -> commands.hkeys(key("changes2")));
        assertThat(fields).containsOnly("version", "canother:search");
    }

    @Test
    void theRemovalOfATextThatTheNodeHasNotHeardOfEndsItForAll() {
        write(two, ANN, "rate=3/d", null);

        write(one, ANN, "", null);

        awaitText(two, ANN, "");
        awaitText(node(), ANN, "");
    }

    /** A field that no node can read is no text, but it is there. */
    @Test
    void theRemovalOfWhatCannotBeReadReplacesIt() {
        write(one, LIMIT, "rate=5/d", null);
        server.ask(commands -> commands.hset(key("changes2"), "cann:search", "unreadable"));

        write(one, ANN, "", null);

        awaitText(one, ANN, "");
    }

    /** Redis has lost the text, and would get it back from a node that was not told of its removal. */
    @Test
    void theRemovalOfATextThatRedisHasLostIsWritten() {
        write(one, ANN, "rate=3/d", null);
        awaitText(two, ANN, "rate=3/d");
        server.ask(commands -> commands.flushall());

        write(one, ANN, "", null);

        awaitText(two, ANN, "");
        awaitText(node(), ANN, "");
    }

    /** Of at most ten callers at once. */
    private static Outcome outcome(SharedRecords records, String caller, String text, @Nullable Duration lasting) {
        SharedRecords.Key key = new SharedRecords.Key("search", caller);
        AtomicReference<Outcome> outcome = new AtomicReference<>(Outcome.OUTDATED);
        until(
                () -> {
                    SharedRecords.Entry known = records.find(key);
                    try {
                        long version = known == null ? 0 : known.version();
                        outcome.set(records.write(key, version, text, lasting, null, 10));
                    } catch (RedisUnavailableException ex) {
                        // On a busy machine a node may have missed a reply.
                    }
                    return outcome.get() != Outcome.OUTDATED;
                },
                "a node writes " + text,
                PATIENCE);
        return outcome.get();
    }

    @Test
    void everyNodeHasTheAuthorAndTheTimeOfEachWriteAndTakesThemInTheirOrder() {
        write(one, LIMIT, "first", null);
        awaitText(two, LIMIT, "first");
        Queue<SharedRecords.Change> changes = two.follow(() -> {});
        long begin = server.ask(commands -> Long.parseLong(commands.time().get(0)));
        for (int i = 0; i < 30; i++) {
            write(one, i % 2 == 0 ? LIMIT : ANN, "rate=" + i, null);
        }
        awaitText(two, ANN, "rate=29");

        // On a busy machine a write that was not answered is there twice.
        assertThat(changes.stream().map(change -> change.entry().text()).distinct())
                .containsExactlyElementsOf(
                        IntStream.range(0, 30).mapToObj(i -> "rate=" + i).toList());
        assertThat(changes).allSatisfy(change -> {
            assertThat(change.entry().author()).isEqualTo("ann ♥ bob");
            assertThat(change.entry().writtenAt().getEpochSecond()).isBetween(begin, begin + 120);
        });
        assertThat(Objects.requireNonNull(node().find(LIMIT)).author()).isEqualTo("ann ♥ bob");
    }

    /** Another node that it has not heard of may have removed the text, and Redis have forgotten that. */
    @Test
    void aNodeThatWasAwayForLongTakesWhatIsThere() {
        afterAnOutage(Duration.ofMinutes(31), false);
    }

    @Test
    void aNodeThatWasAwayForAShortTimeWritesBackWhatRedisHasLost() {
        afterAnOutage(Duration.ofMinutes(29), true);
    }

    /** @param inForce whether a change is in force after an outage in which Redis has lost it */
    private void afterAnOutage(Duration time, boolean inForce) {
        backends.forEach(RedisBackend::close);
        ManualTicker ticker = RedisServers.ticker();
        SharedRecords node = node(FarNode.PATIENT.ticker(ticker));
        Queue<SharedRecords.Change> changes = node.follow(() -> {});
        write(node, LIMIT, "rate=5/d", null);
        RedisBackend backend = backends.getFirst();
        changes.clear();

        server.kill();
        until(() -> backend.health().state() == RedisHealth.State.DOWN, "away", PATIENCE);
        ticker.advance(time);
        server.restart();
        until(() -> backend.health().state() == RedisHealth.State.UP, "back", PATIENCE);
        write(node, new SharedRecords.Key("other", null), "rate=1", null);

        SharedRecords later = node();
        until(() -> later.find(new SharedRecords.Key("other", null)) != null, "read", PATIENCE);
        SharedRecords decides = inForce ? later : node;
        until(() -> (decides.find(LIMIT) != null) == inForce, "restored, or dropped", PATIENCE);
        assertThat(node.find(LIMIT) != null).isEqualTo(inForce);
        assertThat(later.find(LIMIT) != null).isEqualTo(inForce);
        assertThat(changes)
                .filteredOn(change -> change.entry().text().isEmpty())
                .as("nobody knows when Redis has lost it")
                .allSatisfy(change -> assertThat(change.entry().writtenAt()).isNull());
        assertThat(changes.stream().map(change -> change.entry().text()).distinct())
                .containsExactlyInAnyOrderElementsOf(inForce ? List.of("rate=1") : List.of("", "rate=1"));
    }

    /** More than Redis has of the latest writes. */
    @Test
    void everyPageIsToldAndHasWhatItSays() {
        Set<SharedRecords.Key> told = ConcurrentHashMap.newKeySet();
        AtomicReference<Queue<SharedRecords.Change>> changes = new AtomicReference<>();
        changes.set(two.follow(() -> {
            Queue<SharedRecords.Change> all = changes.get();
            for (SharedRecords.Change next = all.poll(); next != null; next = all.poll()) {
                told.add(next.key());
            }
        }));
        List<SharedRecords.Key> keys = new ArrayList<>();
        for (int i = 0; i < 1_200; i++) {
            keys.add(new SharedRecords.Key("search", "caller " + i));
        }
        keys.parallelStream().forEach(key -> write(one, key, "rate=7/d", null));

        // Of a node that may be far behind.
        write(two, LIMIT, "rate=5/d", null);
        assertThat(two.find(LIMIT)).extracting(SharedRecords.Entry::text).isEqualTo("rate=5/d");

        until(() -> told.containsAll(keys), "all are told", PATIENCE);
        assertThat(keys)
                .allSatisfy(key -> assertThat(two.find(key))
                        .extracting(SharedRecords.Entry::text)
                        .isEqualTo("rate=7/d"));
    }
}
