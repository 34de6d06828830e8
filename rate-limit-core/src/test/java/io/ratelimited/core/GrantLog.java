package io.ratelimited.core;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.LongUnaryOperator;
import java.util.stream.Collectors;

/** The grants of a run, to be judged by their instants. */
public final class GrantLog {

    private record Grant(long instant, long permits) {}

    private final List<Grant> grants = new ArrayList<>();

    public void add(long instant, long permits) {
        grants.add(new Grant(instant, permits));
    }

    public List<Long> instants() {
        return sorted().stream().map(Grant::instant).toList();
    }

    private List<Grant> sorted() {
        return grants.stream().sorted(Comparator.comparingLong(Grant::instant)).toList();
    }

    /** The most permits in any interval of this length, its end not included. */
    public long mostWithin(long length) {
        List<Grant> sorted = sorted();
        long most = 0;
        long sum = 0;
        int from = 0;
        for (Grant grant : sorted) {
            sum += grant.permits;
            while (grant.instant - sorted.get(from).instant >= length) {
                sum -= sorted.get(from++).permits;
            }
            most = Math.max(most, sum);
        }
        return most;
    }

    /** The most permits in a window, which a function finds for an instant. */
    public long mostInWindow(LongUnaryOperator window) {
        return grants.stream()
                .collect(Collectors.groupingBy(
                        grant -> window.applyAsLong(grant.instant), Collectors.summingLong(Grant::permits)))
                .values()
                .stream()
                .mapToLong(Long::longValue)
                .max()
                .orElse(0);
    }

    /** The largest excess, in permits, of any interval over what {@code burst + rate · length} allows. */
    public double worstExcess(double burst, Rate rate) {
        List<Grant> sorted = sorted();
        double perNano = rate.permits() / (double) rate.period().toNanos();
        double worst = Double.NEGATIVE_INFINITY;
        double open = Double.NEGATIVE_INFINITY;
        long before = 0;
        long start = sorted.isEmpty() ? 0 : sorted.get(0).instant;
        for (Grant grant : sorted) {
            double credit = (grant.instant - start) * perNano;
            open = Math.max(open, credit - before);
            before += grant.permits;
            worst = Math.max(worst, before - credit + open - burst);
        }
        return worst;
    }
}
