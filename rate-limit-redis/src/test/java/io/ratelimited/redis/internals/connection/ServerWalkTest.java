package io.ratelimited.redis.internals.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.internals.connection.ScriptedServers.Link;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Walks through the states of a server that events lead to, and lets every event happen in each of them. After each event the
 * invariants V1 to V8 of {@link Server} hold, no connection is left open that nobody needs, and a server that is asked has a
 * connection, or is being connected.
 */
@Tag("once")
@Tag("slow")
class ServerWalkTest {

    private static final long TIMEOUT = ScriptedServers.TIMEOUT.toNanos();
    /** More connections than a state needs, and more attempts: so the states are finite. */
    private static final int MOST_OPEN = 2;

    private static final int MOST_ATTEMPTS = 2;

    private enum Event {
        CONNECTED,
        REFUSED,
        BROKEN,
        BROKEN_FIVE_TIMES,
        SILENT,
        HEARTBEAT_LATE,
        ERRORS,
        NO_PRIMARY,
        ANSWERED,
        LOOK,
        PROBE_ANSWERED,
        PROBE_ANSWERED_AND_BROKEN,
        PROBE_ANSWERED_LATE,
        PROBE_FAILED,
        PROBE_NOT_SENT,
        OTHER_PROBE_ANSWERED,
        OTHER_PROBE_ANSWERED_LATE,
        OTHER_PROBE_FAILED,
        CLOSED_PROBE_ANSWERED,
        CLOSED_PROBE_FAILED,
        TIMEOUT_PASSES,
        ATTEMPTS_END,
        RETIRED
    }

    @Test
    void theInvariantsHoldAfterEachEventInEachState() {
        Set<String> known = new HashSet<>(List.of(new World(false).state()));
        Map<Event, Integer> happened = new EnumMap<>(Event.class);
        Deque<List<Event>> walks = new ArrayDeque<>(List.of(List.of()));
        while (!walks.isEmpty()) {
            List<Event> walk = walks.remove();
            World world = World.after(walk);
            for (Event next : Event.values()) {
                if (world.mayHappen(next)) {
                    List<Event> longer = new ArrayList<>(walk);
                    longer.add(next);
                    world.happens(next, longer);
                    happened.merge(next, 1, Integer::sum);
                    if (known.add(world.state())) {
                        walks.add(longer);
                    }
                    world = World.after(walk);
                }
            }
        }
        assertThat(happened).containsOnlyKeys(Event.values());
        assertThat(known).contains(new World(true).state());
    }

    /** A server, what it is connected to, and what it has reported. */
    private static final class World implements Server.Owner {

        private final ManualTicker clock = new ManualTicker();
        private final ScriptedServers servers = new ScriptedServers("one:1");
        private final Server server =
                new Server("one:1", servers, new Threads(clock, Runnable::run, Runnable::run), TIMEOUT, this);
        /** What callers wait for, or have waited for. */
        private final Set<CompletableFuture<RedisLink>> waiters = new HashSet<>();
        /** The times at which connections went out of use that had not broken. */
        private final IdentityHashMap<Link, Long> unused = new IdentityHashMap<>();

        private final Set<Link> broken = new HashSet<>();
        private int away;
        private int back;
        /** What was reported and must not have been. */
        private final List<String> wrong = new ArrayList<>();

        private boolean everUsed;
        private boolean retired;
        private boolean breaksWhenBack;
        private long usedSince;
        /** Whether another connection may help, by the last failure. */
        private boolean needsAnother;

        private World(boolean takesOver) {
            servers.holdingAttempts = true;
            if (takesOver) {
                server.takeOver();
            }
            server.connect();
            waiters.add(server.ready());
        }

        private static World after(List<Event> walk) {
            World world = new World(false);
            walk.forEach(event -> world.happens(event, walk));
            return world;
        }

        private @Nullable Link link() {
            return (Link) server.link();
        }

        private boolean isOpen(Link link) {
            return !link.closed && !broken.contains(link);
        }

        private @Nullable Link probed(boolean inUse, boolean open) {
            return servers.links.stream()
                    .filter(link -> !link.probes.isEmpty() && (link == link()) == inUse && isOpen(link) == open)
                    .findFirst()
                    .orElse(null);
        }

