package io.ratelimited.benchmarks;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.infra.Blackhole;
import reactor.core.publisher.Mono;

/**
 * What a handler does: the same number of steps each time, whatever else the processor does meanwhile.
 *
 * @param tokens as {@link Blackhole#consumeCPU} takes them; 0 for a handler that does nothing
 */
record Work(long tokens) {

    private static final long MEASURED = 20_000_000;

    /** Work that takes this long on a processor that does nothing else now: the fastest of five measurements says how much it is. */
    static Work ofMicros(int micros) {
        if (micros == 0) {
            return new Work(0);
        }
        long fastest = Long.MAX_VALUE;
        for (int i = 0; i < 5; i++) {
            long begun = System.nanoTime();
            Blackhole.consumeCPU(MEASURED);
            fastest = Math.min(fastest, System.nanoTime() - begun);
        }
        return new Work(TimeUnit.MICROSECONDS.toNanos(micros) * MEASURED / fastest);
    }

    /** Does it on the thread that subscribes. */
    <T> Mono<T> thenReturn(T value) {
        return tokens == 0
                ? Mono.just(value)
                : Mono.fromSupplier(() -> {
                    Blackhole.consumeCPU(tokens);
                    return value;
                });
    }
}
