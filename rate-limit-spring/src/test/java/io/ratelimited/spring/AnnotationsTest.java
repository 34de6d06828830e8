package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import java.lang.annotation.Repeatable;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.springframework.core.annotation.AliasFor;

/** Where the annotation may stand, what a limit is then called, and that a call counts once. */
class AnnotationsTest {

    private final ContextRunner runner = ContextRunner.limited(new ManualTicker());

    /** The names of the limits that a bean class has. */
    private void names(List<String> names, Class<?>... beans) {
        ContextRunner.with(runner, beans).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(TestLimits.of(context).limits())
                    .extracting(NamedLimit::name)
                    .containsExactlyInAnyOrderElementsOf(names);
        });
    }

    /** A call is admitted exactly as often as given, then refused by the limit. */
    private <T> void admits(int times, String limit, Class<T> bean, Consumer<? super T> call) {
        runner.withBean(bean).run(context -> {
            assertThat(context).hasNotFailed();
            T target = context.getBean(bean);
            for (int i = 0; i < times; i++) {
                call.accept(target);
            }
            refused(limit, () -> call.accept(target));
        });
    }

    private static void refused(String limit, Runnable call) {
        assertThatExceptionOfType(RateLimitExceededException.class)
                .isThrownBy(call::run)
                .satisfies(refusal -> assertThat(refusal.limit()).isEqualTo(limit));
    }

    /** A call. */
    interface Consumer<T> {
        void accept(T target);
    }

    @Test
    void defaultNamesTellOverloadsAndRepetitionsApart() {
        names(
                List.of(
                        "Names.plain",
                        "Names.twice",
                        "Names.twice#2",
                        "Names.overloaded(String)",
                        "Names.overloaded(String,int[])",
                        "given"),
                Names.class);
    }

    @Test
    void bracketsNameALimitWithoutANameOfItsOwn() {
        runner.withBean(Names.class)
                .withPropertyValues(
                        "rate-limit.limits[Names.plain].rate=7/h",
                        "rate-limit.limits[Names.twice#2].rate=8/h",
                        "rate-limit.limits[Names.overloaded(String,int[])].rate=9/h")
                .run(context -> {
                    Function<String, String> rate = name ->
                            TestLimits.of(context).limit(name).limit().rate().toString();
                    assertThat(rate.apply("Names.plain")).isEqualTo("7/h");
                    assertThat(rate.apply("Names.twice")).isEqualTo("3/h");
                    assertThat(rate.apply("Names.twice#2")).isEqualTo("8/h");
                    assertThat(rate.apply("Names.overloaded(String)")).isEqualTo("3/h");
                    assertThat(rate.apply("Names.overloaded(String,int[])")).isEqualTo("9/h");
                });
    }

    @Test
    void aClassHasOneLimitForItsPublicMethodsButThoseThatSayOtherwise() {
        runner.withBean(WholeClass.class).run(context -> {
            WholeClass bean = context.getBean(WholeClass.class);
            bean.one();
            bean.other();
            refused("WholeClass", bean::one);
            refused("WholeClass", bean::other);
            for (int i = 0; i < 5; i++) {
                bean.exempt();
                assertThat(bean.toString()).isEqualTo("whole");
            }
            bean.own();
            refused("WholeClass.own", bean::own);
        });
    }

    @Test
    void anAnnotationMayStandOnAnAnnotationOnAnAnnotation() {
        admits(2, "deep", Deep.class, Deep::call);
        runner.withBean(Deep.class).run(context -> {
            NamedLimit limit = TestLimits.of(context).limit("deep");
            assertThat(limit.limit().algorithm()).isEqualTo(Algorithm.GCRA);
            assertThat(limit.limit().rate().toString()).isEqualTo("9/h");
        });
    }

    @Test
    void anAnnotationMayCarrySeveral() {
        names(List.of("Pair.call", "Pair.call#2"), Pair.class);
        admits(1, "Pair.call#2", Pair.class, Pair::call);
    }

    @Test
    void anAnnotationOfYourOwnMayStandOnAMethodOrAClassTwice() {
        admits(1, "small", OwnTwice.class, OwnTwice::call);
        admits(1, "small", OwnTwiceOnClass.class, OwnTwiceOnClass::call);
    }

    @Test
    void anAnnotationMayStandOnAnInterfaceMethodOrAnInterface() {
        admits(1, "Implementation.call", Implementation.class, bean -> bean.call("x"));
        admits(1, "ImplementsLimited", ImplementsLimited.class, ImplementsLimited::call);
    }

    @Test
    void anInterfaceLimitsAMethodThatASuperclassImplementsForIt() {
        admits(1, "InheritsAll.call", InheritsAll.class, bean -> bean.call("x"));
        admits(1, "InheritsAll.call", InheritsAll.class, bean -> ((Contract) bean).call("x"));
        admits(1, "InheritsAll.keyed", InheritsAll.class, bean -> bean.keyed("a"));
        admits(2, "InheritsGeneric.handle", InheritsGeneric.class, bean -> bean.handle("x"));
        runner.withBean(InheritsExempt.class).run(context -> {
            InheritsExempt bean = context.getBean(InheritsExempt.class);
            bean.call("x");
            bean.call("x");
        });
    }

    @Test
    void aParameterMayHaveTheNameThatTheInterfaceGivesIt() {
        runner.withBean(Implementation.class).run(context -> {
            Implementation bean = context.getBean(Implementation.class);
            bean.keyed("a");
            refused("Implementation.keyed", () -> bean.keyed("a"));
            bean.keyed("b");
        });
    }

    /** The expression stands there, and was written for the names that are there. */
    @Test
    void aParameterHasTheNameThatTheAnnotatedMethodGivesIt() {
        runner.withBean(SwapsNames.class).run(context -> {
            Transfers bean = context.getBean(Transfers.class);
            bean.pay("ada", "bob");
            refused("SwapsNames.pay", () -> bean.pay("ada", "eve"));
            bean.pay("bob", "eve");
        });
    }

    @Test
    void aCallOfAGenericMethodCountsOnce() {
        admits(2, "Strings.handle", Strings.class, bean -> bean.handle("x"));
        admits(2, "Strings.handle", Strings.class, bean -> ((Handler<String>) bean).handle("x"));
        admits(2, "Inherits.store", Inherits.class, bean -> bean.store("x"));
    }

    /** The compiler makes a bridge to the superclass in the class, because it names the interface itself. */
    @Test
    void aSuperclassThatImplementsADefaultMethodForItsSubclassLimitsIt() {
        admits(1, "RestatesSaving.save", RestatesSaving.class, bean -> bean.save("x"));
        admits(1, "RestatesSaving.save", RestatesSaving.class, bean -> ((Saving) bean).save("x"));
        ContextRunner.plain().withBean(RestatesSaving.class).run(context -> {
            Saving bean = context.getBean(Saving.class);
            bean.save("x");
            refused("RestatesSaving.save", () -> bean.save("x"));
        });
    }

    @Test
    void anInheritedAnnotationMakesALimitForEachClass() {
        names(List.of("Inherits.store", "Inherits2.store"), Inherits.class, Inherits2.class);
        names(List.of("Subclass"), Subclass.class);
        admits(1, "Subclass", Subclass.class, Subclass::inherited);
    }

    @Test
    void anOverridingMethodKeepsOrReplacesTheAnnotationAndMayBeExempt() {
        admits(1, "Overrides.kept", Overrides.class, Overrides::kept);
        admits(3, "Overrides.replaced", Overrides.class, Overrides::replaced);
        runner.withBean(Overrides.class).run(context -> {
            for (int i = 0; i < 5; i++) {
                context.getBean(Overrides.class).freed();
            }
        });
    }

    @Test
    void aSuperclassReplacesTheAnnotationOfADefaultMethodThatItOverrides() {
        names(List.of("OverridesOnceMore.freed", "OverridesOnceMore.kept"), OverridesOnceMore.class);
        admits(3, "OverridesOnceMore.kept", OverridesOnceMore.class, OverridesOnceMore::kept);
        admits(3, "OverridesOnceMore.freed", OverridesOnceMore.class, OverridesOnceMore::freed);
        runner.withBean(OverridesOnceMore.class).run(context -> {
            for (int i = 0; i < 5; i++) {
                context.getBean(OverridesOnceMore.class).taken();
            }
        });
    }

    @Test
    void aClientWithoutAClassIsNamedByItsInterface() {
        runner.withBean(Client.class, () -> id -> "got " + id).run(context -> {
            Client client = context.getBean(Client.class);
            assertThat(client.get("a")).isEqualTo("got a");
            refused("Client.get", () -> client.get("a"));
            assertThat(client.get("b")).isEqualTo("got b");
        });
    }

    @Test
    void methodsThatNameOneLimitShareIt() {
        runner.withBean(Sharing.class)
                .withPropertyValues("rate-limit.limits.both.rate=2/h")
                .run(context -> {
                    Sharing bean = context.getBean(Sharing.class);
                    bean.one();
                    bean.other();
                    refused("both", bean::one);
                    refused("both", bean::other);
                });
    }

    static class Names {
        @RateLimited(rate = "3/h")
        public void plain() {}

        @RateLimited(rate = "3/h")
        @RateLimited(rate = "4/h")
        public void twice() {}

        @RateLimited(rate = "3/h")
        public void overloaded(String text) {}

        @RateLimited(rate = "3/h")
        public void overloaded(String text, int[] numbers) {}

        @RateLimited(name = "given", rate = "3/h")
        public void named() {}
    }

    @RateLimited(rate = "2/h")
    static class WholeClass {
        public void one() {}

        public void other() {}

        @RateLimitExempt
        public void exempt() {}

        @RateLimited(rate = "1/h")
        public void own() {}

        @Override
        public String toString() {
            return "whole";
        }
    }

    @Retention(RetentionPolicy.RUNTIME)
    @RateLimited(rate = "9/h", burst = 2)
    @interface Slow {
        @AliasFor(annotation = RateLimited.class, attribute = "name")
        String called();

        @AliasFor(annotation = RateLimited.class)
        Algorithm algorithm() default Algorithm.DEFAULT;
    }

    @Retention(RetentionPolicy.RUNTIME)
    @Slow(called = "never", algorithm = Algorithm.GCRA)
    @interface VerySlow {
        @AliasFor(annotation = Slow.class, attribute = "called")
        String title();
    }

    @Retention(RetentionPolicy.RUNTIME)
    @VerySlow(title = "deep")
    @interface Deepest {}

    static class Deep {
        @Deepest
        public void call() {}
    }

    @Retention(RetentionPolicy.RUNTIME)
    @RateLimited(rate = "2/h")
    @RateLimited(rate = "1/d")
    @interface Two {}

    static class Pair {
        @Two
        public void call() {}
    }

    @Retention(RetentionPolicy.RUNTIME)
    @Repeatable(Owns.class)
    @RateLimited
    @interface Own {
        @AliasFor(annotation = RateLimited.class, attribute = "name")
        String value();

        @AliasFor(annotation = RateLimited.class)
        String rate();
    }

    @Retention(RetentionPolicy.RUNTIME)
    @interface Owns {
        Own[] value();
    }

    static class OwnTwice {
        @Own(value = "large", rate = "9/h")
        @Own(value = "small", rate = "1/h")
        public void call() {}
    }

    @Own(value = "large", rate = "9/h")
    @Own(value = "small", rate = "1/h")
    static class OwnTwiceOnClass {
        public void call() {}
    }

    interface Contract {
        @RateLimited(rate = "1/h")
        void call(String text);

        @RateLimited(rate = "1/h", key = "#user")
        void keyed(String user);
    }

    static class Implementation implements Contract {
        @Override
        public void call(String text) {}

        @Override
        public void keyed(String renamed) {}
    }

    interface Transfers {
        @RateLimited(rate = "1/h", key = "#from")
        void pay(String from, String to);
    }

    static class SwapsNames implements Transfers {
        @SuppressWarnings("OverridingMethodInconsistentArgumentNamesChecker") // that is what is tested
        @Override
        public void pay(String to, String from) {}
    }

    static class Calls {
        public void call(String text) {}

        public void keyed(String user) {}
    }

    static class InheritsAll extends Calls implements Contract {}

    static class Handles<T> {
        public void handle(T message) {}
    }

    static class InheritsGeneric extends Handles<String> implements Handler<String> {}

    interface ExemptContract {
        @RateLimitExempt
        void call(String text);
    }

    @RateLimited(rate = "1/h")
    static class InheritsExempt extends Calls implements ExemptContract {}

    @RateLimited(rate = "1/h")
    interface LimitedContract {}

    static class ImplementsLimited implements LimitedContract {
        public void call() {}
    }

    interface Handler<T> {
        @RateLimited(rate = "2/h")
        void handle(T message);
    }

    static class Strings implements Handler<String> {
        @Override
        public void handle(String message) {}
    }

    abstract static class Store<T> {
        @RateLimited(rate = "2/h", key = "#item")
        public void store(T item) {}
    }

    interface Saving {
        default void save(String item) {}
    }

    static class Saves<T> {
        @RateLimited(rate = "1/h", key = "#item")
        public void save(T item) {}
    }

    static class RestatesSaving extends Saves<String> implements Saving {}

    static class Inherits extends Store<String> {
        @Override
        public void store(String item) {
            super.store(item);
        }
    }

    static class Inherits2 extends Store<String> {}

    @RateLimited(rate = "1/h")
    static class Superclass {
        public void inherited() {}
    }

    static class Subclass extends Superclass {}

    static class Overridden {
        @RateLimited(rate = "1/h")
        public void kept() {}

        @RateLimited(rate = "1/h")
        public void replaced() {}

        @RateLimited(rate = "1/h")
        public void freed() {}
    }

    static class Overrides extends Overridden {
        @Override
        public void kept() {}

        @Override
        @RateLimited(rate = "3/h")
        public void replaced() {}

        @Override
        @RateLimitExempt
        public void freed() {}
    }

    interface Defaults {
        @RateLimited(rate = "1/h")
        default void kept() {}

        @RateLimitExempt
        default void freed() {}

        @RateLimited(rate = "1/h")
        default void taken() {}
    }

    static class OverridesDefaults implements Defaults {
        @Override
        @RateLimited(rate = "3/h")
        public void kept() {}

        @Override
        @RateLimited(rate = "3/h")
        public void freed() {}

        @Override
        @RateLimitExempt
        public void taken() {}
    }

    static class OverridesOnceMore extends OverridesDefaults {
        @Override
        public void kept() {}

        @Override
        public void freed() {}

        @Override
        public void taken() {}
    }

    interface Client {
        @RateLimited(rate = "1/h", key = "#id")
        String get(String id);
    }

    static class Sharing {
        @RateLimited("both")
        public void one() {}

        @RateLimited("both")
        public void other() {}
    }
}