        private boolean mayHappen(Event event) {
            return switch (event) {
                case CONNECTED ->
                    !servers.attempts.isEmpty()
                            && servers.links.stream().filter(this::isOpen).count() < MOST_OPEN;
                case REFUSED -> !servers.attempts.isEmpty();
                case LOOK -> servers.attempts.size() < MOST_ATTEMPTS;
                case BROKEN -> link() != null;
                case BROKEN_FIVE_TIMES -> link() != null && !server.isAway() && servers.attempts.isEmpty();
                case ANSWERED -> link() != null && !server.isAway();
                case PROBE_ANSWERED, PROBE_ANSWERED_AND_BROKEN, PROBE_ANSWERED_LATE, PROBE_FAILED, PROBE_NOT_SENT ->
                    probed(true, true) != null;
                case OTHER_PROBE_ANSWERED, OTHER_PROBE_ANSWERED_LATE, OTHER_PROBE_FAILED -> probed(false, true) != null;
                case CLOSED_PROBE_ANSWERED, CLOSED_PROBE_FAILED -> probed(false, false) != null;
                case RETIRED -> !retired;
                case SILENT, HEARTBEAT_LATE, ERRORS, NO_PRIMARY, TIMEOUT_PASSES, ATTEMPTS_END -> true;
            };
        }

        private void happens(Event event, List<Event> walk) {
            boolean wasAway = server.isAway();
            boolean wasOut = server.isOut();
            Link before = link();
            int awayBefore = away;
            int backBefore = back;
            int attemptsBefore = servers.attempts.size();
            boolean wasSilent = probed(true, true) != null;
            Link made = take(event);
            Link now = link();
            Supplier<String> at = () -> walk + " " + state();

            assertThat(wrong).as(at).isEmpty();
            boolean opened = !wasOut && server.isOut();
            assertThat(away - awayBefore).as(() -> "V3 " + at.get()).isEqualTo(opened && !retired ? 1 : 0);
            boolean closed = wasAway && !server.isAway();
            assertThat(back - backBefore).as(() -> "V4 " + at.get()).isEqualTo(closed ? 1 : 0);
            if (closed) {
                assertThat(event.name())
                        .as(() -> "V4 " + at.get())
                        .contains("PROBE_ANSWERED")
                        .doesNotContain("LATE");
            }
            if (before != null && now != null && before != now) {
                assertThat(wasAway).as(() -> "V1 " + at.get()).isTrue();
            }
            if (made != null && (retired || (before != null && !wasAway))) {
                assertThat(made.closed && now == before)
                        .as(() -> "V1, V8 " + at.get())
                        .isTrue();
            }
            if (event == Event.CLOSED_PROBE_ANSWERED || event == Event.CLOSED_PROBE_FAILED) {
                assertThat(now).as(() -> "V5 " + at.get()).isSameAs(before);
                assertThat(server.isAway()).as(() -> "V5 " + at.get()).isEqualTo(wasAway);
            }
            if (event == Event.LOOK && !retired && (wasAway || (before == null && everUsed))) {
                assertThat(
                                (before == null || wasSilent)
                                        ? servers.attempts.size() > attemptsBefore
                                        : probed(true, true) != null)
                        .as(() -> "V6 " + at.get())
                        .isTrue();
            }
            if (before != null && now != before && !broken.contains(before)) {
                unused.put(before, clock.nanos());
            }
            if (now != null && now != before) {
                usedSince = clock.nanos();
            }
            everUsed |= now != null;
            waiters.add(server.ready());
            assertThat(waiters)
                    .as(() -> "V2 " + at.get())
                    .allMatch(waiter -> waiter == server.ready() || waiter.isDone());
            if (event.name().startsWith("OTHER_PROBE")) {
                unused.keySet().removeIf(link -> link.closed);
            }
            unused.remove(now);
            unused.forEach((link, since) ->
                    assertThat(link.closed).as(() -> "V7 " + at.get()).isEqualTo(clock.nanos() - since >= TIMEOUT));
            assertThat(servers.links).as(() -> "V5 " + at.get()).allMatch(link -> link.probes.size() <= 1);
            assertThat(servers.links)
                    .as(() -> "open for nobody " + at.get())
                    .allMatch(
                            link -> !isOpen(link) || link == now || !link.probes.isEmpty() || unused.containsKey(link));
            if (retired) {
                assertThat(now).as(() -> "V8 " + at.get()).isNull();
                assertThat(server.ready()).as(() -> "V2 " + at.get()).isCompletedExceptionally();
            } else if (!server.isAway() && now == null) {
                assertThat(servers.attempts)
                        .as(() -> "being connected " + at.get())
                        .isNotEmpty();
            }
        }

