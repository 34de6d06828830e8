package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimitChangedEvent;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.UnreportedChanges;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.backend.SharedChanges;
import io.ratelimited.spring.internals.text.KeyMask;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.context.PayloadApplicationEvent;
import org.springframework.security.authentication.TestingAuthenticationToken;
import org.springframework.security.core.context.SecurityContextHolder;

/** Changes that several threads and instances make at the same time. */
@ExtendWith(CapturedLog.Capture.class)
@Tag("slow")
class ChangeRacesTest {

    private static final Instant MADE_AT = Instant.parse("2026-11-27T06:42:00Z");

    private final Fleet fleet = new Fleet();
    private final Node a = new Node(fleet);
    private final Node b = new Node(fleet);

    @Test
    void ofTwoPeopleWhoWriteTheSameWhoWasFirstIsReported() {
        run(() -> {
            a.beforeWrite = author -> {
                a.beforeWrite = next -> {};
                Thread ann = new Thread(() -> as("ann", () -> burst(a, 77)));
                ann.start();
                join(ann);
            };
            as("bob", () -> burst(a, 77));

            assertThat(a.reported).extracting(ChangeRacesTest::text).containsExactly("{burst=10} -> {burst=77} by ann");
        });
    }

    @Test
    void aChangeThatAnotherInstanceReplacesAtOnceIsReportedOnBothAsAChain() {
        run(() -> {
            a.afterWrite = author -> {
                a.afterWrite = next -> {};
                as("bob", () -> burst(b, 88));
            };
            as("ann", () -> burst(a, 77));

            assertThat(a.reported)
                    .extracting(ChangeRacesTest::text)
                    .containsExactly("{burst=10} -> {burst=77} by ann", "{burst=77} -> {burst=88} by bob");
            assertThat(b.reported)
                    .extracting(ChangeRacesTest::text)
                    .containsExactly("{burst=10} -> {burst=77} by ann", "{burst=77} -> {burst=88} by bob");
            assertThat(a.limits.limit("search").limit().burst()).isEqualTo(88);
        });
    }

    @Test
    void aBudgetThatAnotherInstanceReplacesAtOnceIsReportedAsItWasGiven() {
        run(() -> {
            a.afterWrite = author -> {
                a.afterWrite = next -> {};
                as("bob", () -> b.limits.override("search", "zoe", LimitChange.rate("2/s"), null));
            };
            as("ann", () -> a.limits.override("search", "zoe", LimitChange.rate("1/s"), null));

            assertThat(a.reported)
                    .extracting(ChangeRacesTest::text)
                    .containsExactly("{} -> {rate=1/s} by ann", "{rate=1/s} -> {rate=2/s} by bob");
            assertThat(b.reported)
                    .extracting(ChangeRacesTest::text)
                    .containsExactly("{} -> {rate=1/s} by ann", "{rate=1/s} -> {rate=2/s} by bob");
            assertThat(((ConfiguredLimit) a.limits.limit("search")).ownBudget("zoe"))
                    .containsEntry("rate", "2/s");
        });
    }

    @Test
    void budgetsThatOtherInstancesGiveAndTakeAreReportedAsAChainUnderTheMaskOfTheirKey() {
        fleet.put("search", CanonicalKey.digest("old"), "rate=9/s", null);
        run(() -> {
            as("bob", () -> {
                b.limits.override("search", "zoe", LimitChange.rate("1/s"), null);
                b.limits.override("search", "zoe", LimitChange.rate("2/s"), null);
                b.limits.removeOverride("search", "zoe");
                b.limits.override("search", "old", LimitChange.rate("8/s"), null);
            });
            assertThat(a.reported)
                    .extracting(ChangeRacesTest::text)
                    .containsExactly(
                            "{} -> {rate=1/s} by bob",
                            "{rate=1/s} -> {rate=2/s} by bob",
                            "{rate=2/s} -> {} by bob",
                            "{rate=9/s} -> {rate=8/s} by bob");
            assertThat(a.reported)
                    .extracting(RateLimitChangedEvent::key)
                    .startsWith(KeyMask.mask("zoe"))
                    .endsWith(KeyMask.mask("old"));
            assertThat(a.reported)
                    .extracting(RateLimitChangedEvent::key)
                    .isEqualTo(
                            b.reported.stream().map(RateLimitChangedEvent::key).toList());
        });
    }

    /** As when its answer is late. */
    @Test
    void aWriteThatIsNotAnsweredAndInForceAllTheSameIsReportedInTheNameOfItsAuthor() {
        run(() -> {
            a.afterWrite = author -> {
                throw new IllegalStateException("no answer");
            };
            as("ann", () -> assertThatThrownBy(() -> burst(a, 77)).hasMessage("no answer"));
            as(
                    "ann",
                    () -> assertThatThrownBy(() -> a.limits.override("search", "zoe", LimitChange.rate("1/s"), null))
                            .hasMessage("no answer"));
            a.afterWrite = author -> {};
            as("bob", () -> burst(b, 78));
            as("bob", () -> burst(b, 77));

            assertThat(a.reported)
                    .extracting(ChangeRacesTest::text)
                    .containsExactly(
                            "{burst=10} -> {burst=77} by ann",
                            "{} -> {rate=1/s} by ann",
                            "{burst=77} -> {burst=78} by bob",
                            "{burst=78} -> {burst=77} by bob");
        });
    }

