package io.ratelimited.redis.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.redis.connection.Deliveries.Delivery;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Commands that are kept for a server that is away. */
class DeliveriesTest {

    private final Deliveries deliveries = new Deliveries();

    private void keep(int count) {
        for (int i = 0; i < count; i++) {
            deliveries.keep(new Delivery(Script.CONCURRENCY, "key-" + i, ScriptArguments::new, true, 0));
        }
    }

    @Test
    void aBoundedNumberIsUnderWayTheOldestFirst() {
        keep(1_000);
        List<Delivery> first = deliveries.take(key -> true);
        assertThat(first).hasSize(Deliveries.MOST_UNDER_WAY);
        assertThat(first.get(0).key()).isEqualTo("key-0");
        assertThat(deliveries.take(key -> true)).isEmpty();
        assertThat(deliveries.begin()).isFalse();
    }

    @Test
    void whatHasEndedMakesRoomForTheNext() {
        keep(1_000);
        int delivered = 0;
        int most = 0;
        List<Delivery> underWay = deliveries.take(key -> true);
        while (!underWay.isEmpty()) {
            most = Math.max(most, underWay.size());
            delivered += underWay.size();
            underWay.forEach(delivery -> deliveries.end());
            underWay = deliveries.take(key -> true);
        }
        assertThat(delivered).isEqualTo(1_000);
        assertThat(most).isEqualTo(Deliveries.MOST_UNDER_WAY);
        assertThat(deliveries.begin()).isTrue();
    }

    @Test
    void moreIsSentOnceHalfOfItHasEnded() {
        keep(1_000);
        List<Delivery> underWay = deliveries.take(key -> true);
        for (int i = 1; i < underWay.size() / 2; i++) {
            assertThat(deliveries.end()).isFalse();
        }
        assertThat(deliveries.end()).isTrue();
    }

    @Test
    void whatCannotBeSentHoldsUpNothing() {
        keep(1_000);
        assertThat(deliveries.take(key -> key.equals("key-999"))).hasSize(1);
    }
}
