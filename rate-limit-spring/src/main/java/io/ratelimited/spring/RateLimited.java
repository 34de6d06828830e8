package io.ratelimited.spring;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Repeatable;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.springframework.aot.hint.annotation.Reflective;
import org.springframework.core.annotation.AliasFor;

/**
 * The method is called at most as often as its limit allows. A call over the limit is refused with a {@link
 * io.ratelimited.core.RateLimitExceededException}, waits, or is merely counted, by its {@link #policy}.
 *
 * <p>On a class it limits every public method, all sharing one limiter; on a controller the handler methods, once a request. A
 * method's own annotation replaces that of the class, and {@link RateLimitExempt} opts a method out. Where it is repeated, all
 * limits must agree, and a refusal by one charges none of the others. As a meta-annotation it makes an annotation of your own,
 * whose attributes {@link AliasFor} leads to those here.
 *
 * <p>Every attribute can be set in {@code application.yml} under {@code rate-limit.limits.<name>}, which wins over the
 * annotation, property by property; {@code rate-limit.defaults} applies where neither sets a value. Attributes of type
 * {@link String} may contain placeholders ({@code ${name}}). A value that is out of its range, or has no meaning for the algorithm or the
 * policy, stops the start with an {@link InvalidRateLimitException}.
 *
 * @see RateLimits
 */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Reflective
@Repeatable(RateLimited.List.class)
public @interface RateLimited {

    /** Alias of {@link #name}. */
    @AliasFor("name")
    String value() default "";

    /**
     * Name of the limit in metrics, headers and {@code rate-limit.limits.<name>}. Methods that name the same limit share
     * its budget. Default: {@code SimpleClassName.method}; for an overloaded method with its parameter types, as in
     * {@code Orders.place(String,int)}; for a method's second annotation with {@code #2}; on a class {@code
     * SimpleClassName}.
     */
    @AliasFor("value")
    String name() default "";

    /**
     * The algorithm of the limit. {@link Algorithm#DEFAULT}: that of the limit's properties, else
     * {@code rate-limit.defaults.algorithm}, else {@link Algorithm#TOKEN_BUCKET}.
     */
    Algorithm algorithm() default Algorithm.DEFAULT;

    /**
     * Permits per period: {@code 100/s}, {@code 5/m}, {@code 1000/h}, {@code 5000/d}, {@code 20/500ms}, {@code 100/PT1M};
     * for {@link Algorithm#FIXED_WINDOW} also {@code 1000000/month}, {@code /week} and {@code /year}, from {@link #startsOn};
     * {@code 0/s} is closed, {@code unlimited} exempt. At most 10<sup>15</sup> permits, and 10 a nanosecond; a period of 3650 days
     * at most. Required here or in {@code application.yml}, but for {@link Algorithm#CONCURRENCY} and {@link
     * Algorithm#ADAPTIVE}, which have none.
     */
    String rate() default "";

    /**
     * Permits that may go at once, from 1 to 10<sup>15</sup>; for {@link Algorithm#LEAKY_BUCKET} the capacity of the queue, for
     * {@link Algorithm#SMOOTH_BURSTY} the permits that are stored, from 0. Default ({@link Long#MIN_VALUE}): the number in {@link #rate}, so that {@code
     * 5/m} lets 5 go at once; for SMOOTH_BURSTY one second of the rate.
     */
    long burst() default Long.MIN_VALUE;

    /**
     * Duration of the warm-up, such as {@code 10s} or {@code PT10S}, from 0 to 365 days. Required here or in {@code
     * application.yml} for {@link Algorithm#WARM_UP}, and for it only.
     */
    String warmup() default "";

    /**
     * The day on which the windows of a rate per week, month or year begin, at midnight of the limit's {@code zone}: {@code
     * MONDAY} (of weeks; the default), {@code 15} (of months, default 1; in a month with fewer days, the last) or {@code 04-01}
     * (of years, default 01-01; 02-29 is the last of February).
     */
    String startsOn() default "";

    /**
     * Calls in flight at once; 0 admits none. Required here or in {@code application.yml} for {@link Algorithm#CONCURRENCY}. For
     * {@link Algorithm#ADAPTIVE} the upper bound of the limit that it finds, else 1000. Default ({@link Integer#MIN_VALUE}): not set here.
     */
    int maxConcurrent() default Integer.MIN_VALUE;

    /**
     * SpEL expression for the key of the budget that a call uses. Default: one budget for all calls. Parameters are
     * {@code #name} (or {@code #a0}), beans {@code @bean}; the root has {@code method}, {@code args}, {@code target}, and in
     * a web request {@code clientIp}, {@code principal}, {@code header('X-Api-Key')} and {@code session} (its id). Callers
     * can invent a header and a session, so a bean has to look them up: {@code @keys.owner(header('X-Api-Key'))}. A null or
     * blank key follows {@code missing-key}; an expression that throws fails the call. Not for {@link Algorithm#ADAPTIVE}.
     */
    String key() default "";

