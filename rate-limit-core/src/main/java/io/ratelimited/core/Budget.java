package io.ratelimited.core;

import java.math.BigInteger;

/**
 * What a cell hands over when its limit changes.
 *
 * @param left what is left of what can be stored, in the units of the old cell
 * @param of what can be stored, in the same units
 * @param permit one permit in these units; 0 when what is stored is no permits
 * @param onCredit one more call may go on credit, as soon as there is no debt
 * @param debt permits granted in advance, with their fraction; nothing is left then
 * @param debtNanos how long that debt would have taken to be paid
 */
record Budget(long left, long of, long permit, boolean onCredit, double debt, long debtNanos) {

    /** Of a permit, for what is left of one. */
    private static final long PARTS = 1L << 52;

    /** Of a key that no limit has counted: all of what is stored, however much that is. */
    static final Budget WHOLE = new Budget(Long.MAX_VALUE, Long.MAX_VALUE, 1, false, 0, 0);

    static Budget ofStored(long left, long of, long permit, boolean onCredit) {
        return new Budget(left, of, permit, onCredit, 0, 0);
    }

    static Budget ofDebt(double debt, long debtNanos, boolean onCredit) {
        return new Budget(0, 1, 1, onCredit, debt, debtNanos);
    }

    boolean isMoreSpentThan(Budget that) {
        return debt == that.debt ? share() < that.share() : debt > that.debt;
    }

    /** The part of what can be stored that is left. */
    double share() {
        return of == 0 ? 1 : (double) left / of;
    }

    /**
     * The same for a limit that lets a call go on credit, or for one that does not: the permit of that call is left in
     * one and stored in the other.
     */
    Budget as(boolean credit) {
        if (credit == onCredit) {
            return this;
        }
        if (credit) {
            return debt == 0 && left >= permit
                    ? new Budget(left - permit, of - permit, permit, true, 0, 0)
                    : new Budget(0, 1, 1, true, debt + 1 - (double) left / permit, debtNanos);
        }
        if (debt > 1) {
            return new Budget(0, 1, 1, false, debt - 1, debtNanos);
        }
        if (debt > 0) {
            return new Budget((long) ((1 - debt) * PARTS), PARTS, PARTS, false, 0, 0);
        }
        return permit == 0
                ? new Budget(1, 1, 1, false, 0, 0)
                : new Budget(left + permit, of + permit, permit, false, 0, 0);
    }

    /**
     * What is left in another cell: as many permits, or the same share of what that one can store if it can store
     * less; never more than there was. Rounded down.
     *
     * @param capacity in its units
     * @param unit one permit in its units
     */
    long leftOf(long capacity, long unit) {
        if (permit == 0 || of == 0) {
            return 0;
        }
        BigInteger stored = BigInteger.valueOf(of).multiply(BigInteger.valueOf(unit));
        BigInteger storable = BigInteger.valueOf(capacity).multiply(BigInteger.valueOf(permit));
        boolean shrinks = storable.compareTo(stored) < 0;
        return BigInteger.valueOf(left)
                .multiply(BigInteger.valueOf(shrinks ? capacity : unit))
                .divide(BigInteger.valueOf(shrinks ? of : permit))
                .longValueExact();
    }
}
