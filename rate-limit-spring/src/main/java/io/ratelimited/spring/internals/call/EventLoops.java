package io.ratelimited.spring.internals.call;

import org.springframework.util.ClassUtils;
import reactor.core.scheduler.Schedulers;

/**
 * Recognizes threads that must never sleep because many requests share them: event loops, and the timers of Reactor and of
 * coroutines.
 */
public final class EventLoops {

    /** The name, to which coroutines add theirs, of the one thread on which unconfined ones go on after a delay. */
    private static final String TIMER_OF_COROUTINES = "kotlinx.coroutines.DefaultExecutor";

    private static final boolean REACTOR =
            ClassUtils.isPresent("reactor.core.publisher.Mono", EventLoops.class.getClassLoader());

    /**
     * Netty's event loops, such as those of Redis clients, which Reactor does not know. Netty says of every thread of its factory
     * that it must not block, also of those in a plain pool.
     */
    private static final ClassValue<Boolean> OF_NETTY = new ClassValue<>() {
        @Override
        protected Boolean computeValue(Class<?> thread) {
            for (Class<?> type = thread; type != null; type = type.getSuperclass()) {
                if (type.getName().equals("io.netty.util.concurrent.FastThreadLocalThread")) {
                    return true;
                }
            }
            return false;
        }
    };

    private EventLoops() {}

    /** Returns whether the calling thread is one of them. */
    public static boolean isCurrentThread() {
        Thread thread = Thread.currentThread();
        return (REACTOR && Reactor.isNonBlockingThread())
                || OF_NETTY.get(thread.getClass())
                || thread.getName().startsWith(TIMER_OF_COROUTINES);
    }

    /** Loaded only where Reactor is. */
    private static final class Reactor {

        private static boolean isNonBlockingThread() {
            return Schedulers.isInNonBlockingThread();
        }
    }
}
