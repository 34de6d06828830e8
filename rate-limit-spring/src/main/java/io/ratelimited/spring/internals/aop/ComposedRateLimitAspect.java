package io.ratelimited.spring.internals.aop;

import io.ratelimited.spring.RateLimited;
import org.aspectj.lang.ProceedingJoinPoint;
import org.aspectj.lang.annotation.Around;
import org.aspectj.lang.annotation.Aspect;
import org.jspecify.annotations.Nullable;

/**
 * {@link RateLimitAspect} for classes woven by AspectJ where {@link RateLimited} is on an annotation of the method or of
 * its class. Behind proxies the advisor sees to those.
 */
@Aspect
public final class ComposedRateLimitAspect {

    private static final ComposedRateLimitAspect WOVEN = new ComposedRateLimitAspect();

    private static final String COMPOSED =
            "@(@(io.ratelimited.spring.RateLimited || io.ratelimited.spring.RateLimited.List) *)";

    private ComposedRateLimitAspect() {}

    /** The instance that woven classes call. */
    public static ComposedRateLimitAspect aspectOf() {
        return WOVEN;
    }

    /** Returns whether there is an instance for woven classes, as AspectJ asks. */
    public static boolean hasAspect() {
        return true;
    }

    /** Around every call that such an annotation limits, and none on the method or its class. */
    @Around("(execution(" + COMPOSED + " * *(..)) || (execution(* *(..)) && within(" + COMPOSED + " *))) && !"
            + RateLimitAspect.PATTERN)
    public @Nullable Object limit(ProceedingJoinPoint call) throws Throwable {
        return RateLimitAspect.aspectOf().limit(call);
    }
}
