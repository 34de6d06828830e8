package io.ratelimited.redis.internals.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.internals.connection.GuardedConnection.DeliveryKind;
import io.ratelimited.redis.internals.connection.ScriptedServers.Link;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Logger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Many commands at once that nobody waits for. One thread, on a time that the test moves. */
class DeliveriesTest {

    private static final int MANY = 1_000;
    /** Until what is kept has been looked at. */
    private static final Duration LOOK = Duration.ofMillis(200);

    private final ManualTicker clock = new ManualTicker();
    private final ScriptedServers servers = new ScriptedServers("one:1");
    private final GuardedConnection connection = servers.connect(clock);
    private final Link one = servers.link(0);

    @AfterEach
    void close() {
        connection.close();
    }

    private void deliverMany() {
        for (int i = 0; i < MANY; i++) {
            connection.deliver(DeliveryKind.END, List.of("one:1/" + i), ScriptArguments::new, reply -> {});
        }
    }

    /** Answers whatever is asked, and returns the most that were under way at the same time. */
    private int answerAll() {
        int most = 0;
        while (!one.asked.isEmpty()) {
            most = Math.max(most, one.asked.size());
            one.answer();
        }
        return most;
    }

    private static List<String> all() {
        return IntStream.range(0, MANY).mapToObj(i -> "one:1/" + i).toList();
    }

    @Test
    void areUnderWayInABoundedNumberAndInTheirOrder() {
        deliverMany();
        assertThat(answerAll()).isEqualTo(Deliveries.MAX_PENDING);
        assertThat(one.keys).isEqualTo(all());
    }

    @Test
    void areUnderWayInABoundedNumberAfterAnOutage() {
        outage();
        deliverMany();
        assertThat(one.keys).isEmpty();
        recovery();
        assertThat(answerAll()).isEqualTo(Deliveries.MAX_PENDING);
        assertThat(one.keys).isEqualTo(all());
    }

    /** A charge that was taken back unsent would be lost: that it is late does not say that it has not run. */
    @Test
    void areSentEvenIfTheyAreLate() {
        connection.deliver(DeliveryKind.CHARGE, List.of("one:1/a"), ScriptArguments::new, reply -> {});
        clock.advance(ScriptedServers.TIMEOUT);
        assertThat(one.takenBack).hasSize(1).doesNotContain(one.asked.element());
    }

    @Test
    void aCommandWhoseArgumentsCannotBeMadeHoldsUpNoOther() {
        outage();
        for (int i = 0; i < MANY; i++) {
            connection.deliver(DeliveryKind.CHARGE, List.of("one:1/broken"), DeliveriesTest::broken, reply -> {});
        }
        deliverMany();
        recovery();
        assertThat(answerAll()).isEqualTo(Deliveries.MAX_PENDING);
        connection.deliver(DeliveryKind.CHARGE, List.of("one:1/broken"), DeliveriesTest::broken, reply -> {});
        assertThat(one.keys).isEqualTo(all());
    }

    @Test
    void whatNeedNotBeSentAnyMoreHoldsUpNoOther() {
        outage();
        for (int i = 0; i < MANY; i++) {
            connection.deliver(DeliveryKind.END, List.of("one:1/ended"), () -> null, reply -> {});
        }
        deliverMany();
        recovery();
        answerAll();
        assertThat(one.keys).isEqualTo(all());
    }

    /** What it says is certain: a charge is neither lost nor charged twice. */
    @ParameterizedTest
    @EnumSource
    void whatAServerHasRefusedUnwrittenIsSentAgain(DeliveryKind kind) {
        connection.deliver(kind, List.of("one:1/a"), ScriptArguments::new, reply -> {});
        one.fail("OOM command not allowed when used memory > 'maxmemory'. script: b2ca, on @user_script:1.");
        recovery();
        assertThat(one.keys).containsExactly("one:1/a", "one:1/a");
        one.answer();
        clock.advance(LOOK);
        assertThat(one.asked).isEmpty();
    }

    @ParameterizedTest
    @EnumSource(names = {"GIVE_BACK", "CHARGE", "OFFENCE"})
    void whatMayHaveRunIsNotSentAgain(DeliveryKind kind) {
        connection.deliver(kind, List.of("one:1/a"), ScriptArguments::new, reply -> {});
        one.fail("NOPERM User limits has no permissions to run the 'set' command script: b2ca, on @user_script:1.");
        connection.deliver(kind, List.of("one:1/b"), ScriptArguments::new, reply -> {});
        clock.advance(ScriptedServers.TIMEOUT);
        recovery();
        clock.advance(LOOK);
        assertThat(one.keys).containsExactly("one:1/a", "one:1/b");
    }

