package io.ratelimited.spring.internals.call;

import io.ratelimited.spring.internals.expression.CallExpression;
import io.ratelimited.spring.internals.expression.CallResult;
import io.ratelimited.spring.internals.request.RequestFacts;
import java.math.BigDecimal;
import org.jspecify.annotations.Nullable;

/** The cost of one call: evaluated when the call has ended, with the arguments that it began with. */
final class Charge {

    /** The permits of the largest limit: a call that costs more is a mistake of its expression. */
    private static final long LARGEST = 1_000_000_000_000_000L;

    private final CallExpression expression;
    private final @Nullable Object target;
    private final @Nullable Object[] args;
    private final @Nullable RequestFacts current;
    private final long reserved;

    /**
     * Makes a charge.
     *
     * @param expression the charge of a limit
     * @param target the called object
     * @param args the arguments of the call
     * @param current the web request of the call: the words of the expression are read now, from it or else from the thread
     * @param reserved permits that the call has reserved
     */
    Charge(
            CallExpression expression,
            @Nullable Object target,
            @Nullable Object[] args,
            @Nullable RequestFacts current,
            long reserved) {
        this.expression = expression;
        this.target = target;
        this.args = args.clone(); // an aspect behind this one may write into the array
        this.current = expression.captured(current);
        this.reserved = reserved;
    }

    /**
     * The permits that the call has cost, rounded up. A call that was ended from outside costs at least its reservation,
     * unless the expression reads {@code #cancelled}: otherwise a client that disconnects in time would pay nothing.
     *
     * @throws IllegalStateException when the expression fails, or yields no number from 0 to 10^15
     */
    long permits(CallResult result) {
        Object value = expression.valueAtEnd(target, args, current, result);
        long permits = roundedUp(value, LARGEST);
        if (permits < 0) {
            throw new IllegalStateException(expression + " must be a number from 0 to 10^15; it " + shown(value));
        }
        return result.cancelled() && !expression.readsCancelled() ? Math.max(reserved, permits) : permits;
    }

    /** Returns whether the cost says something about the caller of the call: not if it was ended from outside. */
    boolean mayBlock(CallResult result) {
        return !result.cancelled() || expression.readsCancelled();
    }

    /** A number of permits, rounded up; negative if the value is not a number from 0 to the largest. */
    static long roundedUp(@Nullable Object value, long largest) {
        double amount = value instanceof Number number ? number.doubleValue() : Double.NaN;
        if (!(value instanceof Number number && amount >= 0 && amount <= largest)) {
            return -1;
        }
        long whole = number.longValue();
        return isBelow(whole, number) ? whole + 1 : whole;
    }

    /** Compares exactly: as a double, a decimal number may be equal to the whole number beside it. */
    private static boolean isBelow(long whole, Number number) {
        return number instanceof BigDecimal exact
                ? BigDecimal.valueOf(whole).compareTo(exact) < 0
                : whole < number.doubleValue();
    }

    /** A value that is not a number may be the whole result of the call, which must not be logged. */
    private static String shown(@Nullable Object value) {
        return value == null || value instanceof Number
                ? "is " + value
                : "is an instance of " + value.getClass().getName();
    }
}
