package io.ratelimited.spring.internals.web;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.spring.fields.HeaderStyle;
import io.ratelimited.spring.fields.RateLimitHeaderWriter;
import io.ratelimited.spring.fields.RateLimitHeaderWriter.AppliedLimit;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * The limits that a response names, each once, with its last decision: {@code RateLimit-Policy} and {@code RateLimit} of
 * draft-ietf-httpapi-ratelimit-headers-10, which are Lists of RFC 9651, or the older {@code X-RateLimit} fields.
 * Thread-safe. Written for every decision: no streams, and one text a field.
 */
public final class LimitHeaders {

    /** In the order in which they came. */
    private final List<Entry> entries = new ArrayList<>(1);

    /** The names of the fields that are set, where a later decision may have others. */
    private Set<String> written = Set.of();

    /** A limit has decided; if nobody could, it only applies. */
    public synchronized void decided(Limit limit, Decision decision) {
        if (decision.source() == Decision.Source.UNAVAILABLE) {
            applies(limit);
            return;
        }
        QuotaPolicy policy = QuotaPolicy.of(limit);
        if (!policy.isShown()) {
            return;
        }
        Entry entry = find(limit.name());
        if (entry == null) {
            entries.add(new Entry(policy, decision));
        } else {
            entry.policy = policy;
            entry.decision = decision;
        }
    }

    /** A limit applies, but nothing more is known of it than before. */
    public synchronized void applies(Limit limit) {
        QuotaPolicy policy = QuotaPolicy.of(limit);
        if (policy.isShown() && find(limit.name()) == null) {
            entries.add(new Entry(policy, null));
        }
    }

    public synchronized boolean knows(String limit) {
        return find(limit) != null;
    }

    private @Nullable Entry find(String limit) {
        for (Entry entry : entries) {
            if (entry.policy.limit().name().equals(limit)) {
                return entry;
            }
        }
        return null;
    }

    /**
     * Sets the fields, and removes those of earlier decisions that they no longer have.
     *
     * @param setter takes name and value, and replaces the old value of the field, or removes the field if the new one is null:
     *     never if this is called once; where {@link Style#areLists} too, it may keep the field of another server
     */
    public synchronized void write(Style style, BiConsumer<String, @Nullable String> setter) {
        if (entries.isEmpty() || style.isNone()) {
            return;
        }
        if (style.areLists()) {
            writeStandard(style.ticker, setter);
            return;
        }
        Set<String> old = new TreeSet<>(String.CASE_INSENSITIVE_ORDER);
        old.addAll(written);
        Set<String> all = new TreeSet<>(old);
        written = all;
        BiConsumer<String, String> noting = (name, value) -> {
            old.remove(name);
            all.add(name);
            setter.accept(name, value);
        };
        if (style.writer == null) {
            writeLegacy(noting);
        } else {
            style.writer.write(told(), noting);
        }
        old.forEach(name -> setter.accept(name, null));
        all.removeAll(old);
    }

    /** Returns the name of a limit in {@code RateLimit}. */
    public static String nameOf(String limit) {
        return QuotaPolicy.string(limit);
    }

    private void writeStandard(Ticker ticker, BiConsumer<String, @Nullable String> setter) {
        String policies = null;
        String states = null;
        for (Entry entry : entries) {
            policies = append(policies, entry.policy.text(ticker));
            if (entry.decision != null) {
                states = append(states, state(entry, entry.decision));
            }
        }
        if (policies != null) {
            setter.accept("RateLimit-Policy", policies);
        }
        if (states != null) {
            setter.accept("RateLimit", states);
        }
    }

    private List<AppliedLimit> told() {
        return entries.stream()
                .map(entry -> new AppliedLimit(entry.policy.limit(), entry.decision))
                .toList();
    }

    private static String append(@Nullable String list, String item) {
        return list == null ? item : list + ", " + item;
    }