    @Test
    void whatIsRefusedForHalfAMinuteIsDropped() {
        connection.deliver(DeliveryKind.CHARGE, List.of("one:1/a"), ScriptArguments::new, reply -> {});
        for (int i = 0; i < 200; i++) {
            one.asked.forEach(
                    asked -> asked.completeExceptionally(new IllegalStateException("TRYAGAIN Multiple keys")));
            one.asked.clear();
            clock.advance(LOOK);
        }
        assertThat(one.keys).hasSize(1 + 150);
    }

    private static ScriptArguments broken() {
        throw new IllegalStateException("no arguments");
    }

    private void outage() {
        connection.eval(Script.DECIDE, new String[] {"one:1/a"}, new ScriptArguments());
        clock.advance(Duration.ofMillis(50));
        assertThat(connection.isDown("one:1/a")).isTrue();
        one.asked.clear();
        one.keys.clear();
        one.scripts.clear();
    }

    private void recovery() {
        while (one.probes.isEmpty()) {
            clock.advance(Duration.ofMillis(10));
        }
        one.probes.remove().complete(List.of());
        assertThat(connection.isDown("one:1/a")).isFalse();
    }

    @Test
    void whatCostsMostIsDroppedLast() {
        List<String> warnings = new CopyOnWriteArrayList<>();
        Logger logger = Logger.getLogger("io.ratelimited.redis.RedisBackend");
        logger.setFilter(line -> !warnings.add(line.getMessage()));
        try {
            outage();
            connection.deliver(DeliveryKind.END, List.of("one:1/end"), ScriptArguments::new, reply -> {});
            connection.deliver(DeliveryKind.GIVE_BACK, List.of("one:1/back"), ScriptArguments::new, reply -> {});
            connection.deliver(DeliveryKind.CHARGE, List.of("one:1/charge"), ScriptArguments::new, reply -> {});
            for (int i = 0; i < Deliveries.MAX_KEPT; i++) {
                connection.deliver(DeliveryKind.REGISTRATION, List.of("one:1/" + i), ScriptArguments::new, reply -> {});
            }
            recovery();
            answerAll();
        } finally {
            logger.setFilter(null);
        }
        assertThat(one.keys)
                .hasSize(Deliveries.MAX_KEPT)
                .startsWith("one:1/end", "one:1/back", "one:1/charge", "one:1/3")
                .endsWith("one:1/" + (Deliveries.MAX_KEPT - 1));
        assertThat(warnings).filteredOn(line -> line.contains("20000")).hasSize(1);
    }

    /** As while many others are pending: a thread that tries again at once holds up the probe and every timeout. */
    @Test
    void whatAConnectionRefusesAtOnceIsTriedOnceAndAgainLater() {
        outage();
        deliverMany();
        refuseAtOnce(5 * MANY);
        recovery();
        assertThat(one.keys).hasSizeLessThanOrEqualTo(2 * MANY);
        int tried = one.keys.size();
        clock.advance(Duration.ofMillis(200));
        assertThat(one.keys).hasSizeBetween(tried + 1, tried + MANY);
        one.whileSending = () -> {};
        one.keys.clear();
        while (one.asked.isEmpty()) {
            clock.advance(Duration.ofMillis(10));
        }
        assertThat(answerAll()).isEqualTo(Deliveries.MAX_PENDING);
        assertThat(one.keys).containsExactlyInAnyOrderElementsOf(all());
    }

    private void refuseAtOnce(int times) {
        AtomicInteger left = new AtomicInteger(times);
        one.whileSending = () -> {
            if (left.getAndDecrement() > 0) {
                one.asked.removeLast().completeExceptionally(Replies.notSent("too many are pending"));
            }
        };
    }

    /** Else each reply would go through all of them on the thread that reads the replies. */
    @Test
    void whatIsKeptForAnotherServerIsNotLookedAtWithEachReply() {
        servers.primaries.add("two:2");
        connection.eval(Script.DECIDE, new String[] {"one:1/a"}, new ScriptArguments());
        clock.advance(Duration.ofMillis(250));
        assertThat(connection.isDown("one:1/a")).isTrue();
        Link two = servers.links.stream()
                .filter(link -> link.address.equals("two:2"))
                .findFirst()
                .orElseThrow();
        two.probes.forEach(probe -> probe.complete(List.of(1L)));
        deliverMany();
        int before = servers.lookUps;
        for (int i = 0; i < 10; i++) {
            connection.deliver(DeliveryKind.END, List.of("two:2/" + i), ScriptArguments::new, reply -> {});
            two.answer();
        }
        assertThat(servers.lookUps - before).isLessThan(MANY);
    }
}
