package io.ratelimited.spring.internals.overload;

import io.ratelimited.core.Call;
import io.ratelimited.core.End;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.spring.backend.LimiterFactory;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;

/** Limits in memory that remember how calls ended: the first release of a reservation counts, and a call may be cancelled. */
public final class RecordingBackend implements LimiterFactory {

    /** {@link End#name}, or {@code not made}. */
    public final List<String> ends = new CopyOnWriteArrayList<>();

    public final List<Integer> ranks = new CopyOnWriteArrayList<>();

    /** Runs behind each reservation, before its caller gets it. */
    public volatile Runnable whenReserved = () -> {};

    @Override
    public String backend() {
        return "recording";
    }

    @Override
    public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
        RateLimiter memory = new InMemoryRateLimiter(limit, Ticker.system(), 100);
        return (RateLimiter) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {RateLimiter.class}, (proxy, method, args) -> {
                    Object result;
                    try {
                        result = method.invoke(memory, args);
                    } catch (InvocationTargetException ex) {
                        throw ex.getCause();
                    }
                    if (method.getName().startsWith("reserve")) {
                        Object last = args[args.length - 1];
                        ranks.add(
                                args[0] instanceof Call call
                                        ? call.rank()
                                        : last instanceof Integer rank ? rank : RateLimiter.NO_RANK);
                        whenReserved.run();
                    }
                    if (result instanceof Reservation reservation) {
                        return recorded(reservation);
                    }
                    return method.getName().equals("reserveAsync")
                            ? ((CompletionStage<?>) result)
                                    .thenApply(reservation -> recorded((Reservation) reservation))
                            : result;
                });
    }

    private Reservation recorded(Reservation reservation) {
        boolean[] ended = {reservation.isRefused()};
        return (Reservation) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {Reservation.class}, (proxy, method, args) -> {
                    boolean ends = method.getName().equals("release")
                            || method.getName().equals("cancel");
                    synchronized (ended) {
                        if (ends && !ended[0]) {
                            ended[0] = true;
                            this.ends.add(
                                    method.getName().equals("cancel")
                                            ? "not made"
                                            : args == null ? End.ANSWERED.name() : ((End) args[0]).name());
                        }
                    }
                    try {
                        return method.invoke(reservation, args);
                    } catch (InvocationTargetException ex) {
                        throw ex.getCause();
                    }
                });
    }
}
