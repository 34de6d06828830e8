package io.ratelimited.spring.internals.check;

import static io.ratelimited.core.Algorithm.CONCURRENCY;
import static io.ratelimited.core.Algorithm.FIXED_WINDOW;
import static io.ratelimited.core.Algorithm.WARM_UP;
import static io.ratelimited.core.Policy.WAIT;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.Explanation;
import io.ratelimited.spring.PackagePrivateBase;
import io.ratelimited.spring.RateLimitExempt;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.SubmissionPublisher;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.support.ApplicationObjectSupport;
import reactor.core.publisher.ConnectableFlux;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.ParallelFlux;

/** Every mistake stops the start, and the failure analysis names limit, place, value and remedy. */
@Tag("slow")
class StartupRejectionTest {

    /** A mistake: the classes and properties that have it, and what the user must read. */
    record Mistake(String fact, List<Class<?>> beans, List<String> properties, List<String> told, String remedy) {

        static Mistake of(String fact, Class<?>... beans) {
            return new Mistake(fact, List.of(beans), List.of(), List.of(), "");
        }

        Mistake with(String... all) {
            return new Mistake(fact, beans, List.of(all), told, remedy);
        }

        Mistake tells(String... all) {
            return new Mistake(fact, beans, properties, List.of(all), remedy);
        }

        Mistake and(String action) {
            return new Mistake(fact, beans, properties, told, action);
        }

        @Override
        public String toString() {
            return fact;
        }
    }

    @ParameterizedTest
    @MethodSource
    void mistakesStopTheStart(Mistake mistake) {
        ContextRunner.with(ContextRunner.limited(), mistake.beans.toArray(Class<?>[]::new))
                .withPropertyValues(mistake.properties.toArray(String[]::new))
                .run(context -> {
                    assertThat(context).hasFailed();
                    Explanation analysis = Explanation.of(context.getStartupFailure());
                    assertThat(analysis.getDescription()).contains(mistake.told);
                    assertThat(analysis.getAction()).contains(mistake.remedy).isNotBlank();
                });
    }

