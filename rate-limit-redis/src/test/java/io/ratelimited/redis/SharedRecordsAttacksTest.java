package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisCredentials;
import io.lettuce.core.RedisCredentialsProvider;
import io.lettuce.core.RedisURI;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.ratelimited.redis.SharedRecords.Outcome;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Records among which somebody has written what no node writes, and nodes that may not do everything. */
@Tag("slow")
class SharedRecordsAttacksTest {

    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final SharedRecords.Key SEARCH = new SharedRecords.Key("search", null);
    private static final SharedRecords.Key LOGIN = new SharedRecords.Key("login", null);
    private static final SharedRecords.Key ANN = new SharedRecords.Key("search", "ann");

    @RegisterExtension
    final LogLines log = new LogLines();

    private final RedisProcess server = RedisProcess.start();
    private final Deque<RedisBackend> backends = new ArrayDeque<>();

    @AfterEach
    void close() {
        backends.forEach(RedisBackend::close);
        server.close();
    }

    private RedisBackend node() {
        return node("");
    }

    private RedisBackend node(String user) {
        RedisURI address = RedisURI.create("127.0.0.1", server.port());
        if (!user.isEmpty()) {
            address.setCredentialsProvider(RedisCredentialsProvider.from(() -> RedisCredentials.just(user, "secret")));
        }
        backends.push(RedisBackend.of(
                RedisServers.settings(ClientOptions.create(), address),
                RedisBackendOptions.DEFAULTS.timeout(Duration.ofMillis(500))));
        return backends.getFirst();
    }

    private static Outcome write(SharedRecords records, SharedRecords.Key key, String text) {
        SharedRecords.Entry known = records.find(key);
        return records.write(key, known == null ? 0 : known.version(), text, null, null, 10);
    }

    private static String text(RedisBackend node, SharedRecords.Key key) {
        SharedRecords.Entry found = node.records().find(key);
        return found == null ? "" : found.text();
    }

    private void spoil(String field, String value) {
        server.ask(redis -> redis.hset(key("changes2"), field, value));
    }

    private String key(String part) {
        return server.ask(redis -> redis.keys("*~" + part)).get(0);
    }

    @Test
    void aFieldThatCannotBeReadIsReportedAndEveryOtherChangeIsKnown() {
        RedisBackend one = node();
        write(one.records(), SEARCH, "rate=5%2Fd");
        write(one.records(), ANN, "rate=6%2Fd");
        for (String field : List.of("lsearch", "cbob:search", "\nforged", "c", "")) {
            spoil(field, "rubbish");
        }
        spoil("lorders", "99999999999999999999 0 rate=1");

        RedisBackend late = node();
        until(() -> text(late, ANN).equals("rate=6%2Fd"), "the other record is known", PATIENCE);
        write(one.records(), LOGIN, "rate=7%2Fd");
        until(() -> text(late, LOGIN).equals("rate=7%2Fd"), "later records are known", PATIENCE);
        assertThat(late.records().find(SEARCH)).isNull();
        assertThat(late.records().callers("search")).containsExactly("ann");
        until(() -> !late.health().problems().isEmpty(), "reported", PATIENCE);
        assertThat(late.health().problems())
                .singleElement()
                .asString()
                .contains("Ignored 6 unreadable records", key("changes2"));
        untilLogged("Ignored 6 unreadable records of changes", 1);
        assertThat(logged("Ignored 6 unreadable records of changes")).hasSizeBetween(1, backends.size());

        assertThat(log.all()).noneMatch(line -> line.contains("\n"));

        // A node that has compared everything does not read all of it again and again.
        long position = number("version");
        until(() -> late.records().catchUp(position).isDone(), "nothing is missing", PATIENCE);
    }

    private long number(String field) {
        return Long.parseLong(server.ask(redis -> redis.hget(key("changes2"), field)));
    }

