package io.ratelimited.benchmarks.overload;

import io.ratelimited.core.End;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Draws loads whose calls share nothing, so that nothing is short: two to five phases of half a minute, of one to three kinds of
 * calls at random times, with quiet nights and bursts of up to a thousand calls between them. Prints how many of the loads lose
 * at most 0.5 % of their calls, in total and in each ten seconds, and those that lose more. A call is not lost where a burst has
 * filled {@code max-concurrent}: any limit of this number rejects it.
 */
public final class HarmlessLoads {

    private static final int PHASE = 30;
    private static final double MOST = 0.005;

    private final Timeline timeline = new Timeline();
    private final SplittableRandom random;
    private final StringBuilder text = new StringBuilder();
    private final Gate gate = Gate.ours(timeline, 0, List.of());
    private final int[] offered = new int[100];
    private final int[] rejected = new int[100];
    private int begin;
    /** Admitted calls that have not ended. */
    private int inFlight;

    private HarmlessLoads(long seed) {
        this.random = new SplittableRandom(seed);
    }

    /** Takes the first seed and the number of loads. */
    public static void main(String[] args) {
        long first = Long.parseLong(args[0]);
        int number = Integer.parseInt(args[1]);
        int harmless = 0;
        for (long seed = first; seed < first + number; seed++) {
            harmless += new HarmlessLoads(seed).run() ? 1 : 0;
        }
        System.out.println(harmless + " of " + number + " lose at most 0.5 %, in total and in each ten seconds");
    }

    private boolean run() {
        int phases = 2 + random.nextInt(4);
        for (int phase = 0; phase < phases; phase++) {
            if (random.nextInt(4) == 0) {
                text.append(" night;");
                begin += PHASE;
            }
            if (random.nextInt(3) == 0) {
                burst(drawn(20, 1000), drawn(0.005, 1));
            }
            for (int kinds = 1 + random.nextInt(3); kinds > 0; kinds--) {
                double took = drawn(0.002, 2);
                // Not more in flight than may be.
                calls(Math.min(drawn(1, 500), 300 / took), took);
            }
            begin += PHASE;
        }
        timeline.runUntil((long) ((begin + PHASE) * 1e9));
        int all = 0;
        int lost = 0;
        double worst = 0;
        for (int tens = 0; tens < offered.length; tens++) {
            all += offered[tens];
            lost += rejected[tens];
            worst = Math.max(worst, offered[tens] == 0 ? 0 : (double) rejected[tens] / offered[tens]);
        }
        boolean isHarmless = lost <= MOST * all && worst <= MOST;
        if (!isHarmless) {
            System.out.printf(Locale.ROOT, "%d of %d, %.1f %% in ten seconds:%s%n", lost, all, 100 * worst, text);
        }
        return isHarmless;
    }

    private double drawn(double least, double most) {
        return least * Math.pow(most / least, random.nextDouble());
    }

    private void burst(double number, double took) {
        text.append(String.format(Locale.ROOT, " burst of %.0f of %.3f s;", number, took));
        for (int i = 0; i < number; i++) {
            call(begin, took * -Math.log(1 - random.nextDouble()));
        }
    }

    private void calls(double rate, double took) {
        text.append(String.format(Locale.ROOT, " %.0f/s of %.3f s;", rate, took));
        for (double at = begin; at < begin + PHASE; at += -Math.log(1 - random.nextDouble()) / rate) {
            call(at, took * (0.5 + random.nextDouble()));
        }
    }

    private void call(double at, double took) {
        timeline.at((long) (at * 1e9), () -> {
            @Nullable Consumer<End> leave = gate.enter(0);
            offered[(int) (at / 10)]++;
            if (leave != null) {
                inFlight++;
                timeline.after((long) (took * 1e9), () -> {
                    inFlight--;
                    leave.accept(End.ANSWERED);
                });
            } else if (inFlight < Gate.MOST) {
                rejected[(int) (at / 10)]++;
            }
        });
    }
}
