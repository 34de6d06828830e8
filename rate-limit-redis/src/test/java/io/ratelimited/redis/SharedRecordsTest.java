package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.RedisBackendOptions.TimeSource;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Records that nodes share, on a server that loses a part of them. */
@Tag("once")
class SharedRecordsTest {

    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final SharedRecords.Key LIMIT = new SharedRecords.Key("search", null);
    private static final SharedRecords.Key ANN = new SharedRecords.Key("search", "ann");

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
        backends.push(RedisBackend.of(RedisServers.settings(server.port()), FarNode.PATIENT));
        return backends.getFirst().records();
    }

    /** On a busy machine a node may have missed a reply, and then asks nobody for a moment. */
    private static void write(SharedRecords records, SharedRecords.Key key, String text, @Nullable Duration lasting) {
        until(
                () -> {
                    SharedRecords.Entry known = records.find(key);
                    try {
                        return records.write(key, known == null ? 0 : known.version(), text, lasting, 10_000)
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
        SharedRecords.Outcome outcome = one.write(LIMIT, basedOn, "rate=6/d", null, 10_000);
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

        server.ask(commands -> commands.del(key("changes")));
        write(two, new SharedRecords.Key("search", "bob"), "rate=4/d", null);

        SharedRecords three = node();
        awaitText(three, ANN, "rate=3/d");
        awaitText(three, LIMIT, "rate=5/d");
    }

    @Test
    void aRecordThatWasRemovedLongAgoCanBeWrittenAgain() {
        ManualTicker ticker = RedisServers.ticker();
        backends.push(RedisBackend.of(
                RedisServers.settings(server.port()),
                FarNode.PATIENT.ticker(ticker).timeSource(TimeSource.NODE)));
        SharedRecords node = backends.getFirst().records();
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

    @Test
    void everyPageIsToldAndHasWhatItSays() {
        Set<SharedRecords.Key> told = ConcurrentHashMap.newKeySet();
        two.onChange(told::addAll);
        List<SharedRecords.Key> keys = new ArrayList<>();
        for (int i = 0; i < 1_200; i++) {
            keys.add(new SharedRecords.Key("search", "caller " + i));
        }
        keys.parallelStream().forEach(key -> write(one, key, "rate=7/d", null));

        until(() -> told.containsAll(keys), "all are told", PATIENCE);
        assertThat(keys)
                .allSatisfy(key -> assertThat(two.find(key))
                        .extracting(SharedRecords.Entry::text)
                        .isEqualTo("rate=7/d"));
    }
}
