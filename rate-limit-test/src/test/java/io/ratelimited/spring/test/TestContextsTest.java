package io.ratelimited.spring.test;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.overload.FoundLimitChange;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimitBlockedEvent;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import io.ratelimited.spring.internals.limit.LimitCandidates;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import java.lang.reflect.Method;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.ApplicationRunner;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.PayloadApplicationEvent;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Lazy;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.ContextConfiguration;
import org.springframework.test.context.ContextHierarchy;
import org.springframework.test.context.TestContextManager;
import org.springframework.test.context.junit.jupiter.SpringJUnitConfig;

/** Which tests share a context, and how those that do come one after the other. */
@Tag("slow")
class TestContextsTest {

    @SpringBootTest(classes = Shop.class, webEnvironment = SpringBootTest.WebEnvironment.NONE)
    abstract static class OfTheShop {

        void test() {}
    }

    @AutoConfigureRateLimits
    static class Limited extends OfTheShop {}

    @AutoConfigureRateLimits
    static class LimitedToo extends OfTheShop {}

    @AutoConfigureRateLimits(enabled = false)
    static class Off extends OfTheShop {}

    static class Plain extends OfTheShop {}

    @AutoConfigureRateLimits
    @Import(Evening.Time.class)
    static class Evening extends OfTheShop {

        @TestConfiguration
        static class Time {

            @Bean
            ManualTicker evening() {
                return new ManualTicker(0, Instant.parse("2026-03-01T23:59:59Z"));
            }
        }
    }

    @AutoConfigureRateLimits
    @SpringJUnitConfig(Reports.class)
    static class WithReports {

        void test() {}
    }

    static class Reports {

        @RateLimited(name = "reports", algorithm = Algorithm.ADAPTIVE, maxConcurrent = 100)
        public void build() {}
    }

    @AutoConfigureRateLimits
    @SpringJUnitConfig(Shop.Login.class)
    static class WithoutBoot {

        void test() {}
    }

    @AutoConfigureRateLimits
    static class Dirty extends OfTheShop {

        @Override
        @DirtiesContext
        void test() {}
    }

    @SpringBootTest(
            classes = {Shop.class, AtStartup.class},
            webEnvironment = SpringBootTest.WebEnvironment.NONE,
            properties = {
                "rate-limit.limits.login.candidates=2/m, 9/m",
                "rate-limit.limits.daily.candidates=auto",
                "rate-limit.limits.daily.candidates-for=30d"
            })
    @AutoConfigureRateLimits
    static class WithCandidates {

        void test() {}
    }

    static class AtStartup {

        @Bean
        ApplicationRunner override(RateLimitOperations operations) {
            return args -> operations.override("login", "ann", LimitChange.rate("7/m"), Duration.ofHours(12));
        }
    }

    @ContextHierarchy({@ContextConfiguration(classes = Shop.class), @ContextConfiguration(classes = Branch.class)})
    @SpringBootTest(webEnvironment = SpringBootTest.WebEnvironment.NONE)
    @AutoConfigureRateLimits
    static class OfTheBranch {

        void test() {}
    }

    @SpringBootTest(
            classes = {Shop.class, Branch.class},
            webEnvironment = SpringBootTest.WebEnvironment.NONE,
            properties = "rate-limit.limits.completed.rate=3/m")
    @AutoConfigureRateLimits
    static class WithCellar {

        void test() {}
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Branch {

        @Bean
        Counter counter() {
            return new Counter();
        }

        /** The definition hides the annotations: the limits are first known when the bean is created. */
        @Bean
        @Lazy
        Supplier<String> cellar() {
            return new Cellar();
        }
    }

    static class Counter {

        @RateLimited(name = "counter", rate = "1/m")
        public void serve() {}
    }

    static class Cellar implements Supplier<String> {

        @Override
        @RateLimited(name = "cellar", rate = "5/m")
        @RateLimited(name = "completed", burst = 7)
        public String get() {
            return "wine";
        }
    }

    private static ApplicationContext context(Class<?> test) {
        return new TestContextManager(test).getTestContext().getApplicationContext();
    }

    @Test
    void testsShareAContextOnlyIfTheyAskForTheSame() {
        ApplicationContext limited = context(Limited.class);
        assertThat(context(LimitedToo.class)).isSameAs(limited);
        assertThat(List.of(limited, context(Off.class), context(Plain.class), context(Evening.class)))
                .doesNotHaveDuplicates();
    }

    @Test
    void withoutTheAnnotationTimeIsThatOfTheSystem() {
        assertThat(context(Plain.class).getBean(Ticker.class)).isSameAs(Ticker.system());
    }

    @Test
    void offMeansThatEveryCallGoes() throws Exception {
        ApplicationContext off = context(Off.class);
        assertThat(off.getBeanProvider(ManualTicker.class).getIfAvailable()).isNull();
        assertThat(off.getBean(RateLimits.class).tryAcquire("unknown", null)).isTrue();
        assertThatCode(() -> {
                    for (int i = 0; i < 10; i++) {
                        off.getBean(Shop.Login.class).attempt("ann");
                    }
                })
                .doesNotThrowAnyException();
        Run test = new Run(Off.class);
        test.begin();
        test.end();
    }