    /**
     * The number of permits that a call takes, or a SpEL expression for it that sees the same as {@link #key}: a whole
     * number from 1, or an expression whose value is 0 or more. A fraction is rounded up. A value of 0 asks for nothing: the
     * call goes, and takes nothing. Another value, or none, fails the call. More than can ever be had at once: stops the
     * start as a number, and is refused as the value of an expression. Default: 1.
     */
    String permits() default "";

    /**
     * SpEL expression that sees the same as {@link #key} and yields a boolean; when it is false the limit does not apply to
     * the call. Another value fails the call. Default: the limit always applies.
     */
    String when() default "";

    /**
     * SpEL expression for the real cost of the call, evaluated when it has ended: the difference to {@link #permits},
     * which the call reserves, is given back or taken in addition. Sees the same as {@link #key}, and {@code #result} (null
     * if the method threw; the value of a future or {@code Mono}, the last element of a stream), {@code #error} (null if
     * it returned; a {@link java.util.concurrent.CancellationException} if it was cancelled), {@code #count} (elements of a
     * stream, else 1, or 0 after an error) and {@code #cancelled} (whether a client that disconnected, a timeout or a caller
     * ended it before its own end); these hide parameters of the same name, which {@code #a0} still names. A call that was
     * cancelled costs at least its reservation, unless the expression reads {@code #cancelled}. A future or a result that
     * Spring MVC awaits is charged when it has ended, a stream of a response when the response has ended. The value is a
     * number from 0 to 10<sup>15</sup>; fractions are rounded up. A charge that fails is logged, and the call stays charged
     * with its reservation. Not for {@link Algorithm#CONCURRENCY} and {@link Algorithm#ADAPTIVE}. Default: a call costs its reservation.
     */
    String charge() default "";

    /**
     * SpEL expression that sees the same as {@link #key} and names the plan of the caller, one of {@code
     * rate-limit.limits.<name>.tiers}. For null, a blank name or one that is not configured the limit itself applies. Default: none.
     */
    String tier() default "";

    /**
     * SpEL expression that sees the same as {@link #key} and names the class of the call, one of {@code
     * rate-limit.limits.<name>.priorities}, whose first is the best: {@code #vip ? 'critical' : 'batch'}. A constant stands in
     * quotes. Null, a blank name and one that is not configured are the class in the middle. Callers must not choose it. For
     * {@link Algorithm#ADAPTIVE} and {@link Algorithm#CONCURRENCY}. Default: none, all calls are equal.
     */
    String priority() default "";

    /**
     * Handling of a call over the limit. {@link Policy#DEFAULT}: that of the limit's properties, else {@link Policy#WAIT}
     * for {@link Algorithm#LEAKY_BUCKET}, else {@code rate-limit.defaults.policy}, else {@link Policy#REJECT}.
     */
    Policy policy() default Policy.DEFAULT;

    /**
     * The longest sleep under {@link Policy#WAIT}, such as {@code 500ms}, from 0 to 365 days; a call that could not go by then is
     * refused at once, without sleeping. Default: {@code rate-limit.defaults.max-wait}, else one second.
     */
    String maxWait() default "";

    /**
     * Name of a method of the same class that is called instead of a refused call: same parameters, optionally a {@link
     * io.ratelimited.core.RateLimitExceededException} last, and a return type that fits. Never called for exceptions of
     * the method itself. A method with several limits has one fallback, whichever of them refuses. Default: the exception
     * is thrown.
     */
    String fallback() default "";

    /**
     * How long a key is blocked after its first violation, such as {@code 1m}, up to {@link #blockMax}; {@code 0s} for no blocks.
     * Every call of the key is rejected until then. A violation is a call that the limit itself rejects, and that would have to wait
     * for longer than {@link #maxWait} allows; with {@link #charge} only a charge after which what was charged leaves no permit. Only for a limit whose calls have a {@link #key}; not for {@link
     * Algorithm#CONCURRENCY}. Default: no blocks.
     */
    String block() default "";

    /**
     * By how much each block of a key is longer than the one before, from 1 to 1000. Only with {@link #block}. Default ({@link Double#NaN}): 2.
     */
    double blockFactor() default Double.NaN;

    /**
     * The longest block, such as {@code 24h}, from {@link #block} to 365 days. When a key has not violated the limit for this time after
     * the end of a block, its next block is as short as its first. Only with {@link #block}. Default: 24 hours, with
     * {@link #charge} 15 minutes; {@link #block} if that is longer.
     */
    String blockMax() default "";

    /**
     * SpEL expression that sees the same as {@link #key} and yields a boolean: a call for which it is true is not rejected by a block of
     * its key and begins none; the limit still counts it. For what the caller cannot invent, such as a signed cookie of a device that has
     * logged in before: {@code "@devices.isKnown(#username)"}. Another value fails the call. Only with {@link #block}. Default:
     * blocks apply to every call.
     */
    String blockUnless() default "";

    /** Holds the repeated annotations of one element. */
    @Target({ElementType.TYPE, ElementType.METHOD})
    @Retention(RetentionPolicy.RUNTIME)
    @Documented
    @Reflective
    @interface List {

        RateLimited[] value();
    }
}