    static Stream<Mistake> mistakesStopTheStart() {
        String here = StartupRejectionTest.class.getName();
        return Stream.of(
                // Properties
                Mistake.of("a rate in a property")
                        .with("rate-limit.limits.good.rate=5/0s")
                        .tells(
                                "'good' is invalid: rate is \"5/0s\", but must have a period",
                                "Origin: rate-limit.limits.good.rate."),
                Mistake.of("a burst in a property of an annotated limit", Partly.class)
                        .with("rate-limit.limits[Partly.call].burst=-3")
                        .tells("burst is -3, but must be", "Origin: rate-limit.limits[Partly.call].burst."),
                Mistake.of("a waiting line in the defaults")
                        .with("rate-limit.limits.good.rate=5/s", "rate-limit.defaults.max-waiting=-1")
                        .tells(
                                "'good' is invalid: maxWaiting is -1, but must be",
                                "Origin: rate-limit.defaults.max-waiting."),
                Mistake.of("a rate of a tier")
                        .with("rate-limit.limits.good.rate=5/s", "rate-limit.limits.good.tiers.gold.rate=x")
                        .tells(
                                "'good' is invalid: rate is \"x\", but must be",
                                "Origin: rate-limit.limits.good.tiers.gold.rate."),
                Mistake.of("a rate of the calendar for another algorithm")
                        .with("rate-limit.limits.good.rate=5/month")
                        .tells(
                                "Origin: rate-limit.limits.good.rate.",
                                "but must not be per month for TOKEN_BUCKET",
                                "(use FIXED_WINDOW, or a fixed duration such as 30d)"),
                Mistake.of("a first day of a period of fixed length")
                        .with(
                                "rate-limit.limits.good.algorithm=fixed-window",
                                "rate-limit.limits.good.rate=5/d",
                                "rate-limit.limits.good.starts-on=15")
                        .tells(
                                "Origin: rate-limit.limits.good.starts-on.",
                                "startsOn is 15, but a rate of 5/d does not support it",
                                "remove it, or use a rate per week, month or year"),
                Mistake.of("a first day that a year does not have", Yearly.class)
                        .tells(
                                "'Yearly.call' is invalid: startsOn is ",
                                "Origin: @RateLimited on " + here + "$Yearly.call().",
                                "15, but must be a month and day such as 04-01 for a rate per year"),
                Mistake.of("a rate in a superclass that is not public", PublicSubclass.class)
                        .tells(
                                "'PublicSubclass.call' is invalid: rate is",
                                "Origin: @RateLimited on " + here + "$PublicSubclass.call()."),
                // Names
                Mistake.of("a misspelt name", Misspelt.class)
                        .with("rate-limit.limits.search.rate=5/s")
                        .tells("'serach'", "@RateLimited on " + here + "$Misspelt.call()", "did you mean 'search'?")
                        .and("rate-limit.limits.serach.rate"),
                Mistake.of("a name that nothing defines", Misspelt.class)
                        .tells("'serach'", "rate is missing")
                        .and("or correct the name"),
                Mistake.of("an annotation that says nothing", Empty.class)
                        .tells("'Empty.call'", "rate is missing")
                        .and("rate-limit.limits[Empty.call].rate"),
                Mistake.of("two limits under one name", Twins.class)
                        .tells("'twin'", "defined differently by @RateLimited on " + here + "$Twins.")
                        .and("another name"),
                Mistake.of("one default name of two classes", One.Same.class, Other.Same.class)
                        .tells("'Same.call'", here + "$One$Same", here + "$Other$Same")
                        .and("a name"),
                Mistake.of("one default name of two methods", Overloaded.class)
                        .tells(
                                "'Overloaded.handle(Command)'",
                                "Overloaded.handle(" + here + "$Create$Command)",
                                "Overloaded.handle(" + here + "$Delete$Command)")
                        .and("a name"),
                Mistake.of("one limit twice on a method", Twice.class).tells("'twice'", "this limit twice"),
                Mistake.of("limited and exempt at once", Both.class).tells("@RateLimited and @RateLimitExempt"),
                Mistake.of("a name and another value", TwoNames.class)
                        .tells("$TwoNames.call()", "attribute 'name' and its alias 'value'", "[a] and [b]"),
                Mistake.of("an unknown placeholder", Unresolved.class)
                        .tells("'Unresolved.call'", "rate is ", "${no.such}"),
                Mistake.of("an unknown placeholder in the name", UnresolvedName.class)
                        .tells("name is ", "${no.such}"),

                // Rates and durations
                Mistake.of("an unparsable rate", BadRate.class)
                        .tells("'BadRate.call'", here + "$BadRate.call()", "<number>/<period>", "\"5 per s\"")
                        .and("rate-limit.limits[BadRate.call]"),
                Mistake.of("an unparsable rate in the properties", Empty.class)
                        .with("rate-limit.limits[Empty.call].rate=lots")
                        .tells("'Empty.call'", "rate-limit.limits[Empty.call]", "\"lots\""),
                Mistake.of("a negative rate", NegativeRate.class).tells("rate", "\"-1/s\""),
                Mistake.of("an unparsable warm-up", BadWarmup.class)
                        .tells("'BadWarmup.call'", "but must be a duration", "\"a while\""),
                Mistake.of("an unparsable longest wait", BadMaxWait.class)
                        .tells("'BadMaxWait.call'", "but must be a duration", "\"soon\""),
                Mistake.of("an unparsable duration in the properties", Good.class)
                        .with("rate-limit.limits[Good.call].max-wait=soon")
                        .tells("rate-limit.limits[Good.call].max-wait", "soon"),
                Mistake.of("a number that is none in the properties", Good.class)
                        .with("rate-limit.limits[Good.call].burst=many")
                        .tells("rate-limit.limits[Good.call].burst", "many"),
                Mistake.of("a negative longest wait", NegativeMaxWait.class)
                        .tells("maxWait is -1s, but must be from 0s to 365d"),

                // Attributes
                Mistake.of("a burst of zero", NoBurst.class).tells("burst is 0, but must be at least 1"),
                Mistake.of("more permits than the burst", Greedy.class)
                        .tells("permits is 6", "at most 5")
                        .and("raise the limit"),
                Mistake.of("more permits than a window has", GreedyWindow.class).tells("permits is 6", "at most 5"),
                Mistake.of("more permits than the burst of a tier", Tiered.class)
                        .with(
                                "rate-limit.limits.tiered.permits=8",
                                "rate-limit.limits.tiered.tiers.free.rate=5/s",
                                "rate-limit.limits.tiered.rate=10/s")
                        .tells("permits is 8", "at most 5", "tier 'free'"),
                Mistake.of("permits of zero", NoPermits.class).tells("permits is 0, but must be a whole number"),
                Mistake.of("a part of a permit", HalfPermit.class).tells("permits is 1.5, but must be a whole number"),
                Mistake.of("permits beyond all numbers", TooManyPermits.class)
                        .tells("but must be a whole number", "99999999999999999999"),
                Mistake.of("a burst for a warm-up", BurstOfWarmUp.class)
                        .tells("burst is 5, but WARM_UP does not support it; remove it"),
                Mistake.of("a warm-up without WARM_UP", WarmBucket.class)
                        .tells(", but TOKEN_BUCKET does not support it"),
                Mistake.of("maxConcurrent without CONCURRENCY", ConcurrentBucket.class)
                        .tells("maxConcurrent is 5, but TOKEN_BUCKET does not support it"),
                Mistake.of("a rate for CONCURRENCY", RateOfConcurrency.class)
                        .tells("rate is 5/s, but CONCURRENCY does not support it"),
                Mistake.of("a number of calls as the rate of CONCURRENCY", Good.class)
                        .with(
                                "rate-limit.limits[Good.call].algorithm=concurrency",
                                "rate-limit.limits[Good.call].rate=2")
                        .tells("rate is 2, but CONCURRENCY does not support it; use maxConcurrent instead"),
                Mistake.of("CONCURRENCY without maxConcurrent", NoConcurrency.class)
                        .tells("maxConcurrent is missing"),
                Mistake.of("slots of a token bucket", Good.class)
                        .with("rate-limit.limits[Good.call].slots=5")
                        .tells("'Good.call'", "rate-limit.limits[Good.call]", "does not support it"),
                Mistake.of("maxWait without WAIT", WaitWithoutPolicy.class)
                        .tells("'WaitWithoutPolicy.call'", "maxWait is 2s, but policy REJECT does not support it")
                        .and("Set the policy to WAIT"),
                Mistake.of("max-wait without wait in the properties", Good.class)
                        .with("rate-limit.limits[Good.call].max-wait=2s")
                        .tells("rate-limit.limits[Good.call]", ", but policy REJECT does not support it"),
                Mistake.of("an overshoot that is no percentage", Good.class)
                        .with("rate-limit.limits[Good.call].max-overshoot=lots")
                        .tells("but must be from 0% to 100%", "\"lots\""),

                // Expressions
                Mistake.of("an unknown parameter in key", UnknownInKey.class)
                        .tells("'UnknownInKey.call'", "key names the unknown parameter #usr", "#user"),
                Mistake.of("an unknown parameter in permits", UnknownInPermits.class)
                        .tells("permits names the unknown parameter #n"),
                Mistake.of("an unknown parameter in when", UnknownInWhen.class)
                        .tells("when names the unknown parameter #on"),
                Mistake.of("an unknown parameter in tier", Tiered.class)
                        .with("rate-limit.limits.tiered.rate=5/s", "rate-limit.limits.tiered.tiers.gold.rate=9/s")
                        .with(
                                "rate-limit.limits.tiered.rate=5/s",
                                "rate-limit.limits.tiered.tiers.gold.rate=9/s",
                                "rate-limit.limits.tiered.tier=#plan")
                        .tells("tier names the unknown parameter #plan"),
                Mistake.of("an unknown parameter deep inside", UnknownDeep.class)
                        .tells("key names the unknown parameter #it"),
                Mistake.of("no expression", NoExpression.class)
                        .tells("'NoExpression.call'", "key is not a SpEL expression", "\"#user.\""),
                Mistake.of("a forgotten #", ForgottenHash.class).tells("unknown word user in \"user\"", "#user"),
                Mistake.of("an unknown function of the root", UnknownCall.class)
                        .tells("unknown word heder() in \"heder('X')\""),
                Mistake.of("no expression in charge", Charged.class)
                        .with("rate-limit.limits.charged.charge=#result.")
                        .tells(
                                "'charged'",
                                "@RateLimited on " + here + "$Charged.call(",
                                "charge is not a SpEL expression: \"#result.\"")
                        .and("Correct the expression"),
                Mistake.of("an unknown parameter in charge", Charged.class)
                        .with("rate-limit.limits.charged.charge=#reslt.length()")
                        .tells(
                                "charge names the unknown parameter #reslt",
                                "#cancelled",
                                "#count",
                                "#error",
                                "#result",
                                "#user"),
                Mistake.of("an unknown word in charge", Charged.class)
                        .with("rate-limit.limits.charged.charge=result.length()")
                        .tells("charge has the unknown word result"),
                Mistake.of("an unknown bean in charge", Charged.class)
                        .with("rate-limit.limits.charged.charge=@prices.of(#result)")
                        .tells("charge names the unknown bean @prices"),
                Mistake.of("a result before the call", Charged.class)
                        .with("rate-limit.limits.charged.key=#result")
                        .tells("key names the unknown parameter #result"),
                Mistake.of("a charge with more fixed permits than can be had", Charged.class)
                        .with("rate-limit.limits.charged.permits=6")
                        .tells("permits", "6", "admits at most 5 per call"),
                Mistake.of("a charge of calls in flight", ChargedInFlight.class)
                        .tells(
                                "'ChargedInFlight.call'",
                                "@RateLimited on " + here + "$ChargedInFlight.call()",
                                "but CONCURRENCY counts calls in flight and does not support it",
                                "\"#count\"")
                        .and("Remove it"),
                Mistake.of("a charge in a property of calls in flight that no method uses")
                        .with(
                                "rate-limit.limits.places.algorithm=concurrency",
                                "rate-limit.limits.places.max-concurrent=5",
                                "rate-limit.limits.places.charge=1")
                        .tells(
                                "but CONCURRENCY counts calls in flight and does not support it. Origin: rate-limit.limits.places.charge."),
                Mistake.of("a charge of a limit that a property makes one of calls in flight", Charged.class)
                        .with(
                                "rate-limit.limits.charged.algorithm=concurrency",
                                "rate-limit.limits.charged.max-concurrent=5")
                        .tells("'charged'", "but CONCURRENCY counts calls in flight and does not support it"),
                Mistake.of("a charge of a tier", Charged.class)
                        .with("rate-limit.limits.charged.tiers.gold.charge=2")
                        .tells("tier 'gold'", "tiers cannot set charge, which is 2"),
                Mistake.of("an unknown bean", UnknownBean.class).tells("names the unknown bean @plans"),
                Mistake.of("a key without equals", KeyWithoutEquals.class)
                        .tells("is not a key", "KeyWithoutEquals$FinalLock")
                        .and("its id"),

                // Fallbacks
                Mistake.of("an unknown fallback", NoFallback.class)
                        .tells("'NoFallback.call'", "there is no fallback method instead(java.lang.String)")
                        .and("optionally followed by a RateLimitExceededException"),
                Mistake.of("a fallback with other parameters", OtherParameters.class)
                        .tells("there is no fallback"),
                Mistake.of("a fallback that returns something else", OtherReturn.class)
                        .tells("fallback method instead returns int, not java.lang.String"),
                Mistake.of("the method as its own fallback", OwnFallback.class).tells("the limited method itself"),
                Mistake.of("two fallbacks", TwoFallbacks.class).tells("two fallbacks: one and two"),
                Mistake.of("a fallback that is limited itself", LimitedFallback.class)
                        .tells("'LimitedFallback.call'", "fallback instead is limited itself", "without its limit")
                        .and("Remove its annotation"),
                Mistake.of("a fallback that its class limits", FallbackOfLimitedClass.class)
                        .tells("fallback instead is limited itself (@RateLimited on ")
                        .and("@RateLimitExempt"),

                // Tiers
                Mistake.of("a policy of a tier", Tiered.class)
                        .with("rate-limit.limits.tiered.rate=5/s", "rate-limit.limits.tiered.tiers.gold.policy=wait")
                        .tells("tier 'gold'", "tiers cannot set policy, which is WAIT"),
                Mistake.of("an unparsable rate of a tier", Tiered.class)
                        .with("rate-limit.limits.tiered.rate=5/s", "rate-limit.limits.tiered.tiers.gold.rate=fast")
                        .tells("'tiered'", "tiers.gold.rate", "\"fast\""),

                // What proxies cannot limit
                Mistake.of("a private method", PrivateMethod.class)
                        .tells("'PrivateMethod.call'", "method call is private")
                        .and("woven"),
                Mistake.of("a static method", StaticMethod.class).tells("method call is static"),
                Mistake.of("a static method of an interface", OfStaticMethod.class)
                        .tells("method call is static"),
                Mistake.of("a private method behind a proxy by interface", ByInterface.class)
                        .with("spring.aop.proxy-target-class=false")
                        .tells("method call is private"),
                Mistake.of("a package-private method of another package", PackagePrivateSubclass.class)
                        .tells("method call is package-private in io.ratelimited.spring.PackagePrivateBase"),
                Mistake.of("a hidden package-private method of another package", PackagePrivateHidden.class)
                        .tells("method call is package-private in io.ratelimited.spring.PackagePrivateBase"),
                Mistake.of("a private method that one of a subclass hides", HidesPrivate.class)
                        .tells("method call is private in " + here + "$PrivateMethod"),
                Mistake.of("a final method", FinalMethod.class).tells("method call is final"),
                Mistake.of("a final method of a limited class", FinalMethodOfClass.class)
                        .tells("'FinalMethodOfClass'", "method call is final")
                        .and("@RateLimitExempt"),
                Mistake.of("a final method of a library's class", OfLibrary.class)
                        .tells(
                                "'OfLibrary' is invalid: ",
                                "Origin: @RateLimited on " + here + "$OfLibrary.",
                                "is final in org.springframework.context.support.ApplicationObjectSupport")
                        .and("annotate methods instead of the class"),
                Mistake.of("a method that makes a bean", MakesBean.class).tells("method call creates a bean"),

                // Results that a limit cannot follow
                Mistake.of("a reactive type that nothing converts to", Parallel.class)
                        .tells(
                                "'Parallel.call' is invalid: method call returns reactor.core.publisher.ParallelFlux",
                                "Origin: @RateLimited on " + here + "$Parallel.call().")
                        .and("Declare that it returns org.reactivestreams.Publisher"),
                Mistake.of("a subtype of a reactive type", Connectable.class)
                        .tells("method call returns reactor.core.publisher.ConnectableFlux")
                        .and("Declare that it returns reactor.core.publisher.Flux"),
                Mistake.of("a subtype of a reactive type by a type argument", OfOwnMono.class)
                        .tells("method call returns " + here + "$OwnMono")
                        .and("Declare that it returns reactor.core.publisher.Mono"),
                Mistake.of("a subtype of a publisher of the JDK", OfFlow.class)
                        .tells("method call returns java.util.concurrent.SubmissionPublisher")
                        .and("Declare that it returns java.util.concurrent.Flow.Publisher"));
    }

