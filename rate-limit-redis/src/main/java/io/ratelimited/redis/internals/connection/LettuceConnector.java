package io.ratelimited.redis.internals.connection;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.ClusterTopologyRefreshOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.SlotHash;
import io.lettuce.core.cluster.models.partitions.RedisClusterNode;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.Transports;
import io.netty.channel.EventLoopGroup;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Connects with clients of its own, made of addresses, options and resources. They do not reconnect, so that no command is
 * ever sent again, and every step has a short time. A client for one primary, which Sentinel names or not, and for a
 * cluster a second client that knows which primary has which slots.
 */
public final class LettuceConnector implements RedisConnector {

    /** The address where there is a single primary. */
    private static final String SINGLE = "";

    /** The longest time for a step of connecting, such as the first reply of a server. */
    private static final Duration STEP = Duration.ofSeconds(4);

    /** The same for servers that only name the primaries: others of them can be asked. */
    private static final Duration DISCOVERY = Duration.ofMillis(400);

    private static final Duration LONGEST_CLOSE = Duration.ofSeconds(1);

    private final RedisClient client;
    /** Those of the connections, which the client has from the same provider. */
    private final EventLoopGroup eventLoops;

    private final @Nullable RedisClusterClient cluster;
    /** Address of the primary or of the Sentinels; in a cluster the settings that all nodes share. */
    private final RedisURI uri;

    private final AtomicInteger attempts = new AtomicInteger();
    private final AtomicBoolean separatesSlots;
    /**
     * Whether a search has found the primaries. Until then, the client of a cluster blocks callers that ask it for an
     * address.
     */
    private volatile boolean discovered;

    private LettuceConnector(RedisClient client, @Nullable RedisClusterClient cluster, RedisURI uri) {
        this.client = client;
        this.eventLoops = client.getResources().eventLoopGroupProvider().allocate(Transports.eventLoopGroupClass());
        this.cluster = cluster;
        this.separatesSlots = new AtomicBoolean(cluster != null);
        this.uri = uri;
    }

    /**
     * Connects to a single server, to the primary that Sentinel names, or to the primaries of a cluster.
     *
     * @param resources are not shut down with this
     * @param options {@link ClusterClientOptions} for a cluster
     * @param uris the server or Sentinel, or nodes of the cluster
     */
    public static LettuceConnector of(ClientResources resources, ClientOptions options, List<RedisURI> uris) {
        RedisURI uri = uris.get(0);
        RedisClient client = client(resources, options, uri);
        return options instanceof ClusterClientOptions ofCluster
                ? new LettuceConnector(client, cluster(resources, ofCluster, uris), uri)
                : new LettuceConnector(client, null, uri);
    }

    private static RedisClusterClient cluster(
            ClientResources resources, ClusterClientOptions options, List<RedisURI> seeds) {
        RedisClusterClient cluster = RedisClusterClient.create(
                resources, seeds.stream().map(seed -> timed(seed, DISCOVERY)).toList());
        cluster.setOptions(options.mutate()
                .autoReconnect(false)
                .requestQueueSize(ClientOptions.DEFAULT_REQUEST_QUEUE_SIZE)
                .topologyRefreshOptions(new NoRefresh())
                .socketOptions(options.getSocketOptions()
                        .mutate()
                        .connectTimeout(DISCOVERY)
                        .build())
                .build());
        return cluster;
    }

    /**
     * Primaries are looked for here. A search of the client's own could hide one meanwhile. Adaptive refresh is on by
     * default from Lettuce 7 on, and only there the builder can turn it off.
     */
    private static final class NoRefresh extends ClusterTopologyRefreshOptions {

        private NoRefresh() {
            super(ClusterTopologyRefreshOptions.create());
        }

        @Override
        public Set<RefreshTrigger> getAdaptiveRefreshTriggers() {
            return Set.of();
        }
    }

    /** For tests. */
    ClusterTopologyRefreshOptions refreshOptions() {
        ClusterClientOptions options =
                (ClusterClientOptions) Objects.requireNonNull(cluster).getOptions();
        return options.getTopologyRefreshOptions();
    }

