package io.ratelimited.spring.call;

import io.ratelimited.spring.CurrentRequest;
import java.math.BigDecimal;
import org.jspecify.annotations.Nullable;

/** What one call has really cost, to be evaluated when it has ended. */
final class Charge {

    /** The largest limit. What costs more is taken for a mistake. */
    private static final long MOST = 1_000_000_000_000_000L;

    private final CallExpression expression;
    private final @Nullable Object target;
    private final @Nullable Object[] args;
    private final @Nullable CurrentRequest current;

    /**
     * Makes a charge.
     *
     * @param expression the charge of a limit
     * @param target the called object
     * @param args the arguments of the call
     * @param current the web request of the call, of which only what is read now is known when the call has ended
     */
    Charge(
            CallExpression expression,
            @Nullable Object target,
            @Nullable Object[] args,
            @Nullable CurrentRequest current) {
        this.expression = expression;
        this.target = target;
        this.args = args;
        this.current = expression.captured(current);
    }

    /**
     * The permits that the call has cost, rounded up.
     *
     * @throws IllegalStateException when the expression fails, or yields no number from 0 to 10^15
     */
    long permits(CallResult result) {
        Object value = expression.valueAtEnd(target, args, current, result);
        double amount = value instanceof Number number ? number.doubleValue() : Double.NaN;
        if (!(value instanceof Number number && amount >= 0 && amount <= MOST)) {
            throw new IllegalStateException(expression + " must be a number from 0 to 10^15; it " + shown(value));
        }
        long whole = number.longValue();
        return isLess(whole, number) ? whole + 1 : whole;
    }

    /** A double cannot tell a decimal number from the whole number beside it. */
    private static boolean isLess(long whole, Number number) {
        return number instanceof BigDecimal exact
                ? BigDecimal.valueOf(whole).compareTo(exact) < 0
                : whole < number.doubleValue();
    }

    /** What is no number may be the whole result of the call, which belongs in no log. */
    private static String shown(@Nullable Object value) {
        return value == null || value instanceof Number
                ? "is " + value
                : "is an instance of " + value.getClass().getName();
    }
}
