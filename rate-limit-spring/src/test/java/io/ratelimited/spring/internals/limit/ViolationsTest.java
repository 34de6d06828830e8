package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.ReservedPermits;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.internals.request.Serving;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** Which calls are violations, and which block nobody. */
@ExtendWith(CapturedLog.Capture.class)
@Tag("slow")
class ViolationsTest {

    private final ManualTicker ticker = new ManualTicker();
    private final ContextRunner runner =
            ContextRunner.limited(ticker).withBean(Service.class).withBean("devices", Devices.class);

    /** Knows the devices that have logged in before. */
    static class Devices {

        public boolean isKnown(String device) {
            return device.equals("known");
        }
    }

    static class Service {

        @RateLimited(name = "waits", rate = "1/s", key = "#who", policy = Policy.WAIT, maxWait = "1s", block = "10m")
        public void waits(String who) {}

        @RateLimited(name = "paid", rate = "2/s", key = "#who", charge = "#cost", block = "10m")
        public void paid(String who, long cost) {}

        @RateLimited(name = "broken", rate = "2/s", key = "#who", charge = "#result.length() - 1", block = "10m")
        public String broken(String who) {
            return "";
        }

        @RateLimited(name = "later", rate = "2/s", key = "#who", charge = "1", block = "10m")
        public CompletableFuture<String> later(String who) {
            return new CompletableFuture<>();
        }

        @RateLimited(name = "reactive", rate = "2/s", key = "#who", charge = "1", block = "10m")
        public Mono<String> reactive(String who) {
            return Mono.never();
        }

        @RateLimited(name = "aware", rate = "2/s", key = "#who", charge = "#cancelled ? 1 : 0", block = "10m")
        public CompletableFuture<String> aware(String who) {
            return new CompletableFuture<>();
        }

        @RateLimited(
                name = "patient",
                rate = "1/s",
                key = "#who",
                policy = Policy.WAIT,
                maxWait = "1s",
                charge = "#cost",
                block = "10m")
        public void patient(String who, long cost) {}

        @RateLimited(
                name = "patientLogin",
                rate = "2/h",
                key = "#who",
                policy = Policy.WAIT,
                maxWait = "1s",
                charge = "#cost",
                block = "10m")
        public void patientLogin(String who, long cost) {}

        @RateLimited(name = "tokens", rate = "10/s", key = "#who", permits = "#most", charge = "#used")
        public void tokens(String who, long most, long used) {}

        @RateLimited(
                name = "lockedTokens",
                rate = "10/s",
                key = "#who",
                permits = "#most",
                charge = "#used",
                block = "10m")
        public void lockedTokens(String who, long most, long used) {}

        @RateLimited(
                name = "login",
                rate = "2/s",
                key = "#who",
                charge = "#right ? 0 : 1",
                block = "10m",
                blockUnless = "@devices.isKnown(#device)")
        public void login(String who, String device, boolean right) {}
    }

    private static boolean isBlocked(TestLimits limits, String limit) {
        return limits.peek(limit, "ann").blocked();
    }

    private static void onEventLoop(Runnable call) {
        assertThatThrownBy(() -> Mono.fromRunnable(call)
                        .subscribeOn(Schedulers.parallel())
                        .toFuture()
                        .get())
                .hasRootCauseInstanceOf(RateLimitExceededException.class);
    }

