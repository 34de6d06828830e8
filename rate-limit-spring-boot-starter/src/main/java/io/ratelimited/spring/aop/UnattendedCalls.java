package io.ratelimited.spring.aop;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Ticker;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.Iterator;
import java.util.stream.Stream;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.interceptor.AsyncExecutionInterceptor;
import org.springframework.context.event.ApplicationListenerMethodAdapter;
import org.springframework.context.event.EventListener;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.scheduling.annotation.Schedules;
import org.springframework.scheduling.support.ScheduledMethodRunnable;
import org.springframework.util.ClassUtils;

/**
 * Refused calls that Spring itself makes of a method: of a schedule, of an event listener, and of an asynchronous method
 * without a result. Nobody can catch their refusal, so the call is skipped and the log says so once in a while.
 * Thread-safe.
 */
final class UnattendedCalls {

    private static final Log LOG = LogFactory.getLog(UnattendedCalls.class);
    private static final StackWalker CALLERS = StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE);
    /** Calls a reactive method once, and subscribes to its result in each run. */
    private static final String REACTIVE_SCHEDULE =
            "org.springframework.scheduling.annotation.ScheduledAnnotationReactiveSupport";

    private static final Duration PAUSE = Duration.ofMinutes(1);

    private final Method method;
    private final Ticker ticker;
    private long skipped;
    private long loggedAt;
    private boolean logged;

    private UnattendedCalls(Method method, Ticker ticker) {
        this.method = method;
        this.ticker = ticker;
    }

    /** Those of a method; null if Spring makes no calls of it that nobody waits for. */
    static @Nullable UnattendedCalls of(Method method, Ticker ticker) {
        MergedAnnotations annotations = MergedAnnotations.from(method, SearchStrategy.TYPE_HIERARCHY);
        boolean possible = annotations.isPresent(Scheduled.class)
                || annotations.isPresent(Schedules.class)
                || annotations.isPresent(EventListener.class)
                || (method.getReturnType() == void.class
                        && (annotations.isPresent(Async.class)
                                || AnnotatedElementUtils.hasAnnotation(method.getDeclaringClass(), Async.class)));
        return possible ? new UnattendedCalls(method, ticker) : null;
    }

    /**
     * Whether the calling thread is in one of these calls. The same method may also be called by other beans, which can
     * catch the refusal.
     */
    boolean isCurrent() {
        return CALLERS.walk(this::isMadeBySpring);
    }

    private boolean isMadeBySpring(Stream<StackWalker.StackFrame> frames) {
        Iterator<StackWalker.StackFrame> callers = frames.iterator();
        while (callers.hasNext()) {
            Class<?> type = callers.next().getDeclaringClass();
            if (type == AsyncExecutionInterceptor.class && method.getReturnType() == void.class) {
                return true;
            }
            if (isCalled(type)) {
                Class<?> caller = callers.hasNext() ? callers.next().getDeclaringClass() : Object.class;
                return caller == ScheduledMethodRunnable.class
                        || caller == ApplicationListenerMethodAdapter.class
                        || caller.getName().equals(REACTIVE_SCHEDULE);
            }
        }
        return false;
    }

    /** Whether a class is that of the called object: of its proxy, or its own where it is woven. */
    private boolean isCalled(Class<?> type) {
        return Proxy.isProxyClass(type)
                || type.getName().contains(ClassUtils.CGLIB_CLASS_SEPARATOR)
                || type == method.getDeclaringClass();
    }

    /** Reports a skipped call in the log, once in a while. */
    synchronized void log(RateLimitExceededException refusal) {
        skipped++;
        long now = ticker.nanos();
        if (!logged || now - loggedAt >= PAUSE.toNanos()) {
            LOG.warn("Rate limit '" + refusal.limit() + "': " + skipped + (skipped == 1 ? " call" : " calls") + " of "
                    + ClassUtils.getShortName(method.getDeclaringClass()) + "." + method.getName()
                    + " skipped. Spring makes these calls (a schedule, an event or @Async), so nobody can catch their"
                    + " refusal. More of them are summed up in a minute.");
            logged = true;
            loggedAt = now;
            skipped = 0;
        }
    }
}