    @Test
    void theTickerOfATestConfigurationIsUsed() throws Exception {
        ManualTicker evening = context(Evening.class).getBean(ManualTicker.class);
        assertThat(context(Evening.class).getBean(Ticker.class)).isSameAs(evening);
        Run test = new Run(Evening.class);
        test.begin();
        evening.setWallClock(Instant.EPOCH);
        test.end();
        assertThat(evening.epochNanos())
                .isEqualTo(Instant.parse("2026-03-01T23:59:59Z").getEpochSecond() * 1_000_000_000L);
    }

    @Test
    void aPlainSpringTestIsLimitedToo() throws Exception {
        Run test = new Run(WithoutBoot.class);
        test.begin();
        Shop.Login login = context(WithoutBoot.class).getBean(Shop.Login.class);
        for (int i = 0; i < 5; i++) {
            login.attempt("ann");
        }
        RateLimitAssertions.assertThatCall(() -> login.attempt("ann")).isRateLimited();
        test.end();
    }

    @Test
    void eachTestFindsNobodyBlockedAndIsToldOfEachBlock() throws Exception {
        List<RateLimitBlockedEvent> events = new CopyOnWriteArrayList<>();
        ConfigurableApplicationContext context = (ConfigurableApplicationContext) context(Limited.class);
        context.addApplicationListener(
                (PayloadApplicationEvent<RateLimitBlockedEvent> event) -> events.add(event.getPayload()));
        Shop.Login login = context.getBean(Shop.Login.class);
        for (int i = 1; i <= 3; i++) {
            Run test = new Run(Limited.class);
            test.begin();
            login.knock("ann");
            RateLimitAssertions.assertThatCall(() -> login.knock("ann")).isRateLimited();
            DecisionAssertions.assertThat(context.getBean(RateLimits.class).peek("door", "ann"))
                    .isBlocked()
                    .retryAfter(Duration.ofMinutes(10));
            assertThat(events).hasSize(i).allMatch(event -> event.level() == 1);
            test.end();
        }
    }

    @Test
    void eachTestIsToldOfEachChangeOfAnAdaptiveLimit() throws Exception {
        ApplicationContext context = context(WithReports.class);
        for (int i = 1; i <= 3; i++) {
            Run test = new Run(WithReports.class);
            test.begin();
            context.getBean(Reports.class).build();
            ConfiguredLimit limit = context.getBean(LimitRegistry.class).get("reports");
            int before = limit.lastChanges().size();
            context.getBean(RateLimitOperations.class).change("reports", LimitChange.of("max-concurrent", "90"));
            assertThat(limit.lastChanges()).hasSize(before + 1);
            assertThat(limit.lastChanges().get(0).change().reason()).isEqualTo(FoundLimitChange.Reason.BOUNDS);
            test.end();
        }
    }

    @Test
    void limitsOfAChildContextAreFreshToo() throws Exception {
        for (int i = 0; i < 3; i++) {
            Run test = new Run(OfTheBranch.class);
            test.begin();
            ApplicationContext child = context(OfTheBranch.class);
            Counter counter = child.getBean(Counter.class);
            counter.serve();
            RateLimitAssertions.assertThatCall(counter::serve).isRateLimited().by("counter");
            Shop.Login login = child.getBean(Shop.Login.class);
            login.daily();
            RateLimitAssertions.assertThatCall(login::daily).isRateLimited().by("daily");
            test.end();
        }
    }

    @Test
    @SuppressWarnings("unchecked")
    void aLimitThatIsFirstKnownInATestIsAsConfiguredInTheNext() throws Exception {
        for (int i = 0; i < 3; i++) {
            Run test = new Run(WithCellar.class);
            test.begin();
            ApplicationContext context = context(WithCellar.class);
            Supplier<String> cellar = context.getBean("cellar", Supplier.class);
            assertThat(cellar.get()).isEqualTo("wine");
            RateLimitOperations operations = context.getBean(RateLimitOperations.class);
            assertThat(operations.limit("cellar").limit().rate()).hasToString("5/m");
            assertThat(context.getBean(RateLimits.class).peek("cellar", null).remaining())
                    .isEqualTo(4);
            assertThat(context.getBean(RateLimits.class).peek("cellar", "ann").remaining())
                    .isEqualTo(5);
            operations.change("cellar", LimitChange.rate("77/m"));
            operations.override("cellar", "ann", LimitChange.rate("9/m"), null);
            test.end();
        }
    }

