package io.ratelimited.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class TopKeysTest {

    @Test
    void fewKeysAreCountedExactly() {
        TopKeys keys = new TopKeys(8);
        List.of("a", "b", "a", "c", "a", "b").forEach(keys::add);

        assertThat(keys.top(2)).containsExactly(new TopKeys.Top("a", 3, 0), new TopKeys.Top("b", 2, 0));
    }

    @Test
    void aFloodOfKeysDoesNotGrowTheSketch() {
        TopKeys keys = new TopKeys(8);
        for (int i = 0; i < 10_000; i++) {
            keys.add(i);
        }

        assertThat(keys.top(Integer.MAX_VALUE)).hasSize(8);
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5})
    void everyFrequentKeyIsThereAndCountsAreTrueWithinTheirError(long seed) {
        Random random = new Random(seed);
        Map<Object, Long> truth = new HashMap<>();
        TopKeys keys = new TopKeys(16);
        int total = 20_000;
        for (int i = 0; i < total; i++) {
            Object key = (int) Math.abs(random.nextGaussian() * 40);
            truth.merge(key, 1L, Long::sum);
            keys.add(key);
        }

        List<TopKeys.Top> top = keys.top(16);
        assertThat(top)
                .allSatisfy(found ->
                        assertThat(truth.get(found.key())).isBetween(found.count() - found.error(), found.count()));
        assertThat(top.stream().mapToLong(TopKeys.Top::count).sum()).isEqualTo(total);
        truth.forEach((key, count) -> {
            if (count > total / 16) {
                assertThat(top).extracting(TopKeys.Top::key).contains(key);
            }
        });
    }

    @Test
    void aFrequentKeyIsFoundUnderThreads() throws Exception {
        TopKeys keys = new TopKeys(16);
        int threads = 4;
        int rounds = 5_000;
        CyclicBarrier gate = new CyclicBarrier(threads);
        ExecutorService executor = Executors.newFixedThreadPool(threads);
        try {
            List<Future<?>> done = new ArrayList<>();
            for (int t = 0; t < threads; t++) {
                int first = t * rounds;
                done.add(executor.submit(() -> {
                    gate.await();
                    for (int i = 0; i < rounds; i++) {
                        keys.add("greedy");
                        keys.add(first + i);
                    }
                    return null;
                }));
            }
            for (Future<?> one : done) {
                one.get();
            }
        } finally {
            executor.shutdownNow();
        }

        assertThat(keys.top(1)).singleElement().satisfies(top -> {
            assertThat(top.key()).isEqualTo("greedy");
            assertThat(top.count()).isGreaterThanOrEqualTo(threads * rounds / 2);
        });
        assertThat(keys.top(Integer.MAX_VALUE)).hasSize(16);
    }
}
