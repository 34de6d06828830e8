package io.ratelimited.spring.test;

import io.ratelimited.core.BlockedKey;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.internals.several.MemoryLimiter;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.overload.FoundLimitChange;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.internals.client.LimitedClient;
import io.ratelimited.spring.internals.client.LimitedClients;
import io.ratelimited.spring.internals.limit.KeyMemory;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Semaphore;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The limiters of a context, which each test finds as new. Each is replaced as a whole: so calls that the test before left in
 * flight no longer count, and a limit that it changed is as it was. Thread-safe.
 */
final class FreshBudgets {

    private final ManualTicker ticker;
    private final KeyMemory memory;
    private final Supplier<LimitRegistry> limits;
    private final List<Renewable> limiters = new CopyOnWriteArrayList<>();
    /** Bring limits back as the first test found them; one that is known later, as its configuration has it. */
    private final Map<String, Runnable> mementos = new ConcurrentHashMap<>();
    /** The first test has started: changes from now on are those of tests. */
    private volatile boolean begun;
    /** Held by the test that runs, which need not begin and end in one thread. */
    private final Semaphore turn = new Semaphore(1);

    FreshBudgets(ManualTicker ticker, KeyMemory memory, Supplier<LimitRegistry> limits) {
        this.ticker = ticker;
        this.memory = memory;
        this.limits = limits;
    }

    RateLimiter limiter(Limit limit) {
        Renewable limiter = new Renewable(limit);
        limiters.add(limiter);
        return (RateLimiter) Proxy.newProxyInstance(
                RateLimiter.class.getClassLoader(), new Class<?>[] {MemoryLimiter.class}, limiter);
    }

    /**
     * A test starts, when the one before has ended.
     *
     * @param clients those of its context and its parents
     */
    void begin(Supplier<Stream<LimitedClients>> clients) throws InterruptedException {
        LimitRegistry registry = limits.get();
        turn.acquire();
        boolean started = false;
        try {
            if (!begun) {
                // The restart advances the time to the last alarm: overrides of the startup may end before it.
                registry.all().forEach(limit -> mementos.computeIfAbsent(limit.name(), registry::memento));
            }
            ticker.restart();
            ticker.autoAdvance();
            registry.all()
                    .forEach(limit -> mementos.computeIfAbsent(limit.name(), registry::asConfigured)
                            .run());
            limiters.forEach(Renewable::renew);
            clients.get().forEach(all -> all.all().forEach(LimitedClient::forget));
            begun = true;
            started = true;
        } finally {
            if (!started) {
                turn.release();
            }
        }
    }

    /** Ends a test: wakes all that still wait, so that nothing of it is left. */
    void end() {
        ticker.restart();
        turn.release();
    }

    /** Passes every call on, as a limiter in memory: several limits on one call are decided as in the application. */
    private final class Renewable implements InvocationHandler {

        private volatile RateLimiter limiter;
        /** Each adds an observer to a limiter, and to those that replace it. */
        private final List<Consumer<RateLimiter>> observers = new CopyOnWriteArrayList<>();

        Renewable(Limit limit) {
            this.limiter = fresh(limit);
        }

        private RateLimiter fresh(Limit limit) {
            RateLimiter fresh = new InMemoryRateLimiter(limit, ticker, memory.maximumKeys(limit, false, 1));
            observers.forEach(observer -> observer.accept(fresh));
            return fresh;
        }

        private void observe(Consumer<RateLimiter> observer) {
            observers.add(observer);
            observer.accept(limiter);
        }

        void renew() {
            limiter = fresh(limiter.limit());
        }

        @Override
        @SuppressWarnings("unchecked")
        public @Nullable Object invoke(Object proxy, Method method, @Nullable Object @Nullable [] args)
                throws Throwable {
            if (method.getName().equals("equals")) {
                return args != null && proxy == args[0];
            }
            if (method.getName().equals("onBlock") && args != null) {
                observe(each -> each.onBlock((Consumer<BlockedKey>) args[0]));
                return null;
            }
            if (method.getName().equals("onLimitChange") && args != null) {
                observe(each -> each.onLimitChange((Consumer<FoundLimitChange>) args[0]));
                return null;
            }
            try {
                return method.invoke(limiter, args);
            } catch (InvocationTargetException ex) {
                throw ex.getCause();
            }
        }
    }
}
