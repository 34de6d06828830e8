package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.RedisBackendOptions.TimeSource;
import io.ratelimited.redis.internals.connection.KeyNames;
import io.ratelimited.redis.internals.connection.LettuceConnector;
import io.ratelimited.redis.internals.connection.RedisConnector;
import io.ratelimited.redis.internals.limiter.LimiterContext;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** A server for the tests of a class, empty before each; stops whatever a test has opened. */
public final class RedisServers implements BeforeAllCallback, AfterAllCallback, BeforeEachCallback, AfterEachCallback {

    /** Makes keys outlive the seconds that a test takes while its time stands still; see {@code time.lua}. */
    public static final String OUTLIVES = " 0 3600000";

    /** The same for the time of a node, which may be a second behind. */
    private static final String OUTLIVES_NODE = " 1000000 3600000";

    private final Supplier<String> binary;
    private final Deque<AutoCloseable> opened = new ArrayDeque<>();
    private RedisProcess server;

    private RedisServers(Supplier<String> binary) {
        this.binary = binary;
    }

    public static RedisServers standalone() {
        return new RedisServers(RedisProcess::binary);
    }

    /** On the server of the jar, which is another version than that on the path. */
    public static RedisServers embedded() {
        return new RedisServers(RedisProcess::embedded);
    }

    public RedisProcess server() {
        return server;
    }

    /** Closed after the test, last first. */
    public <T extends AutoCloseable> T closeLater(T resource) {
        opened.push(resource);
        return resource;
    }

    /** A client of the test's own. */
    public RedisClient client() {
        RedisClient client = RedisClient.create(RedisProcess.RESOURCES, RedisURI.create("127.0.0.1", server.port()));
        opened.push(() -> client.shutdown(Duration.ZERO, Duration.ofSeconds(1)));
        return client;
    }

    public RedisClientSettings settings() {
        return settings(server.port());
    }

    public static RedisClientSettings settings(int port) {
        return settings(ClientOptions.create(), RedisURI.create("127.0.0.1", port));
    }

    public static RedisClientSettings settings(ClientOptions options, RedisURI... uris) {
        return new RedisClientSettings(RedisProcess.RESOURCES, options, List.of(uris));
    }

    public LettuceConnector connector() {
        return connector(settings());
    }

    public static LettuceConnector connector(RedisClientSettings settings) {
        return LettuceConnector.of(settings.resources(), settings.options(), settings.uris());
    }

    public RedisBackend backend(RedisBackendOptions backendOptions) {
        return closeLater(RedisBackend.of(settings(), backendOptions));
    }

    /** A backend with connections of the test. */
    public RedisBackend backend(
            RedisConnector connector, RedisBackendOptions backendOptions, UnaryOperator<String> testTime) {
        return closeLater(RedisBackend.of(connector, backendOptions, testTime));
    }

    /** The only key that has a state of a caller's budget. */
    public String keyOf(String limit, String caller) {
        String name = new KeyNames("rl").ofLimit(limit, "").of(caller);
        List<String> keys = server.ask(commands -> commands.keys(name + "~*"));
        assertThat(keys).hasSize(1);
        return keys.get(0);
    }

    /** What the limiters of a backend have in common. */
    public static LimiterContext context(RedisBackend backend) {
        return backend.context();
    }

    /** A backend on a clock moved by hand, of which Redis has the same time. */
    public RedisBackend backend(ManualTicker ticker) {
        return closeLater(RedisBackend.of(
                connector(),
                RedisBackendOptions.DEFAULTS.ticker(ticker).timeout(Duration.ofSeconds(20)),
                time -> ticker.epochNanos() / 1000 + OUTLIVES));
    }

    /** The same, of a node that tells scripts the time. */
    public RedisBackend nodeTimeBackend(ManualTicker ticker) {
        return closeLater(RedisBackend.of(
                OtherTime.of(connector(), ticker),
                RedisBackendOptions.DEFAULTS
                        .ticker(ticker)
                        .timeSource(TimeSource.NODE)
                        .timeout(Duration.ofSeconds(20)),
                time -> time + OUTLIVES_NODE));
    }

    public static ManualTicker ticker() {
        return new ManualTicker(0, Instant.parse("2026-01-01T00:00:00Z"));
    }

    @Override
    public void beforeAll(ExtensionContext context) {
        server = RedisProcess.start(binary.get(), RedisProcess.freePort());
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        server.ask(commands -> commands.flushall());
    }

    @Override
    public void afterEach(ExtensionContext context) throws Exception {
        while (!opened.isEmpty()) {
            opened.pop().close();
        }
    }

    @Override
    public void afterAll(ExtensionContext context) {
        server.close();
    }
}
