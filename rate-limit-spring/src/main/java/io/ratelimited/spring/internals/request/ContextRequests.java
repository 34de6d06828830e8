package io.ratelimited.spring.internals.request;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The requests of a hierarchy of contexts. Each context adds those that it serves, so that beans of a parent find the
 * requests of its children. Thread-safe.
 */
public final class ContextRequests implements CurrentRequest.Source {

    private static final Set<String> WORDS = Set.of("clientIp", "principal", "header", "session");

    /** Replaced as a whole, because every call of a limited method reads it. */
    private volatile List<CurrentRequest.Source> sources = List.of();

    /** Arguments with which limits were prepared, for contexts that start later. Guarded by this. */
    private final Set<String> read = new HashSet<>();

    private final Map<Method, Supplier<ThreadUse>> blocking = new LinkedHashMap<>();
    private boolean prepared;

    /** Adds the requests of a context. */
    public synchronized void add(Collection<CurrentRequest.Source> added) {
        List<CurrentRequest.Source> all = new ArrayList<>(sources);
        for (CurrentRequest.Source source : added) {
            if (source != this) {
                if (prepared) {
                    source.prepare(Set.copyOf(read)::contains);
                    blocking.forEach(source::prepareBlocking);
                }
                all.add(source);
            }
        }
        sources = List.copyOf(all);
    }

    /** Removes the requests of a context that closes. */
    public synchronized void remove(Collection<CurrentRequest.Source> removed) {
        List<CurrentRequest.Source> left = new ArrayList<>(sources);
        left.removeAll(removed);
        sources = List.copyOf(left);
    }

    /** Returns whether no context serves requests. */
    public boolean isEmpty() {
        return sources.isEmpty();
    }

    @Override
    public @Nullable CurrentRequest current() {
        List<CurrentRequest.Source> all = sources;
        for (int i = 0; i < all.size(); i++) {
            CurrentRequest request = all.get(i).current();
            if (request != null) {
                return request;
            }
        }
        return null;
    }

    @Override
    public @Nullable CurrentRequest current(Function<Object, @Nullable Object> reactorContext) {
        List<CurrentRequest.Source> all = sources;
        for (int i = 0; i < all.size(); i++) {
            CurrentRequest request = all.get(i).current(reactorContext);
            if (request != null) {
                return request;
            }
        }
        return null;
    }

    @Override
    public boolean isRequestThread() {
        List<CurrentRequest.Source> all = sources;
        for (int i = 0; i < all.size(); i++) {
            if (all.get(i).isRequestThread()) {
                return true;
            }
        }
        return false;
    }

    @Override
    public synchronized void prepare(Predicate<String> reads) {
        prepared = true;
        WORDS.stream().filter(reads).forEach(read::add);
        sources.forEach(source -> source.prepare(reads));
    }

    @Override
    public synchronized void prepareBlocking(Method method, Supplier<ThreadUse> limits) {
        blocking.put(method, limits);
        sources.forEach(source -> source.prepareBlocking(method, limits));
    }
}