    @Test
    void aChangeOfAnotherInstanceIsNotReportedInTheNameOfWhoeverGotNoAnswer() {
        run(() -> {
            a.beforeWrite = author -> {
                throw new IllegalStateException("not sent");
            };
            as("ann", () -> assertThatThrownBy(() -> burst(a, 77)).hasMessage("not sent"));
            as("bob", () -> burst(b, 78));
            as("bob", () -> burst(b, 77));

            assertThat(a.reported)
                    .extracting(ChangeRacesTest::text)
                    .containsExactly("{burst=10} -> {burst=78} by bob", "{burst=78} -> {burst=77} by bob");
        });
    }

    @Test
    void aChangeIsReportedWhenTheListenersOfTheOneBeforeItHaveReturned() {
        List<String> returned = new CopyOnWriteArrayList<>();
        a.onReport = event -> {
            if (returned.isEmpty() && event.after().containsValue(77L)) {
                CompletableFuture.runAsync(() -> burst(a, 88))
                        .orTimeout(20, TimeUnit.SECONDS)
                        .join();
            }
            returned.add(text(event));
        };
        run(() -> {
            burst(a, 77);

            assertThat(returned)
                    .containsExactly("{burst=10} -> {burst=77} by null", "{burst=77} -> {burst=88} by null");
        });
    }

