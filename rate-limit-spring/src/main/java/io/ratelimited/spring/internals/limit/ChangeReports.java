package io.ratelimited.spring.internals.limit;

import io.ratelimited.core.Policy;
import io.ratelimited.spring.RateLimitChangedEvent;
import io.ratelimited.spring.RateLimitChangedEvent.Scope;
import io.ratelimited.spring.RateLimitResetEvent;
import io.ratelimited.spring.internals.expression.CallerNames;
import io.ratelimited.spring.internals.request.RequestFacts;
import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.text.PropertyText;
import java.security.Principal;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.context.ApplicationEventPublisher;

/**
 * Reports changes and resets, and their authors, when they are in force: by a line in the log, and a {@link
 * RateLimitChangedEvent} or {@link RateLimitResetEvent}. Thread-safe.
 */
public final class ChangeReports {

    private static final LogText.Lines LOG = LogText.lines(ChangeReports.class);

    private final ApplicationEventPublisher events;
    /** Changes in the order in which they came into force, until they are reported. */
    private final Queue<Runnable> waiting = new ConcurrentLinkedQueue<>();

    private final ReentrantLock reporting = new ReentrantLock();

    public ChangeReports(ApplicationEventPublisher events) {
        this.events = events;
    }

    /**
     * Returns the name of the author of changes on this thread: the caller of its web request, or the one that Spring
     * Security knows. Null if there is none.
     *
     * @param request that of this thread; null if there is none
     */
    public static @Nullable String author(@Nullable RequestFacts request) {
        Principal caller = ofRequest(request);
        if (caller == null) {
            caller = CallerNames.ofThread();
        }
        return caller == null ? null : caller.getName();
    }

    private static @Nullable Principal ofRequest(@Nullable RequestFacts request) {
        try {
            return request == null ? null : request.principal();
        } catch (IllegalStateException ex) {
            // The request is over; or it is one of WebFlux, which finds principals only where a limit reads them.
            return null;
        }
    }

    /**
     * Keeps the changed members for {@link #send}; nothing if none has changed. To be called with the lock under which the
     * change was made, so that each report begins where the one before it ended.
     *
     * @param mask of the key whose own budget was changed; null if the limit itself was
     * @param before members and their values, as the endpoint writes them
     * @param after the same when the change is in force
     * @param author the name of the author of the change; null if it is not known
     * @param madeAt the time at which a change for all instances was made; null for one of this instance, made now, and if the backend has
     *     lost it
     */
    void add(
            String limit,
            @Nullable String mask,
            Map<String, Object> before,
            Map<String, Object> after,
            Scope scope,
            @Nullable String author,
            @Nullable Instant madeAt) {
        Set<String> changed = new LinkedHashSet<>(before.keySet());
        changed.addAll(after.keySet());
        changed.removeIf(member -> Objects.equals(before.get(member), after.get(member)));
        if (changed.isEmpty()) {
            return;
        }
        RateLimitChangedEvent event =
                new RateLimitChangedEvent(limit, mask, only(changed, before), only(changed, after), scope, author);
        String changes = changed.stream()
                .map(member -> member + " " + text(before.get(member)) + " -> " + text(after.get(member)))
                .collect(Collectors.joining(", "));
        String line = line(limit, mask, changes, scope, author, madeAt);
        waiting.add(() -> report(limit, event, line));
    }

    /**
     * Reports a reset on this thread, without the changes that wait: it belongs to no chain of them, and may be frequent.
     *
     * @param mask of the key; null for the calls without a key
     * @param author the name of the author of the reset; null if it is not known
     * @param made whether it surely was made: a backend that does not respond may have done it
     */
    void reset(String limit, @Nullable String mask, Scope scope, @Nullable String author, boolean made) {
        String what = made ? "reset" : "a reset failed, and may have been made";
        report(
                limit,
                new RateLimitResetEvent(limit, mask, scope, author),
                line(limit, mask, what, scope, author, null));
    }

    private static String line(
            String limit,
            @Nullable String mask,
            String what,
            Scope scope,
            @Nullable String author,
            @Nullable Instant madeAt) {
        return "Rate limit '" + limit + "'" + (mask == null ? "" : ", key " + mask) + ": " + what + " (scope "
                + PropertyText.of(scope)
                + (author == null ? "" : ", by " + LogText.escaped(author))
                + (madeAt == null ? "" : ", at " + madeAt.truncatedTo(ChronoUnit.SECONDS)) + ")";
    }

    /**
     * Reports the changes that wait for it, one after the other, each once; returns at once while another thread does. Not
     * to be called with a lock, since a listener may wait for another change.
     */
    void send() {
        while (!waiting.isEmpty() && !reporting.isHeldByCurrentThread() && reporting.tryLock()) {
            try {
                for (Runnable next = waiting.poll(); next != null; next = waiting.poll()) {
                    next.run();
                }
            } finally {
                reporting.unlock();
            }
        }
    }

    private void report(String limit, Object event, String line) {
        LOG.info(line);
        try {
            events.publishEvent(event);
        } catch (RuntimeException | Error ex) {
            LOG.warn("Rate limit '" + limit + "': a listener of the change or reset failed", ex);
        }
    }

    private static Map<String, Object> only(Set<String> members, Map<String, Object> values) {
        Map<String, Object> only = new LinkedHashMap<>(values);
        only.keySet().retainAll(members);
        return only;
    }

    private static String text(@Nullable Object value) {
        return value == null ? "unset" : value.toString();
    }

    /** The members of a limit that can change, as the endpoint writes them. */
    static Map<String, Object> members(ConfiguredLimit limit) {
        Map<String, Object> members = new LinkedHashMap<>();
        members.putAll(LimitProperty.terms(limit.limit()));
        ConfiguredLimit.Enforcement enforcement = limit.enforcement();
        members.put(LimitProperty.POLICY.label(), PropertyText.of(enforcement.policy()));
        if (enforcement.policy() == Policy.WAIT) {
            Duration maxWait = Duration.ofNanos(enforcement.maxWaitNanos());
            members.put(LimitProperty.MAX_WAIT.label(), PropertyText.of((Object) maxWait));
        }
        members.put(LimitProperty.MISSING_KEY.label(), PropertyText.of(enforcement.missingKey()));
        Object headers = limit.values().get(LimitProperty.HTTP_HEADERS);
        if (headers != null) {
            members.put(LimitProperty.HTTP_HEADERS.label(), PropertyText.of(headers));
        }
        new TreeMap<>(limit.tiers())
                .forEach((tier, ofTier) -> LimitProperty.terms(ofTier)
                        .forEach((name, value) ->
                                members.put(LimitProperty.TIERS.label() + "." + tier + "." + name, value)));
        return members;
    }
}
