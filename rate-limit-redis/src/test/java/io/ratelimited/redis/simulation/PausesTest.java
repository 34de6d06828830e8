package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.redis.OnFailure;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Pauses that nodes share, in virtual time, on a network whose messages take up to ten milliseconds. */
@Tag("once")
@Tag("slow")
class PausesTest {

    private static final long SECOND = 1_000_000_000;
    private static final int NODES = 4;
    private static final Limit LIMIT =
            Limit.of("any", Algorithm.TOKEN_BUCKET).rate("1/s").build();

    /** When a node was told of a pause, how long it still lasted, and when the pause began. */
    private record Told(int node, long at, Duration left, long began) {}

    private static List<Told> pauseAt(long begin, long seed) {
        World world = new World();
        Servers servers = new Servers(
                world, 1, () -> new Server(Lua.shared(), () -> Simulation.BEGIN_MICROS + world.now() / 1_000));
        Plan plan = new Plan(seed, NODES, 1, LIMIT, LIMIT, OnFailure.LOCAL, 0, 0, 10_000_000, 0, List.of());
        List<Told> told = new ArrayList<>();
        List<Node> nodes = new ArrayList<>();
        for (int i = 0; i < NODES; i++) {
            int number = i;
            Node node = new Node(world, servers, plan, number);
            nodes.add(node);
            // Nodes do not begin at the same time, and so do not read at the same time.
            world.at(
                    node,
                    number * SECOND / 7,
                    () -> node.backend()
                            .pauses()
                            .follow((name, left) -> told.add(new Told(number, world.now(), left, begin))));
        }
        Node first = nodes.get(0);
        world.at(first, begin, () -> first.backend().pauses().publish("a", Duration.ofSeconds(10)));
        world.runUntil(begin + 9 * SECOND);
        assertThat(world.failures()).isEmpty();
        return told;
    }

    @Test
    void everyNodeKnowsAPauseWithinASecond() {
        SplittableRandom random = new SplittableRandom(16);
        for (int seed = 0; seed < 100; seed++) {
            List<Told> told = pauseAt(2 * SECOND + random.nextLong(SECOND), seed);
            assertThat(told).extracting(Told::node).containsExactlyInAnyOrder(0, 1, 2, 3);
            assertThat(told).allSatisfy(each -> {
                assertThat(each.at - each.began).isLessThanOrEqualTo(SECOND);
                // It ends for all at once, but for the time of the reply.
                long end = each.at + each.left.toNanos();
                assertThat(end - each.began - 10 * SECOND).isBetween(0L, TimeUnit.MILLISECONDS.toNanos(22));
            });
        }
    }
}
