package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** How many permits outages of a real server give away: the rows of "The cost of an outage" in {@code docs/engineering/cluster.md}. */
@Tag("proof")
class OutageBudgetTest {

    private static final int NODES = 4;

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    /** Takes whatever there is for a key, until a decision of the source is a refusal. */
    private static long takeAll(RateLimiter limiter, Source source) {
        long taken = 0;
        while (true) {
            Reservation reservation = limiter.reserve("k", 1, 0);
            if (!reservation.isRefused()) {
                taken++;
            } else if (reservation.decision().source() == source) {
                return taken;
            }
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "FIXED_WINDOW", "SLIDING_LOG"})
    void eightOutagesTogetherAddOneBurstAtMost(Algorithm algorithm) {
        int outages = 8;
        int burst = 200;
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        RateLimiter limiter =
                far.limiter(Limit.of("log", algorithm).rate(burst + "/3650d").build());
        far.awaitRedis();
        long admitted = takeAll(limiter, Source.REDIS);
        for (int outage = 0; outage < outages; outage++) {
            far.cut();
            admitted += takeAll(limiter, Source.FALLBACK);
            far.heal();
        }
        admitted += limiter.reserve("k", 1, 0).isRefused() ? 0 : 1;
        System.out.printf("MINTED %s of %d: %d in %d outages%n", algorithm, burst, admitted, outages);
        assertThat(admitted).isBetween((long) burst, 2L * burst);
    }

    /** A bucket that is full again in less time than each outage takes. */
    @Test
    void eightOutagesOfABucketThatRefillsGiveOneBurstMoreAtMost() throws Exception {
        int outages = 8;
        int rate = 200;
        int burst = 140;
        FarNode far = FarNode.of(REDIS, RedisBackendOptions.DEFAULTS.expectedNodes(1));
        RateLimiter limiter = far.limiter(Limit.of("bucket", Algorithm.TOKEN_BUCKET)
                .rate(rate + "/s")
                .burst(burst)
                .build());
        far.awaitRedis();
        long begin = System.nanoTime();
        Load load = new Load(limiter, 2, caller -> "k");
        try {
            for (int outage = 0; outage < outages; outage++) {
                far.cut();
                Thread.sleep(700);
                far.heal();
                Thread.sleep(100);
            }
        } finally {
            load.close();
        }
        long admitted = load.admitted();
        double seconds = (System.nanoTime() - begin) / 1e9;
        double bursts = (admitted - rate * seconds) / burst;
        System.out.printf("MINTED bucket: %.1f bursts above the rate in %d outages%n", bursts, outages);
        assertThat(bursts).isLessThanOrEqualTo(2);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 3})
    void anOutageOfSomeOfFourNodesGivesTheirShareMore(int cut) throws Exception {
        List<FarNode> nodes = nodes();
        Limit limit = Limit.of("quarter", Algorithm.TOKEN_BUCKET)
                .rate("400/s")
                .burst(40)
                .build();
        List<Load> loads = new ArrayList<>();
        for (FarNode node : nodes.subList(0, cut)) {
            node.cut();
        }
        long begin = System.nanoTime();
        long admitted = 0;
        try {
            for (FarNode node : nodes) {
                loads.add(new Load(node.limiter(limit), 2, caller -> "k"));
            }
            Thread.sleep(3000);
        } finally {
            loads.forEach(Load::close);
        }
        double seconds = (System.nanoTime() - begin) / 1e9;
        for (Load load : loads) {
            admitted += load.admitted();
        }
        double limitOf = 40 + 400 * seconds;
        System.out.printf("CUT OFF %d of %d: %.2f of the limit%n", cut, NODES, admitted / limitOf);
        assertThat(admitted / limitOf).isLessThanOrEqualTo(1 + (double) cut / NODES);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 3})
    void callsInFlightOfNodesThatAreCutOffAreTheirShareMoreAtMost(int cut) {
        List<FarNode> nodes = nodes();
        Limit limit = Limit.of("places", Algorithm.CONCURRENCY).maxConcurrent(8).build();
        List<RateLimiter> limiters =
                nodes.stream().map(node -> node.limiter(limit)).toList();
        int running = 0;
        for (int i = 0; i < 2 * NODES; i++) {
            running += limiters.get(i % NODES).reserve("k", 1, 0).isRefused() ? 0 : 1;
        }
        assertThat(running).isEqualTo(8);
        for (FarNode node : nodes.subList(0, cut)) {
            node.cut();
        }
        for (int i = 0; i < 4 * NODES; i++) {
            running += limiters.get(i % NODES).reserve("k", 1, 0).isRefused() ? 0 : 1;
        }
        System.out.printf("CUT OFF %d of %d: %d of 8 places in use%n", cut, NODES, running);
        assertThat(running).isLessThanOrEqualTo(8 + 2 * cut);
    }

    private static List<FarNode> nodes() {
        List<FarNode> nodes = new ArrayList<>();
        for (int i = 0; i < NODES; i++) {
            FarNode node = FarNode.of(REDIS, FarNode.PATIENT.expectedNodes(NODES));
            node.awaitRedis();
            nodes.add(node);
        }
        return nodes;
    }
}
