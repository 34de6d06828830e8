package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.AclSetuserArgs;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisURI;
import io.lettuce.core.protocol.CommandType;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A server that removes keys of limits says so in the log and in the health. */
@Tag("once")
class EvictionsTest {

    private static final Duration PATIENCE = Duration.ofSeconds(20);
    private static final RedisBackendOptions PATIENT = RedisBackendOptions.DEFAULTS.timeout(PATIENCE);

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    @RegisterExtension
    final LogLines log = new LogLines();

    private static void set(String parameter, String value) {
        REDIS.server().ask(commands -> commands.configSet(parameter, value));
    }

    @AfterEach
    void keepsKeys() {
        set("maxmemory", "0");
        set("maxmemory-policy", "noeviction");
    }

    private List<String> warnings(String code) {
        return log.all().stream().filter(line -> line.contains(code)).toList();
    }

    private static void look(RedisBackend backend) {
        RedisServers.context(backend)
                .connection()
                .lookForEvictions()
                .orTimeout(20, TimeUnit.SECONDS)
                .join();
    }

    @Test
    void aServerThatMayRemoveKeysIsWarnedOfOnce() {
        set("maxmemory-policy", "volatile-ttl");
        RedisBackend backend = REDIS.backend(PATIENT);
        look(backend);
        RedisProcess.until(() -> !warnings("RL-310").isEmpty(), "the warning", PATIENCE);
        assertThat(warnings("RL-310")).hasSize(1);
        assertThat(warnings("RL-310").get(0)).contains("volatile-ttl").contains("noeviction");
        assertThat(backend.health().problems()).isEmpty();
    }

    @Test
    void aServerThatRemovesNoKeysIsNotWarnedOf() {
        RedisBackend backend = REDIS.backend(PATIENT);
        look(backend);
        backend.close();
        assertThat(log.all()).noneMatch(line -> line.contains("RL-31"));
    }

    @Test
    void keysThatTheServerHasRemovedAreInTheHealth() {
        RedisBackend backend = REDIS.backend(PATIENT);
        set("maxmemory-policy", "volatile-ttl");
        set("maxmemory", "4mb");
        for (int i = 0; i < 200; i++) {
            String key = "filler" + i;
            REDIS.server().ask(commands -> commands.setex(key, 60, "x".repeat(50_000)));
        }
        look(backend);
        assertThat(backend.health().problems()).hasSize(1);
        assertThat(backend.health().problems().get(0)).contains("RL-311").contains("evicted");
        assertThat(backend.health().state()).isEqualTo(RedisHealth.State.UP);
    }

    @Test
    void aServerThatRefusesToTellIsNoFailure() {
        set("maxmemory-policy", "volatile-ttl");
        REDIS.server()
                .ask(commands -> commands.aclSetuser(
                        "limits",
                        AclSetuserArgs.Builder.on()
                                .addPassword("secret")
                                .keyPattern("rl:*")
                                .allCommands()
                                .removeCommand(CommandType.INFO)));
        RedisURI uri = RedisURI.builder(
                        RedisURI.create("127.0.0.1", REDIS.server().port()))
                .withAuthentication("limits", "secret")
                .build();
        RedisBackend backend =
                REDIS.closeLater(RedisBackend.of(RedisServers.settings(ClientOptions.create(), uri), PATIENT));
        look(backend);
        assertThat(backend.health().state()).isEqualTo(RedisHealth.State.UP);
        assertThat(backend.health().errors()).isZero();
        assertThat(warnings("RL-310")).isEmpty();
        long refusals = refusals();
        assertThat(refusals).isPositive();
        look(backend);
        assertThat(refusals()).as("it is asked once").isEqualTo(refusals);
    }

    /** What the server has noted of commands that a user may not run. */
    private static long refusals() {
        return REDIS.server().ask(commands -> commands.aclLog()).stream()
                .mapToLong(entry -> (Long) entry.get("count"))
                .sum();
    }
}
