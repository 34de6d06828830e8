package io.ratelimited.spring.test;

import io.ratelimited.core.BlockedKey;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.internals.several.MemoryLimiter;
import io.ratelimited.core.memory.InMemoryRateLimiter;
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
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ObjectProvider;

/**
 * The limiters of a context, which each test finds as new. Each is replaced as a whole: so calls that the test before left in
 * flight no longer count, and a limit that it changed is as it was. Thread-safe.
 */
final class FreshBudgets {

    private final ManualTicker ticker;
    private final KeyMemory memory;
    private final Supplier<LimitRegistry> limits;
    private final ObjectProvider<LimitedClients> clients;
    private final List<Renewable> limiters = new CopyOnWriteArrayList<>();
    /** Makes limits, which may change, as the first test found them. */
    private final Map<String, Runnable> mementos = new ConcurrentHashMap<>();
    /** Held by the test that runs, which need not begin and end in one thread. */
    private final Semaphore turn = new Semaphore(1);

    FreshBudgets(
            ManualTicker ticker,
            KeyMemory memory,
            Supplier<LimitRegistry> limits,
            ObjectProvider<LimitedClients> clients) {
        this.ticker = ticker;
        this.memory = memory;
        this.limits = limits;
        this.clients = clients;
    }

    RateLimiter limiter(Limit limit) {
        Renewable limiter = new Renewable(new InMemoryRateLimiter(limit, ticker, memory.maximumKeys(limit, false, 1)));
        limiters.add(limiter);
        return (RateLimiter) Proxy.newProxyInstance(
                RateLimiter.class.getClassLoader(), new Class<?>[] {MemoryLimiter.class}, limiter);
    }

    /** A test starts, when the one before has ended. */
    void begin() throws InterruptedException {
        LimitRegistry registry = limits.get();
        turn.acquire();
        ticker.restart();
        ticker.autoAdvance();
        limiters.forEach(Renewable::renew);
        registry.all().forEach(limit -> {
            mementos.computeIfAbsent(limit.name(), registry::memento).run();
        });
        clients.ifAvailable(all -> all.all().forEach(LimitedClient::forget));
    }

    /** Ends a test: wakes all that still wait, so that nothing of it is left. */
    void end() {
        ticker.restart();
        turn.release();
    }

    /** Passes every call on, as a limiter in memory: several limits on one call are decided as in the application. */
    private final class Renewable implements InvocationHandler {

        private volatile RateLimiter limiter;
        private @Nullable Limit first;
        /** Hear of blocks, whichever limiter starts them. */
        private final List<Consumer<BlockedKey>> observers = new CopyOnWriteArrayList<>();

        Renewable(RateLimiter limiter) {
            this.limiter = limiter;
            limiter.onBlock(this::begins);
        }

        private void begins(BlockedKey block) {
            observers.forEach(observer -> observer.accept(block));
        }

        /** As the first test found it: the application may have changed the limit when it started. */
        synchronized void renew() {
            if (first == null) {
                first = limiter.limit();
            }
            RateLimiter fresh = new InMemoryRateLimiter(first, ticker, memory.maximumKeys(first, false, 1));
            fresh.onBlock(this::begins);
            limiter = fresh;
        }

        @Override
        @SuppressWarnings("unchecked")
        public @Nullable Object invoke(Object proxy, Method method, @Nullable Object @Nullable [] args)
                throws Throwable {
            if (method.getName().equals("equals")) {
                return args != null && proxy == args[0];
            }
            if (method.getName().equals("onBlock") && args != null) {
                observers.add((Consumer<BlockedKey>) args[0]);
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