        private @Nullable Link take(Event event) {
            switch (event) {
                case CONNECTED -> {
                    return servers.accept();
                }
                case REFUSED -> {
                    needsAnother = false;
                    servers.attempts.remove().completeExceptionally(new IOException("refused"));
                }
                case BROKEN -> breakOff(link());
                case BROKEN_FIVE_TIMES -> {
                    for (int i = 0; i < 5 && !server.isAway(); i++) {
                        breakOff(link() == null ? servers.accept() : link());
                    }
                }
                case SILENT -> {
                    long sentAt = clock.nanos();
                    clock.advance(ScriptedServers.TIMEOUT);
                    needsAnother = true;
                    server.failed("key", sentAt, new TimeoutException(), true);
                }
                case HEARTBEAT_LATE -> {
                    long sentAt = clock.nanos();
                    clock.advance(ScriptedServers.TIMEOUT);
                    needsAnother = true;
                    server.failed("key", sentAt, new TimeoutException(), false);
                }
                case ERRORS -> fail("ERR");
                case NO_PRIMARY -> fail("READONLY You can't write against a read only replica.");
                case ANSWERED -> {
                    for (int i = 0; i < 20; i++) {
                        server.answered();
                    }
                }
                case LOOK -> server.look();
                case PROBE_ANSWERED -> answer(probed(true, true));
                case PROBE_ANSWERED_AND_BROKEN -> {
                    breaksWhenBack = true;
                    answer(probed(true, true));
                    breaksWhenBack = false;
                }
                case PROBE_ANSWERED_LATE -> {
                    Link asked = probed(true, true);
                    clock.advanceNanos(TIMEOUT + 1);
                    answer(asked);
                }
                case PROBE_FAILED -> fail(probed(true, true), new IOException("error"));
                case PROBE_NOT_SENT -> fail(probed(true, true), Replies.notSent("no time"));
                case OTHER_PROBE_ANSWERED -> answer(probed(false, true));
                case OTHER_PROBE_ANSWERED_LATE -> {
                    Link asked = probed(false, true);
                    clock.advanceNanos(TIMEOUT + 1);
                    answer(asked);
                }
                case OTHER_PROBE_FAILED -> fail(probed(false, true), new IOException("error"));
                case CLOSED_PROBE_ANSWERED -> answer(probed(false, false));
                case CLOSED_PROBE_FAILED ->
                    probed(false, false).probes.remove().completeExceptionally(new IOException("closed"));
                case TIMEOUT_PASSES -> clock.advance(ScriptedServers.TIMEOUT);
                case ATTEMPTS_END -> {
                    clock.advance(Duration.ofSeconds(10));
                    servers.attempts.clear();
                }
                case RETIRED -> {
                    retired = true;
                    server.retire();
                }
            }
            return null;
        }

        private void breakOff(Link link) {
            broken.add(link);
            link.breakOff();
            for (int i = 0; i < 10; i++) {
                server.failedBy(link);
            }
        }

        private void fail(String error) {
            needsAnother = error.startsWith("READONLY");
            for (int i = 0; i < 5; i++) {
                server.failed("key", clock.nanos(), new IllegalStateException(error), true);
            }
        }

        private static void answer(Link asked) {
            asked.probes.remove().complete(List.of(1L));
        }

        private void fail(Link asked, Throwable reason) {
            needsAnother = Replies.isNotSent(reason);
            asked.probes.remove().completeExceptionally(reason);
        }

        /** What the next events can depend on. */
        private String state() {
            CompletableFuture<RedisLink> ready = server.ready();
            List<String> links = servers.links.stream()
                    .filter(link -> isOpen(link) || !link.probes.isEmpty())
                    .map(link -> !isOpen(link)
                            ? "closed"
                            : (link == link() ? "used" : "open")
                                    + (link.probes.isEmpty() ? "" : " probed")
                                    + (unused.containsKey(link) ? " before" : ""))
                    .distinct()
                    .sorted()
                    .toList();
            return (ready.isDone() ? ready.isCompletedExceptionally() ? "missing" : "there" : "being made")
                    + (everUsed ? ", used" : "") + (server.isOut() ? ", out" : server.isAway() ? ", away" : "")
                    + (retired ? ", retired" : "") + ", attempts "
                    + servers.attempts.size() + ", " + links + ", "
                    + (clock.nanos() - usedSince >= 1_000_000_000L) + ", " + needsAnother;
        }

        @Override
        public CompletionStage<List<Object>> probe(RedisLink link, @Nullable String key) {
            return link.eval(Script.PROBE, new String[] {"probe"}, new ScriptArguments(), false);
        }

        @Override
        public void connected() {
            wrong.add("not reported by a server");
        }

        @Override
        public void reconnected() {
            require("V1", server.link() != null && !server.isAway());
        }

        @Override
        public void away(Throwable reason) {
            away++;
            require("V3", server.isAway() && !retired);
        }

        @Override
        public void stillAway(Throwable reason) {
            require("V3", server.isAway());
        }

        @Override
        public void answers(Server answering) {
            back++;
            require("V4: some commands come first", server.isAway());
            require("V8", !retired);
            if (breaksWhenBack) {
                breakOff(link());
            }
            answering.readmit();
        }

        /** Does not throw, since a failure of a callback would not be seen. */
        private void require(String invariant, boolean holds) {
            if (!holds) {
                wrong.add(invariant);
            }
        }
    }
}