    @Test
    void eachChangeOfManyThreadsOnTwoInstancesIsReportedOnceOnBothByItsAuthorAndAllOfThemAreAChain() {
        run(() -> {
            AtomicInteger bursts = new AtomicInteger(100);
            Map<String, String> authors = new ConcurrentHashMap<>();
            CountDownLatch gate = new CountDownLatch(1);
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                Node node = i % 2 == 0 ? a : b;
                String name = (node == a ? "a" : "b") + i;
                threads.add(new Thread(() -> as(name, () -> {
                    await(gate);
                    for (int change = 0; change < 50; change++) {
                        int burst = bursts.incrementAndGet();
                        burst(node, burst);
                        authors.put("{burst=" + burst + "}", name);
                    }
                })));
            }
            threads.forEach(Thread::start);
            gate.countDown();
            threads.forEach(ChangeRacesTest::join);

            assertThat(authors).hasSize(200);
            for (Node node : List.of(a, b)) {
                Object before = Map.of("burst", 10L);
                for (RateLimitChangedEvent event : node.reported) {
                    assertThat(event.before()).isEqualTo(before);
                    before = event.after();
                }
                assertThat(before)
                        .isEqualTo(Map.of(
                                "burst", node.limits.limit("search").limit().burst()));
                assertThat(node.reported).hasSize(200);
                authors.forEach((after, name) -> assertThat(node.reported)
                        .filteredOn(event -> event.after().toString().equals(after))
                        .extracting(RateLimitChangedEvent::principal)
                        .containsExactly(name));
            }
        });
    }

    @Test
    @ExtendWith(UnreportedChanges.class)
    void budgetsThatAChangeOfTheirLimitDoesNotSuitAreOneWarning(CapturedLog output) {
        ContextRunner.limited(new ManualTicker())
                .withPropertyValues("rate-limit.limits.search.rate=10/s")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    for (int i = 1; i <= 1_000; i++) {
                        limits.override(
                                "search", "k" + i, LimitChange.rate(i + "/h").burst(5), null);
                    }
                    LimitChange window = LimitChange.of("algorithm", "fixed-window");
                    limits.change("search", window);
                    limits.change("search", LimitChange.rate("11/s"));

                    assertThat(output)
                            .containsOnlyOnce("cannot apply the overrides of 1000 callers (masked:")
                            .containsOnlyOnce("cannot apply the overrides");
                    limits.removeOverride("search", "k7");
                    limits.change("search", LimitChange.rate("12/s"));
                    limits.change("search", LimitChange.rate("13/s"));
                    assertThat(output.toString().split("cannot apply the overrides", -1))
                            .hasSizeLessThanOrEqualTo(3);
                });
    }

    @Test
    @ExtendWith(UnreportedChanges.class)
    void budgetsThatAnInstanceCannotApplyAtItsStartAreOneWarning(CapturedLog output) {
        for (int i = 0; i < 1_000; i++) {
            fleet.put("search", CanonicalKey.digest("k" + i), "tier=platinum", null);
        }
        run(() -> {
            assertThat(output)
                    .contains("cannot apply the overrides of 1000 callers (masked:")
                    .contains("there is no tier 'platinum'");
            // One of each instance.
            assertThat(output.toString().split("cannot apply the overrides", -1))
                    .hasSize(3);
            for (int i = 0; i < 1_000; i++) {
                fleet.change("search", CanonicalKey.digest("k" + i), "tier=palladium");
            }
            assertThat(output.toString().split("cannot apply the overrides", -1))
                    .hasSize(3);
        });
    }

    @Test
    void aWarningOfACallerMasksItAsEveryOtherPlaceDoes(CapturedLog output) {
        fleet.put("search", CanonicalKey.digest("ann"), "tier=platinum", null);
        run(() -> assertThat(output).contains("overrides of 1 callers (" + KeyMask.mask("ann") + ")"));
    }

    private static void burst(Node node, long burst) {
        node.limits.change("search", LimitChange.of("burst", String.valueOf(burst)));
    }

    private static String text(RateLimitChangedEvent event) {
        return event.before() + " -> " + event.after() + " by " + event.principal();
    }

    private static void as(String name, Runnable change) {
        var before = SecurityContextHolder.getContext();
        SecurityContextHolder.setContext(SecurityContextHolder.createEmptyContext());
        SecurityContextHolder.getContext().setAuthentication(new TestingAuthenticationToken(name, null));
        try {
            change.run();
        } finally {
            SecurityContextHolder.setContext(before);
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            assertThat(latch.await(20, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException ex) {
            throw new IllegalStateException(ex);
        }
    }

    private static void join(Thread thread) {
        try {
            thread.join(60_000);
        } catch (InterruptedException ex) {
            throw new IllegalStateException(ex);
        }
        assertThat(thread.isAlive()).isFalse();
    }

    private void run(Runnable test) {
        a.run(() -> b.run(test));
    }

    /** What all instances share: a record each, which only a write that has seen it replaces. */
    private static final class Fleet {

        private final Map<String, SharedChanges.Change> records = new ConcurrentHashMap<>();
        private final List<Queue<SharedChanges.Change>> untaken = new CopyOnWriteArrayList<>();
        private final List<Runnable> listeners = new CopyOnWriteArrayList<>();
        private long version;

        synchronized boolean replace(
                String limit, @Nullable String caller, long basedOn, String text, @Nullable String author) {
            SharedChanges.Change known = records.get(limit + "/" + caller);
            if ((known == null ? 0 : known.version()) != basedOn) {
                return false;
            }
            put(limit, caller, text, author);
            return true;
        }

        synchronized void put(String limit, @Nullable String caller, String text, @Nullable String author) {
            SharedChanges.Change change =
                    new SharedChanges.Change(limit, caller, ++version, text, null, author, MADE_AT);
            records.put(limit + "/" + caller, change);
            untaken.forEach(queue -> queue.add(change));
        }

        void change(String limit, @Nullable String caller, String text) {
            put(limit, caller, text, null);
            tell();
        }

        void tell() {
            listeners.forEach(Runnable::run);
        }
    }

    /** An instance of the application. */
    private static final class Node implements LimiterFactory, SharedChanges {

        private final Fleet fleet;
        private final List<RateLimitChangedEvent> reported = new CopyOnWriteArrayList<>();
        private Consumer<String> beforeWrite = author -> {};
        private Consumer<String> afterWrite = author -> {};
        private Consumer<RateLimitChangedEvent> onReport = event -> {};
        private TestLimits limits;

        private Node(Fleet fleet) {
            this.fleet = fleet;
        }

        private void run(Runnable test) {
            ContextRunner.limited(new ManualTicker())
                    .withPropertyValues("rate-limit.backend=fleet", "rate-limit.limits.search.rate=10/s")
                    .withBean(LimiterFactory.class, () -> this)
                    .withInitializer(context -> context.addApplicationListener(event -> {
                        if (event instanceof PayloadApplicationEvent<?> told
                                && told.getPayload() instanceof RateLimitChangedEvent change) {
                            reported.add(change);
                            onReport.accept(change);
                        }
                    }))
                    .run(context -> {
                        limits = TestLimits.of(context);
                        limits.limit("search");
                        test.run();
                    });
        }

        @Override
        public String backend() {
            return "fleet";
        }

        @Override
        public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
            return new InMemoryRateLimiter(limit);
        }

        @Override
        public SharedChanges sharedChanges() {
            return this;
        }

        @Override
        public @Nullable Change find(String limit, @Nullable String caller) {
            return fleet.records.get(limit + "/" + caller);
        }

        @Override
        public Collection<String> callers(String limit) {
            return fleet.records.keySet().stream()
                    .map(key -> key.substring(limit.length() + 1))
                    .filter(caller -> !caller.equals("null"))
                    .toList();
        }

        @Override
        public Written write(
                String limit,
                @Nullable String caller,
                long basedOn,
                String text,
                @Nullable Duration lasting,
                @Nullable String author,
                int maximumCallers) {
            beforeWrite.accept(String.valueOf(author));
            if (!fleet.replace(limit, caller, basedOn, text, author)) {
                return Written.OUTDATED;
            }
            fleet.tell();
            afterWrite.accept(String.valueOf(author));
            return Written.DONE;
        }

        @Override
        public Supplier<@Nullable Change> follow(Runnable told) {
            Queue<Change> changes = new ConcurrentLinkedQueue<>();
            fleet.untaken.add(changes);
            fleet.listeners.add(told);
            return changes::poll;
        }
    }
}
