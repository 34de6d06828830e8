package io.ratelimited.spring;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.CallerLimit;
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
 * Limits how often a method can be called. Depending on the {@link #policy}, a call over the limit is rejected with a {@link
 * io.ratelimited.core.RateLimitExceededException}, waits, or is only counted.
 *
 * <p>On a class, it limits every public method, and all of them share one limit; on a controller, it limits the handler
 * methods, once per request. An annotation on a method replaces that of its class, and {@link RateLimitExempt} excludes the
 * method. If it is repeated, all limits must admit the call, and a rejection by one charges none of the others. As a
 * meta-annotation, it defines a composed annotation, whose attributes are aliases ({@link AliasFor}) of these.
 *
 * <p>Every attribute can be set in {@code application.yml} under {@code rate-limit.limits.<name>}, which overrides the
 * annotation, one by one; {@code rate-limit.defaults} applies where neither sets a value. Attributes of type {@link String}
 * can contain placeholders ({@code ${name}}). A value that is out of range, or that the algorithm or the policy does not
 * support, fails startup with an {@link InvalidRateLimitException}.
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
     * Name of the limit in meters, headers and {@code rate-limit.limits.<name>}. Methods that name the same limit share it.
     * Default: {@code SimpleClassName.method}; for an overloaded method with its parameter types, as in {@code
     * Orders.place(String,int)}; for a method's second annotation with {@code #2}; on a class {@code SimpleClassName}. The
     * class is that of the bean, also if it inherits the annotation; of a client or a repository, it is its interface.
     */
    @AliasFor("value")
    String name() default "";

    /**
     * The algorithm of the limit. Default ({@link Algorithm#DEFAULT}): that in the properties of the limit, else {@code
     * rate-limit.defaults.algorithm}, else {@link Algorithm#TOKEN_BUCKET}.
     */
    Algorithm algorithm() default Algorithm.DEFAULT;

    /**
     * Permits per period: {@code 100/s}, {@code 5/m}, {@code 1000/h}, {@code 5000/d}, {@code 20/500ms}, {@code 100/PT1M};
     * for {@link Algorithm#FIXED_WINDOW} also {@code 1000000/month}, {@code /week} and {@code /year}, from {@link #startsOn};
     * {@code 0/s} rejects every call, {@code unlimited} none. At most 10<sup>15</sup> permits, 10 per nanosecond, and a period of 3650
     * days. Required here or in {@code application.yml}, except for {@link Algorithm#CONCURRENCY} and {@link
     * Algorithm#ADAPTIVE}, which have none.
     */
    String rate() default "";

    /**
     * Burst capacity: permits that an idle caller can use back to back, from 1 to 10<sup>15</sup>. For {@link
     * Algorithm#LEAKY_BUCKET} the capacity of the queue; for {@link Algorithm#SMOOTH_BURSTY} the stored permits, from 0.
     * Default ({@link Long#MIN_VALUE}): the number in {@link #rate}, so {@code 5/m} admits 5 back to back; for SMOOTH_BURSTY
     * one second of the rate.
     */
    long burst() default Long.MIN_VALUE;

    /**
     * Duration of the warm-up, such as {@code 10s} or {@code PT10S}, from 0 to 365 days. Required here or in {@code
     * application.yml} for {@link Algorithm#WARM_UP}, and only valid there.
     */
    String warmup() default "";

    /**
     * First day of the windows of a rate per week, month or year, at midnight in the {@code zone} of the limit. For weeks
     * {@code MONDAY} (the default) or another day; for months {@code 15} (default 1; in a shorter month, its last day); for
     * years {@code 04-01} (default 01-01; 02-29 is the last day of February).
     */
    String startsOn() default "";

    /**
     * The maximum number of concurrent calls; 0 admits none. Required here or in {@code application.yml} for {@link Algorithm#CONCURRENCY}. For
     * {@link Algorithm#ADAPTIVE} the upper bound of its limit, 1000 if unset. Default ({@link Integer#MIN_VALUE}): not set here.
     */
    int maxConcurrent() default Integer.MIN_VALUE;

    /**
     * SpEL expression that selects the caller: each key has its own limit. Default: all calls share one limit. Parameters are
     * {@code #name} (or {@code #a0}), beans {@code @bean}. The root object has {@code method}, {@code args}, {@code target},
     * and in a web request {@code clientIp}, {@code principal}, {@code header('X-Api-Key')} and {@code session} (its id).
     * Clients control headers and sessions, so look them up in a bean: {@code @keys.owner(header('X-Api-Key'))}. A null or
     * blank key is handled by {@code missing-key}; an expression that throws fails the call. Not for {@link
     * Algorithm#ADAPTIVE}.
     */
    String key() default "";

    /**
     * Cost of a call in permits: a whole number from 1, or a SpEL expression with the same variables as {@link #key} that
     * returns 0 or more. A fraction is rounded up. A call of 0 permits uses none, and is admitted unless its key is {@link
     * #block blocked}; with {@link #charge}, it is decided like a call of 1 while its key is in debt. Any other value fails the
     * call. A number above the maximum that the limit can ever admit fails startup; as the value of an expression, it rejects the call. Default: 1.
     */
    String permits() default "";

    /**
     * SpEL expression with the same variables as {@link #key} that returns a boolean; if it is false, the limit does not
     * apply to the call. Any other value fails the call. Default: the limit always applies.
     */
    String when() default "";

    /**
     * SpEL expression for the actual cost of the call, evaluated when it completes: the difference to {@link #permits}, which
     * the call reserves, is refunded or charged in addition. It has the same variables as {@link #key}, and {@code #result}
     * (null if the method threw; the value of a future or {@code Mono}, the last element of a stream), {@code #error} (null
     * if it returned; a {@link java.util.concurrent.CancellationException} if it was cancelled), {@code #count} (elements of
     * a stream, else 1, or 0 after an error) and {@code #cancelled} (whether its client, its caller or Spring MVC
     * ended it early). These hide parameters of the same name, which are still available as {@code #a0}. A cancelled call
     * costs at least its reservation, unless the expression reads {@code #cancelled}. A future, or an asynchronous result of
     * Spring MVC, is charged when it has completed; a streamed response when the response has ended. The value is a number
     * from 0 to 10<sup>15</sup>; fractions are rounded up. A charge that fails is logged, and the call stays charged with its
     * reservation. Not for {@link Algorithm#CONCURRENCY} and {@link Algorithm#ADAPTIVE}. Default: a call costs its
     * reservation.
     */
    String charge() default "";

    /**
     * SpEL expression with the same variables as {@link #key}. It returns the name of the caller's plan, one of {@code
     * rate-limit.limits.<name>.tiers}, or the caller's own numbers: a text such as {@code 500/m} or {@code 500/m burst 1000},
     * or a {@link CallerLimit}. The limit itself applies for null, for a blank or unknown name, for numbers that the limit
     * does not support, and for numbers that a client can choose. The used permits are kept when the numbers of a caller
     * change. Evaluated for each call. Default: none.
     */
    String tier() default "";

    /**
     * SpEL expression with the same variables as {@link #key} that returns the priority of the call, one of {@code
     * rate-limit.limits.<name>.priorities}, of which the first is the highest: {@code #vip ? 'critical' : 'batch'}. A
     * constant needs quotes. Null, and a blank or unknown name, mean the priority in the middle. Clients must not control it.
     * For {@link Algorithm#ADAPTIVE} and {@link Algorithm#CONCURRENCY}. Default: none, all calls are equal.
     */
    String priority() default "";

    /**
     * How a call over the limit is handled. Default ({@link Policy#DEFAULT}): the policy in the properties of the limit, else
     * {@code rate-limit.defaults.policy}, else {@link Policy#REJECT}. For {@link Algorithm#LEAKY_BUCKET}, {@link Policy#WAIT}
     * replaces a {@link Policy#REJECT} of {@code rate-limit.defaults.policy}, and is its default.
     */
    Policy policy() default Policy.DEFAULT;

    /**
     * The maximum wait under {@link Policy#WAIT}, such as {@code 500ms}, from 0 to 365 days; a call that would have to wait longer is
     * rejected immediately. Default: {@code rate-limit.defaults.max-wait}, else one second.
     */
    String maxWait() default "";

    /**
     * Name of a method of the same class that is called instead of a rejected call. It has the same parameters, optionally
     * followed by a {@link io.ratelimited.core.RateLimitExceededException}, and a compatible return type. It is not called
     * for exceptions of the method itself. A method with several limits has one fallback for all of them. Default: the
     * exception is thrown.
     */
    String fallback() default "";

    /**
     * How long a key is blocked after its first violation, such as {@code 1m}, up to {@link #blockMax}; {@code 0s} for no
     * blocks. Every call of the key is rejected until then, unless {@link #blockUnless} exempts it. A violation is a call that
     * the limit itself rejects, because it would have to wait longer than {@link #maxWait}, or because the {@link #burst} of a
     * {@link Algorithm#LEAKY_BUCKET} is full. With {@link #charge}, a violation is only a charge after which the charged
     * permits leave no permit. Only for limits with a {@link #key}; not for {@link Algorithm#CONCURRENCY}, and with {@link
     * #charge} not for {@link Algorithm#LEAKY_BUCKET}, {@link Algorithm#SMOOTH_BURSTY} and {@link Algorithm#WARM_UP}. Default:
     * no blocks.
     */
    String block() default "";

    /**
     * Factor between consecutive blocks of a key, from 1 to 1000. Only with {@link #block}. Default ({@link Double#NaN}): 2.
     */
    double blockFactor() default Double.NaN;

    /**
     * The longest block, such as {@code 24h}, from {@link #block} to 365 days. When a key has not violated the limit for this time after
     * the end of a block, its next block is as short as its first. Only with {@link #block}. Default: 24 hours, with
     * {@link #charge} 15 minutes; {@link #block} if that is longer.
     */
    String blockMax() default "";

    /**
     * SpEL expression with the same variables as {@link #key} that returns a boolean: if it is true, a block of the key does
     * not reject the call, and the call starts none; the limit still counts it. Read something that clients cannot spoof,
     * such as a signed cookie of a known device: {@code "@devices.isKnown(#username)"}. Any other value fails the call. Only
     * with {@link #block}. Default: blocks apply to every call.
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