    private static String state(Entry entry, Decision decision) {
        long reset = reset(decision);
        return reset == 0
                ? entry.policy.name() + ";r=" + entry.remaining()
                : entry.policy.name() + ";r=" + entry.remaining() + ";t=" + reset;
    }

    /** One limit only: the one that refused for the longest time, else the one with the least remaining, else the one with the least quota. */
    private void writeLegacy(BiConsumer<String, String> setter) {
        Entry tightest = null;
        for (Entry entry : entries) {
            if (entry.decision != null && (tightest == null || entry.isTighterThan(tightest))) {
                tightest = entry;
            }
        }
        if (tightest == null || tightest.decision == null) {
            return;
        }
        setter.accept("X-RateLimit-Limit", String.valueOf(tightest.policy.quota()));
        setter.accept("X-RateLimit-Remaining", String.valueOf(tightest.remaining()));
        long reset = reset(tightest.decision);
        if (reset > 0) {
            setter.accept("X-RateLimit-Reset", String.valueOf(reset));
        }
    }

    /** The value of {@code Retry-After}: whole seconds, at least 1; null when admitted, for ever, or unknown. */
    public static @Nullable Long retryAfter(Decision decision) {
        Duration retryAfter = decision.retryAfter();
        return retryAfter == null || decision.never() ? null : Long.valueOf(retryAfterSeconds(retryAfter));
    }

    /** Whole seconds, rounded up and at least 1. */
    public static long retryAfterSeconds(Duration retryAfter) {
        return Math.max(1, QuotaPolicy.seconds(retryAfter));
    }

    /**
     * Seconds until the whole quota may go at once, after a refusal until the refused call may; never later than the
     * {@code Retry-After} of the same limit. 0, which the field leaves out, if that is at once or unknown.
     */
    private static long reset(Decision decision) {
        long whole = QuotaPolicy.seconds(decision.reset());
        Long refused = retryAfter(decision);
        return refused == null ? whole : Math.min(whole, refused);
    }

    /**
     * The style of the fields.
     *
     * @param headers which fields
     * @param ticker the time, by which a month has its length, and timeouts that servers lose pass
     * @param writer writes the standard fields instead of this class; null for draft 10
     */
    public record Style(
            HeaderStyle headers, Ticker ticker, @Nullable RateLimitHeaderWriter writer) {

        /** Draft 10 or the older fields. */
        public Style(HeaderStyle headers, Ticker ticker) {
            this(headers, ticker, null);
        }

        public boolean isNone() {
            return headers == HeaderStyle.NONE;
        }

        /** Returns whether the fields are those of draft 10, whose members may come from several servers. */
        public boolean areLists() {
            return headers == HeaderStyle.STANDARD && writer == null;
        }

        /** The names of the fields. */
        List<String> names() {
            return switch (headers) {
                case STANDARD -> writer == null ? List.of("RateLimit-Policy", "RateLimit") : writer.names();
                case LEGACY -> List.of("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset");
                case NONE -> List.of();
            };
        }
    }

    /** A limit and its last decision; null if it has not decided. */
    private static final class Entry {

        private QuotaPolicy policy;
        private @Nullable Decision decision;

        private Entry(QuotaPolicy policy, @Nullable Decision decision) {
            this.policy = policy;
            this.decision = decision;
        }

        private long remaining() {
            return decision == null ? 0 : Math.min(policy.quota(), decision.remaining());
        }

        private boolean isTighterThan(Entry other) {
            boolean admitted = decision != null && decision.admitted();
            boolean otherAdmitted = other.decision != null && other.decision.admitted();
            if (admitted != otherAdmitted) {
                return otherAdmitted;
            }
            if (!admitted && decision != null && other.decision != null) {
                return AllOf.decisive(new Decision[] {decision, other.decision}) == 0;
            }
            return remaining() != other.remaining()
                    ? remaining() < other.remaining()
                    : policy.quota() < other.policy.quota();
        }
    }
}