    @Test
    void lazyAndPrototypeBeansAreCheckedWithoutBeingMade() {
        ContextRunner.limited()
                .withBean(BadRate.class, BadRate::new, definition -> definition.setLazyInit(true))
                .run(context -> assertThat(context).getFailure().hasMessageContaining("'BadRate.call'"));
        ContextRunner.limited()
                .withBean(BadRate.class, BadRate::new, definition -> definition.setScope("prototype"))
                .run(context -> assertThat(context).getFailure().hasMessageContaining("'BadRate.call'"));
        ContextRunner.limited()
                .withBean(NeverMade.class, NeverMade::new, definition -> definition.setLazyInit(true))
                .run(context -> assertThat(context).hasNotFailed());
    }

    @Test
    void aPackagePrivateMethodThatIsOverriddenAndExemptIsNoMistake() {
        ContextRunner.limited()
                .withBean(PackagePrivateExempt.class)
                .run(context -> assertThat(context).hasNotFailed());
    }

    @Test
    void aClosedLimitIsNoMistake() {
        ContextRunner.limited().withBean(Closed.class).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(context.getBean(RateLimits.class).tryAcquire("Closed.call", null))
                    .isFalse();
        });
    }

    @Test
    void aMethodMayNameALimitThatALaterBeanDefines() {
        ContextRunner.with(ContextRunner.limited(new ManualTicker()), NamesShared.class, DefinesShared.class)
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    context.getBean(NamesShared.class).call();
                    assertThat(context.getBean(RateLimits.class)
                                    .peek("shared", null)
                                    .remaining())
                            .isEqualTo(4);
                });
    }

    @Test
    void aMethodMayNameSuchALimitEvenWhileTheApplicationStarts() {
        ContextRunner.with(
                        ContextRunner.limited(new ManualTicker()),
                        NamesShared.class,
                        CallsOnStart.class,
                        DefinesShared.class)
                .withPropertyValues("rate-limit.limits.shared.burst=7")
                .run(context -> assertThat(context.getBean(RateLimits.class)
                                .peek("shared", null)
                                .remaining())
                        .isEqualTo(6));
    }

    static class HiddenSuperclass {
        @RateLimited(rate = "5/x")
        public void call() {}
    }

    /** The compiler adds a bridge to the inherited method. */
    public static class PublicSubclass extends HiddenSuperclass {}

    static class Good {
        @RateLimited(rate = "5/s")
        public void call() {}
    }

    static class Partly {
        @RateLimited(rate = "5/s")
        public void call() {}
    }

    static class Yearly {
        @RateLimited(algorithm = FIXED_WINDOW, rate = "5/year", startsOn = "15")
        public void call() {}
    }

    static class Misspelt {
        @RateLimited("serach")
        public void call() {}
    }

    static class Empty {
        @RateLimited
        public void call() {}
    }

    static class Twins {
        @RateLimited(name = "twin", rate = "5/s")
        public void one() {}

        @RateLimited(name = "twin", rate = "6/s")
        public void two() {}
    }

    static class One {
        static class Same {
            @RateLimited(rate = "5/s")
            public void call() {}
        }
    }

    static class Other {
        static class Same {
            @RateLimited(rate = "5/s")
            public void call() {}
        }
    }

    static class Create {
        record Command() {}
    }

    static class Delete {
        record Command() {}
    }

    static class Overloaded {
        @RateLimited(rate = "5/s")
        public void handle(Create.Command command) {}

        @RateLimited(rate = "5/s")
        public void handle(Delete.Command command) {}
    }

    static class Twice {
        @RateLimited(name = "twice", rate = "5/s")
        @RateLimited(name = "twice", rate = "5/s")
        public void call() {}
    }

    static class Both {
        @RateLimited(rate = "5/s")
        @RateLimitExempt
        public void call() {}
    }

    static class Unresolved {
        @RateLimited(rate = "${no.such}")
        public void call() {}
    }

    static class UnresolvedName {
        @RateLimited(name = "${no.such}", rate = "5/s")
        public void call() {}
    }

    static class TwoNames {
        @RateLimited(name = "a", value = "b", rate = "1/s")
        public void call() {}
    }

    static class BadRate {
        @RateLimited(rate = "5 per s")
        public void call() {}
    }

    static class NeverMade {
        NeverMade() {
            throw new AssertionError("made");
        }

        @RateLimited(rate = "5/s")
        public void call() {}
    }

    static class NegativeRate {
        @RateLimited(rate = "-1/s")
        public void call() {}
    }

    static class BadWarmup {
        @RateLimited(algorithm = WARM_UP, rate = "5/s", warmup = "a while")
        public void call() {}
    }

    static class BadMaxWait {
        @RateLimited(rate = "5/s", policy = WAIT, maxWait = "soon")
        public void call() {}
    }

    static class NegativeMaxWait {
        @RateLimited(rate = "5/s", policy = WAIT, maxWait = "-1s")
        public void call() {}
    }

    static class NoBurst {
        @RateLimited(rate = "5/s", burst = 0)
        public void call() {}
    }

    static class Greedy {
        @RateLimited(rate = "5/s", permits = "6")
        public void call() {}
    }

    static class GreedyWindow {
        @RateLimited(algorithm = FIXED_WINDOW, rate = "5/s", permits = "6")
        public void call() {}
    }

    static class Tiered {
        @RateLimited(value = "tiered", tier = "#user")
        public void call(String user) {}
    }

    static class NoPermits {
        @RateLimited(rate = "5/s", permits = "0")
        public void call() {}
    }

    static class HalfPermit {
        @RateLimited(rate = "5/s", permits = "1.5")
        public void call() {}
    }

    static class TooManyPermits {
        @RateLimited(rate = "5/s", permits = "99999999999999999999")
        public void call() {}
    }

    static class BurstOfWarmUp {
        @RateLimited(algorithm = WARM_UP, rate = "5/s", warmup = "1s", burst = 5)
        public void call() {}
    }

    static class WarmBucket {
        @RateLimited(rate = "5/s", warmup = "1s")
        public void call() {}
    }

    static class ConcurrentBucket {
        @RateLimited(rate = "5/s", maxConcurrent = 5)
        public void call() {}
    }

    static class RateOfConcurrency {
        @RateLimited(algorithm = CONCURRENCY, rate = "5/s", maxConcurrent = 5)
        public void call() {}
    }

    static class NoConcurrency {
        @RateLimited(algorithm = CONCURRENCY)
        public void call() {}
    }

    static class WaitWithoutPolicy {
        @RateLimited(rate = "5/s", maxWait = "2s")
        public void call() {}
    }

    static class UnknownInKey {
        @RateLimited(rate = "5/s", key = "#usr")
        public void call(String user) {}
    }

    static class UnknownInPermits {
        @RateLimited(rate = "5/s", permits = "#n * 2")
        public void call(int number) {}
    }

    static class UnknownInWhen {
        @RateLimited(rate = "5/s", when = "!#on")
        public void call(boolean active) {}
    }

    static class UnknownDeep {
        @RateLimited(rate = "5/s", key = "#users.?[name == 'x'].![id + #it]")
        public void call(List<String> users) {}
    }

    static class NoExpression {
        @RateLimited(rate = "5/s", key = "#user.")
        public void call(String user) {}
    }

    static class ForgottenHash {
        @RateLimited(rate = "5/s", key = "user")
        public void call(String user) {}
    }

    static class UnknownCall {
        @RateLimited(rate = "5/s", key = "heder('X')")
        public void call() {}
    }

    static class Charged {
        @RateLimited(name = "charged", rate = "5/s", permits = "3", charge = "#result.length()")
        public String call(String user) {
            return user;
        }
    }

    static class ChargedInFlight {
        @RateLimited(algorithm = CONCURRENCY, maxConcurrent = 5, charge = "#count")
        public void call() {}
    }

    static class UnknownBean {
        @RateLimited(rate = "5/s", key = "@plans.of(#user)")
        public void call(String user) {}
    }

    static class KeyWithoutEquals {
        @RateLimited(rate = "5/s", key = "#lock")
        public void call(FinalLock lock) {}

        static final class FinalLock extends Semaphore {

            private static final long serialVersionUID = 1L;

            FinalLock() {
                super(1);
            }
        }
    }

    static class NoFallback {
        @RateLimited(rate = "5/s", fallback = "instead")
        public String call(String user) {
            return user;
        }
    }

    static class OtherParameters {
        @RateLimited(rate = "5/s", fallback = "instead")
        public String call(String user) {
            return user;
        }

        String instead(int user, RateLimitExceededException refusal) {
            return refusal.limit() + user;
        }
    }

    static class OtherReturn {
        @RateLimited(rate = "5/s", fallback = "instead")
        public String call(String user) {
            return user;
        }

        int instead(String user) {
            return user.length();
        }
    }

    static class OwnFallback {
        @RateLimited(rate = "5/s", fallback = "call")
        public void call() {}
    }

    static class TwoFallbacks {
        @RateLimited(rate = "5/s", fallback = "one")
        @RateLimited(rate = "50/m", fallback = "two")
        public void call() {}

        void one() {}

        void two() {}
    }

    static class LimitedFallback {
        @RateLimited(rate = "5/s", fallback = "instead")
        public void call() {}

        @RateLimited(rate = "1/s")
        public void instead() {}
    }

    @RateLimited(name = "class", rate = "5/s")
    static class FallbackOfLimitedClass {
        @RateLimited(rate = "5/s", fallback = "instead")
        public void call() {}

        public void instead() {}
    }

    static class PrivateMethod {
        @RateLimited(rate = "5/s")
        private void call() {}

        public void use() {
            call();
        }
    }

    static class StaticMethod {
        @RateLimited(rate = "5/s")
        public static void call() {}
    }

    interface HasStaticMethod {
        @RateLimited(rate = "5/s")
        static void call() {}
    }

    static class OfStaticMethod implements HasStaticMethod {}

    static class ByInterface implements Supplier<String> {
        @RateLimited(rate = "5/s")
        @Override
        public String get() {
            return call();
        }

        @RateLimited(rate = "5/s")
        private static String call() {
            return "called";
        }
    }

    static class PackagePrivateSubclass extends PackagePrivateBase {}

    static class PackagePrivateHidden extends PackagePrivateBase {
        public void call() {}
    }

    static class PackagePrivateExempt extends PackagePrivateBase.Overriding {
        public void call() {}
    }

    static class HidesPrivate extends PrivateMethod {
        public void call() {}
    }

    static class FinalMethod {
        @RateLimited(rate = "5/s")
        public final void call() {}
    }

    @RateLimited(rate = "5/s")
    static class FinalMethodOfClass {
        public final void call() {}
    }

    @RateLimited(rate = "5/s")
    static class OfLibrary extends ApplicationObjectSupport {
        public void call() {}
    }

    static final class FinalClass {
        @RateLimited(rate = "5/s")
        public void call() {}
    }

    @Configuration(proxyBeanMethods = false)
    static class MakesBean {
        @Bean
        @RateLimited(rate = "5/s")
        public String call() {
            return "bean";
        }
    }

    static class Parallel {
        @RateLimited(rate = "5/s")
        public ParallelFlux<String> call() {
            return Flux.just("a").parallel();
        }
    }

    static class Connectable {
        @RateLimited(rate = "5/s")
        public ConnectableFlux<String> call() {
            return Flux.just("a").publish();
        }
    }

    abstract static class OwnMono extends Mono<String> {}

    abstract static class Calls<T> {
        @RateLimited(rate = "5/s")
        public T call() {
            throw new UnsupportedOperationException();
        }
    }

    static class OfOwnMono extends Calls<OwnMono> {}

    static class OfFlow {
        @RateLimited(rate = "5/s")
        public SubmissionPublisher<String> call() {
            return new SubmissionPublisher<>();
        }
    }

    static class Closed {
        @RateLimited(rate = "0/s")
        public void call() {}
    }

    static class NamesShared {
        @RateLimited("shared")
        public void call() {}
    }

    static class DefinesShared {
        @RateLimited(name = "shared", rate = "5/s")
        public void call() {}
    }

    static class CallsOnStart {
        CallsOnStart(NamesShared other) {
            other.call();
        }
    }
}
