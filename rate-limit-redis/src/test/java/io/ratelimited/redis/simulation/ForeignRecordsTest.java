package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.SharedRecords;
import io.ratelimited.redis.SharedRecords.Outcome;
import io.ratelimited.redis.SimulatedBackend;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.luaj.vm2.LuaString;

/** The record of changes, and the list of its latest writes, as anyone who can write to Redis may leave them. */
@Tag("once")
class ForeignRecordsTest {

    private static final SharedRecords.Key SEARCH = new SharedRecords.Key("search", null);
    private static final SharedRecords.Key ANN = new SharedRecords.Key("search", "ann");
    private static final Duration HEARTBEAT = Duration.ofSeconds(1);
    /** That of the second write here, and that of the first: microseconds since 1970. */
    private static final String LATEST = "1767225601000000 1767225600000000 ";

    private final DirectServer server = new DirectServer();
    private final RedisBackend one = server.node("one");
    private final RedisBackend two = server.node("two");

    /**
     * Two nodes share changes, of which one does not know the second yet. Then their keys are spoiled.
     *
     * @param record as {@link ForeignValues} says
     * @param latest the same for the list
     */
    void spoil(byte[] record, byte[] latest) {
        write(one, SEARCH, "a");
        server.ticker.advance(HEARTBEAT);
        write(one, ANN, "b");
        for (LuaString name : server.store().keys()) {
            String key = Lua.text(name);
            byte[] with = key.endsWith("~changes2") ? record : key.endsWith("~latest2") ? latest : new byte[0];
            Object value = ForeignValues.of(with, server.store().get(name));
            if (value != null) {
                server.store().put(name, value);
            }
        }
        server.ticker.advance(HEARTBEAT);
        write(one, SEARCH, "c");
        write(two, ANN, "d");
        server.ticker.advance(HEARTBEAT.multipliedBy(2));
        RedisBackend late = server.node("late");
        server.ticker.advance(HEARTBEAT);
        for (RedisBackend node : List.of(one, two, late)) {
            assertThat(text(node, SEARCH)).isEqualTo("c");
            assertThat(text(node, ANN)).isEqualTo("d");
            node.close();
        }
    }

    private void spoil(String record, String latest) {
        spoil(record.getBytes(StandardCharsets.ISO_8859_1), latest.getBytes(StandardCharsets.ISO_8859_1));
    }

    /** As the endpoint does: again when another has written meanwhile. */
    private static void write(RedisBackend node, SharedRecords.Key key, String text) {
        Outcome outcome = Outcome.OUTDATED;
        for (int attempt = 0; attempt < 3 && outcome == Outcome.OUTDATED; attempt++) {
            SharedRecords.Entry known = node.records().find(key);
            outcome = SimulatedBackend.write(node.records(), key, known == null ? 0 : known.version(), text, null)
                    .join();
        }
        assertThat(outcome).isEqualTo(Outcome.WRITTEN);
    }

    private static String text(RedisBackend node, SharedRecords.Key key) {
        SharedRecords.Entry found = node.records().find(key);
        return found == null ? "" : found.text();
    }

    @ParameterizedTest
    @ValueSource(strings = {" ", "?", "c", ":", "c:x", "x"})
    void aForgottenFieldThatNobodyCanHaveHidesNoOtherWrite(String field) {
        spoil("", "x" + LATEST + "\n" + field);
    }

    @ParameterizedTest
    @ValueSource(strings = {"l1767225601000000 0 x", "l", "lx", "sx", "hm\nx"})
    void aListThatNoNodeHasWrittenIsNotRead(String latest) {
        spoil("", latest);
    }

    @ParameterizedTest
    @ValueSource(strings = {"9007199254740991", "100000000000000000", "1e300", "inf", "nan", "-1", "1.5", "x"})
    void aVersionThatScriptsCannotCountUpIsNone(String version) {
        spoil("x" + version, "");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "99999999999999999999 0 1 x y",
                "9007199254740991 0 1 ann y",
                "0000000000453383746 0 1 ann y",
                "999999999999999999 0 1 ann y",
                "5 0",
                "5 0 1",
                "5 9999999999999999999 1 ann y",
                "5 0 9999999999999999999 ann y",
                "5 0 1 %zz y",
                "-1 0 1 ann y",
                "1767225600000001 0 1 a\u000bnn y"
            })
    void anEntryThatNoNodeHasWrittenIsReplacedByTheNextWriteOfItsKey(String entry) {
        spoil("x\n" + entry + "\n" + entry, "");
    }

    @Test
    void anEndTooFarAwayForTheClockHasNotPassed() {
        write(one, SEARCH, "a");
        spoilSearch("9 999999999999999999 1 ann b");
        RedisBackend late = server.node("late");
        server.ticker.advance(HEARTBEAT);
        SharedRecords.Entry found = late.records().find(SEARCH);
        assertThat(found).isNotNull();
        assertThat(found.endsAt() - server.ticker.nanos()).isPositive();
    }

    private void spoilSearch(String entry) {
        LuaString name = server.store().keys().stream()
                .filter(key -> Lua.text(key).endsWith("~changes2"))
                .findFirst()
                .orElseThrow();
        server.store().get(name, Store.Hash.class).put(LuaString.valueOf("lsearch"), LuaString.valueOf(entry));
    }
}