    @Test
    void aRecordInPlaceOfAFieldThatCannotBeReadIsWrittenByEveryNode() {
        RedisBackend one = node();
        write(one.records(), SEARCH, "rate=5%2Fd");
        server.ask(redis -> redis.hset(key("changes2"), "lsearch", "rubbish"));
        RedisBackend late = node();
        until(() -> !late.health().problems().isEmpty(), "reported", PATIENCE);

        assertThat(write(late.records(), SEARCH, "rate=8%2Fd")).isEqualTo(Outcome.WRITTEN);
        assertThat(late.health().problems()).isEmpty();
        until(() -> text(one, SEARCH).equals("rate=8%2Fd"), "the other node follows", PATIENCE);
    }

    @Test
    void aNodeThatKnowsTheRecordWritesItBackWhenItIsChanged() {
        RedisBackend one = node();
        write(one.records(), SEARCH, "rate=5%2Fd");
        server.ask(redis -> redis.hset(key("changes2"), "lsearch", "rubbish"));

        Outcome first = write(one.records(), SEARCH, "rate=9%2Fd");
        assertThat(first == Outcome.WRITTEN ? first : write(one.records(), SEARCH, "rate=9%2Fd"))
                .isEqualTo(Outcome.WRITTEN);
        assertThat(text(node(), SEARCH)).isEqualTo("rate=9%2Fd");
    }

    /** Nobody else is told of a change that is answered as not made. */
    @Test
    void aWriteThatFailsForWantOfARightIsNotInForceAtTheNextStart() {
        RedisBackend one = node();
        write(one.records(), SEARCH, "rate=5%2Fd");
        long version = Objects.requireNonNull(one.records().find(SEARCH)).version();
        for (String right : List.of("lpush", "ltrim", "hset")) {
            allow("-" + right);
            RedisBackend restricted = node("app");
            assertThatThrownBy(() -> restricted.records().write(SEARCH, version, "rate=0%2Fd", null, null, 10))
                    .isInstanceOf(RedisUnavailableException.class)
                    .hasMessageContaining("may not be changed");
            RedisBackend late = node();
            until(() -> text(late, SEARCH).equals("rate=5%2Fd"), "without " + right, PATIENCE);
        }
    }

    /** Decisions need neither. */
    @Test
    void aNodeThatMayNotReadWhatIsSharedSaysSo() {
        node();
        for (String right : List.of("hget", "lrange")) {
            allow("-" + right);
            RedisBackend restricted = node("app");
            write(backends.getLast().records(), SEARCH, "rate=" + right);
            until(() -> !restricted.health().problems().isEmpty(), "reported without " + right, PATIENCE);
            assertThat(restricted.health().state()).isEqualTo(RedisHealth.State.UP);
            assertThat(restricted.health().nodes()).isPositive();
            assertThat(restricted.health().problems())
                    .singleElement()
                    .asString()
                    .contains("rejects access to shared records", "Give the Redis user permission");
            allow("+" + right);
            until(() -> restricted.health().problems().isEmpty(), "over", PATIENCE);
        }
        // The first of them says so again if it hears of the second right being gone before that is back.
        untilLogged("rejects access to shared records", 2);
        assertThat(logged("rejects access to shared records")).hasSizeBetween(2, 3);
    }

    /** Lines are written by a thread that nobody waits for. */
    private void untilLogged(String text, int lines) {
        until(() -> logged(text).size() >= lines, "logged: " + text, PATIENCE);
    }

    private List<String> logged(String text) {
        return log.all().stream().filter(line -> line.contains(text)).toList();
    }

    private void allow(String right) {
        server.ask(redis -> redis.dispatch(
                CommandType.ACL,
                new StatusOutput<>(StringCodec.UTF8),
                new CommandArgs<>(StringCodec.UTF8)
                        .add("SETUSER")
                        .add("app")
                        .add("on")
                        .add(">secret")
                        .add("~*")
                        .add("&*")
                        .add("+@all")
                        .add(right)));
    }
}
