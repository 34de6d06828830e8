package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.InMemoryRateLimiter;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Rate;
import io.ratelimited.redis.RedisBackendOptions;
import io.ratelimited.redis.simulation.Simulations.Plans;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Supplier;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.pool.TypePool;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The simulation notices when a method of the shipped code does something else. Mutants name methods and quote no lines. */
@SuppressWarnings("UnusedVariable") // what an advice assigns to its parameters changes the method
class MethodMutantsTest {

    private static final String ROOT = "io.ratelimited.redis.";
    /** Of processor time. */
    private static final double SECONDS = Double.parseDouble(System.getProperty("simulation.seconds", "60"));

    /**
     * A change of what a method begins with or returns.
     *
     * @param type below {@link #ROOT}
     * @param plans which schedules show it
     * @param change code that is added to the method
     */
    record Mutant(String breaks, String type, String method, Plans plans, Class<?> change) {

        private TypeDescription described() {
            return TypePool.Default.ofSystemLoader().describe(ROOT + type).resolve();
        }

        private void writeTo(Path directory) throws IOException {
            new ByteBuddy()
                    .redefine(described(), ClassFileLocator.ForClassLoader.ofSystemLoader())
                    .visit(Advice.to(change).on(ElementMatchers.named(method)))
                    .make()
                    .saveIn(directory.toFile());
        }

        @Override
        public String toString() {
            return breaks;
        }
    }

    static List<Mutant> mutants() {
        return List.of(
                new Mutant(
                        "the bucket of one outage is kept, and fills while Redis decides, until the next",
                        "connection.GuardedConnection",
                        "outage",
                        Plans.OUTAGES,
                        NeverOver.class),
                new Mutant(
                        "a caller who is decided after an outage makes the bucket of the next",
                        "limiter.LocalBudgets",
                        "forCall",
                        Plans.OUTAGES,
                        MadeByLateCallers.class),
                new Mutant(
                        "each outage begins with the share of a burst",
                        "limiter.LocalBudgets",
                        "forCall",
                        Plans.OUTAGES,
                        MadeByEachOutage.class),
                new Mutant(
                        "a node that has not counted the others has the whole limit to itself",
                        "RedisBackend",
                        "nodes",
                        Plans.OUTAGES,
                        CountsItselfAlone.class),
                new Mutant(
                        "a node has three times the rate to itself",
                        "limiter.NodeShare",
                        "paced",
                        Plans.OUTAGES,
                        ThreeTimesTheRate.class),
                new Mutant(
                        "a node has three times the places of a limit of calls in flight to itself",
                        "limiter.NodeShare",
                        "of",
                        Plans.TINY,
                        ThreeTimesThePlaces.class),
                new Mutant(
                        "a charge while Redis is away is forgotten",
                        "limiter.LocalFallback",
                        "spend",
                        Plans.SETTLING,
                        NoExcess.class));
    }

    static final class NeverOver {

        @Advice.OnMethodExit
        static void exit(@Advice.This Object self, @Advice.Return(readOnly = false) Object outage) {
            if (outage == null) {
                outage = self;
            }
        }
    }

    static final class MadeByLateCallers {

        @Advice.OnMethodEnter
        static void enter(
                @Advice.Argument(0) Supplier<Object> present,
                @Advice.FieldValue("outage") Object last,
                @Advice.FieldValue(value = "limiter", readOnly = false) InMemoryRateLimiter limiter) {
            if (last != null && present.get() == null) {
                limiter = null;
            }
        }
    }

    static final class MadeByEachOutage {

        @Advice.OnMethodEnter
        static void enter(
                @Advice.Argument(0) Supplier<Object> present,
                @Advice.FieldValue("outage") Object last,
                @Advice.FieldValue(value = "limiter", readOnly = false) InMemoryRateLimiter limiter) {
            Object now = present.get();
            if (now != null && now != last) {
                limiter = null;
            }
        }
    }

    static final class CountsItselfAlone {

        @Advice.OnMethodExit
        static void exit(
                @Advice.FieldValue("options") RedisBackendOptions options,
                @Advice.FieldValue("countedNodes") int counted,
                @Advice.Return(readOnly = false) int nodes) {
            if (options.expectedNodes() == 0) {
                nodes = Math.max(1, counted);
            }
        }
    }

    static final class ThreeTimesTheRate {

        @Advice.OnMethodExit
        static void exit(@Advice.Argument(0) Rate whole, @Advice.Return(readOnly = false) Rate share) {
            share = new Rate(whole.permits(), whole.period().dividedBy(3));
        }
    }

    static final class ThreeTimesThePlaces {

        @Advice.OnMethodExit
        static void exit(@Advice.Argument(0) Limit whole, @Advice.Return(readOnly = false) Limit share) {
            if (whole.algorithm().countsCallsInFlight()) {
                share = whole.toBuilder()
                        .maxConcurrent(whole.maxConcurrent() * 3)
                        .build();
            }
        }
    }

    static final class NoExcess {

        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 2, readOnly = false) long excess) {
            excess = 0;
        }
    }

    @Test
    void everyMutantFindsItsMethod() {
        for (Mutant mutant : mutants()) {
            assertThat(mutant.described().getDeclaredMethods().filter(ElementMatchers.named(mutant.method)))
                    .as(mutant.breaks)
                    .hasSize(1);
        }
    }

    @ParameterizedTest
    @MethodSource("mutants")
    @Tag("proof")
    void aMutantIsNoticedWithinAMinute(Mutant mutant, @TempDir Path classes) throws Exception {
        mutant.writeTo(classes);
        String noticed =
                MutantsTest.noticed(mutant.plans.name(), classes, System.getProperty("java.class.path"), SECONDS);
        System.out.printf("MUTANT %s: %s: %s%n", noticed == null ? "SURVIVES" : "noticed", mutant, noticed);
        assertThat(noticed).as(mutant.breaks).isNotNull();
    }
}