    @Test
    void aCallThatMustNotSleepOnAnEventLoopIsNone() {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            Service service = context.getBean(Service.class);
            service.waits("ann");
            onEventLoop(() -> service.waits("ann"));
            assertThat(isBlocked(limits, "waits")).isFalse();
        });
    }

    @Test
    void aCallThatNoThreadMaySleepForIsNone() {
        runner.withBean(RequestThreads.class, () -> new RequestThreads(2))
                .withBean(Serving.class, Serving::new)
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    Service service = context.getBean(Service.class);
                    service.waits("ann");
                    RequestThreads threads = context.getBean(RequestThreads.class);
                    assertThat(threads.tryEnter(0, new Sleeper(List.of(), List.of())))
                            .isTrue();
                    assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(() -> service.waits("ann"));
                    assertThat(isBlocked(limits, "waits")).isFalse();
                    assertThat(limits.tryAcquire("waits", "bob")).isTrue();
                    assertThat(limits.tryAcquire("waits", "bob"))
                            .as("who need not wait is no violator either")
                            .isFalse();
                    assertThat(limits.peek("waits", "bob").blocked()).isFalse();
                });
    }

    @Test
    void aChargeAfterWhichTheNextCallCouldWaitIsNone() {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            Service service = context.getBean(Service.class);
            service.patient("ann", 1);
            assertThat(isBlocked(limits, "patient")).isFalse();
            ticker.advance(Duration.ofSeconds(1));
            service.patient("ann", 2);
            assertThat(isBlocked(limits, "patient")).isTrue();
        });
    }

    @Test
    void permitsThatCodeHasTakenAreCharged() {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            Service service = context.getBean(Service.class);
            assertThat(limits.tryAcquire("paid", "ann")).isTrue();
            service.paid("ann", 1);
            assertThat(isBlocked(limits, "paid")).isTrue();
            assertThat(limits.tryAcquire("patientLogin", "ann")).isTrue();
            service.patientLogin("ann", 1);
            assertThat(isBlocked(limits, "patientLogin"))
                    .as("under a policy that lets calls wait, too")
                    .isTrue();
        });
    }

    @Test
    void aChargeThatFailsIsNone() {
        runner.run(context -> {
            Service service = context.getBean(Service.class);
            service.broken("ann");
            service.broken("ann");
            assertThat(TestLimits.of(context).peek("broken", "ann").remaining()).isZero();
            assertThat(isBlocked(TestLimits.of(context), "broken")).isFalse();
        });
    }

    @Test
    void aCallThatIsCancelledBeforeItsEndIsChargedAndNone() {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            Service service = context.getBean(Service.class);
            for (int i = 0; i < 2; i++) {
                service.later("ann").cancel(false);
                service.reactive("ann").subscribe().dispose();
            }
            assertThat(limits.peek("later", "ann").remaining()).isZero();
            assertThat(limits.peek("reactive", "ann").remaining()).isZero();
            assertThat(isBlocked(limits, "later")).isFalse();
            assertThat(isBlocked(limits, "reactive")).isFalse();
            service.aware("ann").cancel(false);
            service.aware("ann").cancel(false);
            assertThat(isBlocked(limits, "aware"))
                    .as("the expression says what it thinks of cancelled calls")
                    .isTrue();
        });
    }

    @Test
    void aCallOfNothingIsRejectedWhileItsKeyOwes() {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            Service service = context.getBean(Service.class);
            service.tokens("ann", 0, 30);
            for (int i = 0; i < 3; i++) {
                assertThatExceptionOfType(RateLimitExceededException.class)
                        .isThrownBy(() -> service.tokens("ann", 0, 30));
            }
            assertThat(limits.tryAcquire("tokens", "ann", 0)).isFalse();
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> limits.reserve("tokens", "ann", 0));
            service.tokens("bob", 0, 1);
            ticker.advance(Duration.ofSeconds(3));
            service.tokens("ann", 0, 1);

            service.lockedTokens("ann", 0, 10);
            assertThat(isBlocked(limits, "lockedTokens")).isTrue();
            ticker.advance(Duration.ofMinutes(9));
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> service.lockedTokens("ann", 0, 1))
                    .satisfies(ex -> assertThat(ex.decision().blocked()).isTrue());
        });
    }

    @Test
    void permitsThatCallsInFlightHoldAreNone() {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            try (ReservedPermits right = limits.reserve("paid", "ann", 1)) {
                context.getBean(Service.class).paid("ann", 1);
                assertThat(isBlocked(limits, "paid")).isFalse();
                right.settle(0);
            }
            context.getBean(Service.class).paid("ann", 1);
            assertThat(isBlocked(limits, "paid")).isTrue();
        });
    }

    @Test
    void aCallForWhichBlockUnlessIsTrueIsNotRejectedByABlockAndBeginsNone() {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            Service service = context.getBean(Service.class);
            service.login("ann", "known", false);
            service.login("ann", "known", false);
            assertThat(isBlocked(limits, "login")).isFalse();
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .as("the limit still counts it")
                    .isThrownBy(() -> service.login("ann", "known", true))
                    .satisfies(ex -> assertThat(ex.decision().blocked()).isFalse());
            ticker.advance(Duration.ofSeconds(1));
            service.login("ann", "strange", false);
            service.login("ann", "strange", false);
            assertThat(isBlocked(limits, "login")).isTrue();
            ticker.advance(Duration.ofSeconds(1));
            service.login("ann", "known", true);
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> service.login("ann", "strange", true))
                    .satisfies(ex -> assertThat(ex.decision().blocked()).isTrue());
        });
    }

    @Test
    void blockUnlessHasNoMeaningWithoutBlock() {
        ContextRunner.limited()
                .withBean(Service.class)
                .withPropertyValues("rate-limit.limits.tokens.block-unless=true")
                .run(context -> assertThat(context.getStartupFailure())
                        .hasStackTraceContaining("blockUnless is \"true\", but has no effect without block"));
        ContextRunner.limited(ticker)
                .withBean(Service.class)
                .withBean("devices", Devices.class)
                .withPropertyValues("rate-limit.limits.login.block=0s")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    limits.change("login", LimitChange.of("block", "1m"));
                    Service service = context.getBean(Service.class);
                    service.login("ann", "known", false);
                    service.login("ann", "known", false);
                    assertThat(isBlocked(limits, "login")).isFalse();
                });
    }

    static class Trusting {

        @RateLimited(
                name = "trusting",
                rate = "2/s",
                key = "#who",
                block = "1m",
                blockUnless = "header('X-Known') != null")
        public void call(String who) {}
    }

    @Test
    void anExemptionThatCallersCanChooseIsReported(CapturedLog output) {
        ContextRunner.limited()
                .withBean(Trusting.class)
                .withBean(Service.class)
                .withBean("devices", Devices.class)
                .run(context -> assertThat(context).hasNotFailed());
        assertThat(output)
                .containsOnlyOnce(
                        "clients control the blockUnless of rate limit 'trusting' \"header('X-Known') != null\"")
                .containsOnlyOnce("so they can avoid every block.");
    }

    static class Paced {

        @RateLimited(name = "paced", rate = "2/s", key = "#who", charge = "1")
        public void call(String who) {}
    }

    @ParameterizedTest
    @ValueSource(strings = {"leaky-bucket", "smooth-bursty", "warm-up"})
    void blocksByChargeHaveNoMeaningWhereTheFirstCallLeavesNoPermit(String algorithm) {
        String[] properties = {
            "rate-limit.limits.paced.algorithm=" + algorithm,
            algorithm.equals("warm-up") ? "rate-limit.limits.paced.warmup=1s" : "rate-limit.limits.paced.rate=2/s"
        };
        ContextRunner.limited()
                .withBean(Paced.class)
                .withPropertyValues(properties)
                .withPropertyValues("rate-limit.limits.paced.block=1m")
                .run(context -> assertThat(context.getStartupFailure()).hasStackTraceContaining("with a charge"));
        ContextRunner.limited()
                .withBean(Paced.class)
                .withPropertyValues(properties)
                .run(context -> assertThatExceptionOfType(InvalidRateLimitException.class)
                        .isThrownBy(() -> TestLimits.of(context).change("paced", LimitChange.of("block", "1m")))
                        .withMessageContaining("with a charge"));
        ContextRunner.limited()
                .withBean(Paced.class)
                .withPropertyValues("rate-limit.limits.paced.block=1m")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    assertThat(limits.limit("paced").limit().blockMax())
                            .as("a few wrong passwords a day keep nobody out for good")
                            .isEqualTo(Duration.ofMinutes(15));
                    assertThatExceptionOfType(InvalidRateLimitException.class)
                            .isThrownBy(() -> limits.change("paced", LimitChange.of("algorithm", "leaky-bucket")))
                            .withMessageContaining("with a charge");
                });
    }

    /** Says of the thread of the test that it serves a request. */
}