    private static RedisClient client(ClientResources resources, ClientOptions options, RedisURI uri) {
        RedisClient client = RedisClient.create(resources, uri);
        client.setOptions(options.mutate()
                .autoReconnect(false)
                .disconnectedBehavior(ClientOptions.DisconnectedBehavior.REJECT_COMMANDS)
                .timeoutOptions(TimeoutOptions.create())
                // A link bounds the pending commands, and reports those that it has not sent.
                .requestQueueSize(ClientOptions.DEFAULT_REQUEST_QUEUE_SIZE)
                .socketOptions(
                        options.getSocketOptions().mutate().connectTimeout(STEP).build())
                .build());
        return client;
    }

    private static RedisURI timed(RedisURI given, Duration timeout) {
        return RedisURI.builder(given).withTimeout(timeout).build();
    }

    @Override
    public CompletionStage<Set<String>> discover() {
        if (cluster == null) {
            return CompletableFuture.completedFuture(Set.of(SINGLE));
        }
        return cluster.refreshPartitionsAsync().thenApply(refreshed -> {
            discovered = true;
            Set<String> primaries = new LinkedHashSet<>();
            for (RedisClusterNode node : cluster.getPartitions()) {
                if (node.is(RedisClusterNode.NodeFlag.UPSTREAM) && !node.hasNoSlots()) {
                    primaries.add(address(node));
                }
            }
            return primaries;
        });
    }

    @Override
    public @Nullable String address(String key) {
        if (cluster == null) {
            return SINGLE;
        }
        if (!discovered) {
            return null;
        }
        RedisClusterNode primary = cluster.getPartitions().getMasterBySlot(SlotHash.getSlot(key));
        return primary == null ? null : address(primary);
    }

    private static String address(RedisClusterNode node) {
        return node.getUri().getHost() + ':' + node.getUri().getPort();
    }

    @Override
    public CompletionStage<RedisLink> connect(String address) {
        Executor sender = client.getResources().eventExecutorGroup().next();
        return client.connectAsync(StringCodec.UTF8, uri(address))
                .thenApply(connection -> (RedisLink) new LettuceLink(connection, separatesSlots, sender, eventLoops));
    }

    private RedisURI uri(String address) {
        RedisURI.Builder target = RedisURI.builder(uri).withTimeout(STEP);
        if (cluster != null) {
            int colon = address.lastIndexOf(':');
            return target.withHost(address.substring(0, colon))
                    .withPort(Integer.parseInt(address.substring(colon + 1)))
                    .build();
        }
        List<RedisURI> sentinels = new ArrayList<>(uri.getSentinels());
        if (!sentinels.isEmpty()) {
            // Each attempt begins with another Sentinel, so that a frozen one does not hold up all of them.
            Collections.rotate(sentinels, attempts.getAndIncrement());
            target.withSentinelMasterId(uri.getSentinelMasterId());
            sentinels.forEach(sentinel -> target.withSentinel(timed(sentinel, DISCOVERY)));
        }
        RedisURI built = target.build();
        built.getSentinels().forEach(sentinel -> sentinel.setTimeout(DISCOVERY));
        return built;
    }

    @Override
    public boolean isCluster() {
        return cluster != null;
    }

    @Override
    public boolean separatesSlots() {
        return separatesSlots.get();
    }

    /** Waits for the connections: the application may end the threads that close them next. */
    @Override
    public void close() {
        CompletableFuture<Void> closed = client.shutdownAsync();
        if (cluster != null) {
            closed = CompletableFuture.allOf(closed, cluster.shutdownAsync());
        }
        try {
            closed.get(LONGEST_CLOSE.toNanos(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
        } catch (ExecutionException | TimeoutException ex) {
            // They end with their threads.
        }
        client.getResources()
                .eventLoopGroupProvider()
                .release(eventLoops, 0, LONGEST_CLOSE.toNanos(), TimeUnit.NANOSECONDS);
    }
}
