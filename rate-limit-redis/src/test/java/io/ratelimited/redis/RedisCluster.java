package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;

import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.SlotHash;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/** Primaries with a replica each. */
final class RedisCluster implements AutoCloseable {

    private static final Duration PATIENCE = Duration.ofMinutes(1);

    private final int primaries;
    private final List<RedisProcess> nodes = new ArrayList<>();

    private RedisCluster(int primaries, Duration nodeTimeout) {
        this.primaries = primaries;
        for (int i = 0; i < 2 * primaries; i++) {
            nodes.add(RedisProcess.start(
                    "--cluster-enabled", "yes", "--cluster-node-timeout", Long.toString(nodeTimeout.toMillis())));
        }
    }

    /** @param nodeTimeout after which a node that is silent has failed */
    static RedisCluster start(Duration nodeTimeout) {
        return start(3, nodeTimeout);
    }

    static RedisCluster start(int primaries, Duration nodeTimeout) {
        RedisCluster cluster = new RedisCluster(primaries, nodeTimeout);
        cluster.form();
        return cluster;
    }

    private void form() {
        int perNode = SlotHash.SLOT_COUNT / primaries + 1;
        for (int i = 0; i < primaries; i++) {
            int from = i * perNode;
            int[] slots = IntStream.range(from, Math.min(SlotHash.SLOT_COUNT, from + perNode))
                    .toArray();
            nodes.get(i).ask(commands -> commands.clusterAddSlots(slots));
        }
        RedisProcess first = nodes.get(0);
        for (RedisProcess node : nodes.subList(1, nodes.size())) {
            node.ask(commands -> commands.clusterMeet("127.0.0.1", first.port()));
        }
        until(
                () -> nodes.stream()
                        .allMatch(node -> node.ask(commands -> commands.clusterNodes())
                                        .lines()
                                        .count()
                                == nodes.size()),
                "the nodes know each other",
                PATIENCE);
        for (int i = 0; i < primaries; i++) {
            String primary = nodes.get(i).ask(commands -> commands.clusterMyId());
            nodes.get(i + primaries).ask(commands -> commands.clusterReplicate(primary));
        }
        until(
                () -> nodes.stream()
                                .allMatch(node -> node.ask(commands -> commands.clusterInfo())
                                        .contains("cluster_state:ok"))
                        && nodes.subList(0, primaries).stream()
                                .allMatch(node -> node.ask(commands -> commands.info("replication"))
                                        .contains("state=online")),
                "the cluster is up",
                PATIENCE);
    }

    RedisProcess primary(int index) {
        return nodes.get(index);
    }

    RedisProcess replicaOf(int index) {
        return nodes.get(index + primaries);
    }

    RedisClientSettings settings() {
        return RedisServers.settings(
                ClusterClientOptions.create(),
                nodes.stream()
                        .limit(2)
                        .map(node -> RedisURI.create("127.0.0.1", node.port()))
                        .toArray(RedisURI[]::new));
    }

    void flush() {
        nodes.subList(0, primaries).forEach(node -> node.ask(commands -> commands.flushall()));
    }

    @Override
    public void close() {
        nodes.forEach(RedisProcess::close);
    }
}
