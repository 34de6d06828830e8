package io.ratelimited.redis.simulation;

import io.ratelimited.core.Limit;
import io.ratelimited.redis.SharedRecords;
import io.ratelimited.redis.SimulatedBackend;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** Changes that nodes make for all, as an application does: what was acknowledged, and what each node has in the end. */
final class FleetRecords {

    private static final SharedRecords.Key LIMIT = new SharedRecords.Key("limit", null);
    private static final List<SharedRecords.Key> KEYS =
            List.of(LIMIT, new SharedRecords.Key("limit", "ann"), new SharedRecords.Key("limit", "bob"));

    private final Plan plan;
    /** The last version of each record that a node was told is written, and the node. */
    private final Map<SharedRecords.Key, Written> acknowledged = new HashMap<>();

    private final Map<SharedRecords.Key, List<Long>> versions = new HashMap<>();
    private final List<String> overwritten = new ArrayList<>();

    private record Written(long version, String text, Node node) {}

    FleetRecords(Plan plan) {
        this.plan = plan;
    }

    /** A node follows what others change. */
    void follow(Node node) {
        AtomicReference<Queue<SharedRecords.Change>> changes = new AtomicReference<>();
        changes.set(node.backend().records().follow(() -> take(node, changes.get())));
    }

    private void take(Node node, Queue<SharedRecords.Change> changes) {
        for (SharedRecords.Change next = changes.poll(); next != null; next = changes.poll()) {
            apply(node, next);
        }
    }

    private void apply(Node node, SharedRecords.Change change) {
        if (change.key().equals(LIMIT)) {
            Limit now = limit(change.entry().text());
            if (!now.equals(node.limiter().limit())) {
                node.limiter().update(now);
            }
        }
    }

    private Limit limit(String text) {
        return text.isEmpty() ? plan.limit() : plan.changed();
    }

    void change(Step step, Node node) {
        SharedRecords records = node.backend().records();
        SharedRecords.Key key = KEYS.get(step.key());
        SharedRecords.Entry known = records.find(key);
        String text = step.amount() % 2 == 0 ? "" : "changed " + step.amount();
        Duration lasting = key.equals(LIMIT) || step.amount() % 3 > 0 ? null : Duration.ofMillis(step.amount());
        long basedOn = known == null ? 0 : known.version();
        SimulatedBackend.write(records, key, basedOn, text, lasting).thenAccept(outcome -> {
            if (outcome == SharedRecords.Outcome.WRITTEN && !node.isDead()) {
                SharedRecords.Entry written = records.find(key);
                if (written == null) {
                    if (!text.isEmpty()) {
                        overwritten.add(node + " does not have " + key + " " + text + ", which it was told is written");
                    }
                    return; // or else there was nothing to remove
                }
                acknowledged.put(key, new Written(written.version(), written.text(), node));
                noteOverwritten(key, basedOn, written.version());
            }
        });
    }

    /** A write that was acknowledged and that the writer of the next one did not know. A server that loses data loses writes. */
    private void noteOverwritten(SharedRecords.Key key, long basedOn, long version) {
        List<Long> before = versions.computeIfAbsent(key, k -> new ArrayList<>());
        boolean unknown = before.stream().anyMatch(each -> basedOn < each && each < version);
        if (unknown && !plan.has(Step.Kind.RESTART_EMPTY) && !plan.has(Step.Kind.FAILOVER)) {
            overwritten.add(key + ": " + version + " is based on " + basedOn + " and has overwritten one of " + before);
        }
        before.add(version);
    }

    /** What differs between nodes, or was lost, when all is quiet. */
    void judge(List<Node> alive, List<String> violations) {
        violations.addAll(overwritten);
        for (SharedRecords.Key key : KEYS) {
            Written last = acknowledged.get(key);
            String common = null;
            for (Node node : alive) {
                SharedRecords.Entry entry = live(node, key);
                String has = entry == null ? "nothing" : entry.version() + " " + entry.text();
                if (common != null && !has.equals(common)) {
                    violations.add(node + " has " + has + " of " + key + ", but another " + common);
                }
                common = has;
                boolean survives = last != null && !last.node.isDead() && !last.text.isEmpty();
                if (survives && entry == null && key.equals(LIMIT) && !isReplaced(node, last)) {
                    violations.add(node + " has lost " + last.version + " " + last.text + " of " + key);
                }
                if (survives && entry != null && entry.version() < last.version) {
                    violations.add(node + " has " + has + " of " + key + ", which " + last.version + " has replaced");
                }
            }
        }
        for (Node node : alive) {
            SharedRecords.Entry entry = node.backend().records().find(LIMIT);
            Limit shared = limit(entry == null ? "" : entry.text());
            if (plan.has(Step.Kind.CHANGE_FOR_ALL) && !node.limiter().limit().equals(shared)) {
                violations.add(node + " applies " + node.limiter().limit() + " instead of " + shared);
            }
        }
    }

    /** A later write whose reply was lost may have taken the change of the limit back. */
    private static boolean isReplaced(Node node, Written last) {
        SharedRecords.Entry entry = node.backend().records().find(LIMIT);
        return entry != null && entry.version() > last.version;
    }

    /** Removed records and those that have ended are forgotten at different times. */
    private static SharedRecords.@Nullable Entry live(Node node, SharedRecords.Key key) {
        SharedRecords.Entry entry = node.backend().records().find(key);
        boolean over = entry == null || entry.text().isEmpty() || entry.endsAt() != null;
        return over ? null : entry;
    }
}