    @Test
    void candidatesAndOverridesOfTheStartupStartAgainWithEachTest() throws Exception {
        for (int i = 0; i < 3; i++) {
            Run test = new Run(WithCandidates.class);
            test.begin();
            ApplicationContext context = context(WithCandidates.class);
            RateLimits limits = context.getBean(RateLimits.class);
            LimitRegistry registry = context.getBean(LimitRegistry.class);
            assertThat(limits.peek("login", "ann").remaining()).isEqualTo(7);
            assertThat(registry.get("login").ownBudget("ann")).containsEntry("for", "12h");
            for (String name : List.of("login", "daily")) {
                assertThat(limits.tryAcquire(name, null)).isTrue();
                assertThat(registry.get(name).candidates().state().report().calls())
                        .isOne();
            }
            context.getBean(ManualTicker.class).advance(Duration.ofHours(i));
            test.end();
        }
    }

    @Test
    void candidatesThatATestStartsEndWithIt() throws Exception {
        List<Integer> candidates = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            Run test = new Run(Limited.class);
            test.begin();
            LimitCandidates ofLogin = context(Limited.class)
                    .getBean(LimitRegistry.class)
                    .get("login")
                    .candidates();
            candidates.add(ofLogin.state().report().candidates().size());
            ofLogin.start("2/m", Duration.ofDays(1), "this test");
            candidates.add(ofLogin.state().report().candidates().size());
            test.end();
        }
        assertThat(candidates).containsExactly(0, 1, 0, 1);
    }

    /** Properties alone make a limit at startup; the annotation of a bean that is created later has the rest. */
    @Test
    @SuppressWarnings("unchecked")
    void aLimitThatIsCompletedInATestStaysComplete() throws Exception {
        for (int i = 0; i < 3; i++) {
            Run test = new Run(WithCellar.class);
            test.begin();
            ApplicationContext context = context(WithCellar.class);
            context.getBean("cellar", Supplier.class);
            RateLimitOperations operations = context.getBean(RateLimitOperations.class);
            assertThat(operations.limit("completed").limit().burst()).isEqualTo(7);
            operations.change("completed", LimitChange.rate("77/m"));
            test.end();
        }
    }

    @Test
    void aTestThatCannotStartLeavesTheTurnToTheNext() throws Exception {
        FreshBudgets budgets = context(Limited.class).getBean(FreshBudgets.class);
        assertThatThrownBy(() -> budgets.begin(() -> {
                    throw new IllegalStateException("no clients");
                }))
                .hasMessage("no clients");
        Run test = new Run(Limited.class);
        CompletableFuture.runAsync(test::begin).orTimeout(20, TimeUnit.SECONDS).join();
        test.end();
    }

    @Test
    void aContextThatATestDirtiesIsClosedAndTheNextTestHasANewOne() throws Exception {
        ApplicationContext first = context(Dirty.class);
        for (int i = 0; i < 2; i++) {
            Run test = new Run(Dirty.class);
            test.begin();
            test.end();
        }
        assertThat(context(Dirty.class)).isNotSameAs(first);
    }

    @Test
    void testsOfOneContextThatRunInParallelTakeTurns() throws Exception {
        List<String> happened = new CopyOnWriteArrayList<>();
        Run first = new Run(Limited.class);
        Run second = new Run(LimitedToo.class);
        first.begin();
        CompletableFuture<Thread> started = new CompletableFuture<>();
        CompletableFuture<Void> ended = CompletableFuture.runAsync(
                () -> {
                    started.complete(Thread.currentThread());
                    second.begin();
                    happened.add("second begins");
                    second.end();
                },
                command -> new Thread(command).start());
        while (started.join().getState() != Thread.State.WAITING) {
            Thread.onSpinWait();
        }
        happened.add("first ends");
        first.end();
        ended.join();
        assertThat(happened).containsExactly("first ends", "second begins");
    }

    @Test
    void whatATestLeavesWaitingIsWokenWhenItEnds() throws Exception {
        Run test = new Run(Limited.class);
        test.begin();
        ManualTicker ticker = context(Limited.class).getBean(ManualTicker.class).autoAdvance(false);
        Shop.Login login = context(Limited.class).getBean(Shop.Login.class);
        login.queue();
        CompletableFuture<String> waiting = login.later();
        assertThat(waiting).isNotDone();
        test.end();
        assertThat(waiting.join()).isEqualTo("later");
        assertThat(ticker.sleeping()).isZero();
    }

    /** One run of the one method of a test class. */
    private static final class Run {

        private final TestContextManager manager;
        private final Object instance = new Object();
        private final Method method;

        Run(Class<?> test) throws Exception {
            manager = new TestContextManager(test);
            method = OfTheShop.class.isAssignableFrom(test) && test != Dirty.class
                    ? OfTheShop.class.getDeclaredMethod("test")
                    : test.getDeclaredMethod("test");
        }

        void begin() {
            try {
                manager.beforeTestMethod(instance, method);
            } catch (Exception ex) {
                throw new IllegalStateException(ex);
            }
        }

        void end() throws IllegalStateException {
            try {
                manager.afterTestMethod(instance, method, null);
            } catch (Exception ex) {
                throw new IllegalStateException(ex);
            }
        }
    }
}
