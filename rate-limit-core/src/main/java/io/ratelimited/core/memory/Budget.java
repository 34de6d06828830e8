package io.ratelimited.core.memory;

import java.math.BigInteger;

/**
 * The budget of a key in the middle of a change of its limit, between the old cell and the new one.
 *
 * @param left the amount stored, in the units of the old cell
 * @param of the most that could be stored, in the same units
 * @param permit one permit in these units; 0 when the stored amount is not in permits
 * @param onCredit whether one more call is admitted on credit when there is no debt
 * @param debt permits granted in advance, with their fraction; nothing is left then
 * @param debtNanos how long the old limit would have taken to pay that debt
 */
record Budget(long left, long of, long permit, boolean onCredit, double debt, long debtNanos) {

    /** Units of a permit of which a fraction is left. */
    private static final long PARTS = 1L << 52;

    /** The budget of a key that was never counted: everything is left. */
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

    /** The stored part, from 0 to 1. */
    double share() {
        return of == 0 ? 1 : (double) left / of;
    }

    /**
     * The same budget for a limit that admits a call on credit, or for one that does not. The permit of that call is on
     * credit in the first and stored in the second.
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
     * The amount left in the new cell, rounded down: as many permits, or the same share of the new capacity if that is
     * smaller. Never more than was left.
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
