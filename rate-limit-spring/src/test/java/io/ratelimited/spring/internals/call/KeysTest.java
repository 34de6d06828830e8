package io.ratelimited.spring.internals.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.expression.CallExpression;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.nio.CharBuffer;
import java.security.Principal;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.config.ObjectFactoryCreatingFactoryBean;
import org.springframework.beans.factory.support.DefaultListableBeanFactory;
import org.springframework.beans.factory.support.RootBeanDefinition;

/** Whose budget a call uses, how much of it, and what becomes of a call for which that cannot be told. */
@Tag("slow")
class KeysTest {

    private final ContextRunner runner =
            ContextRunner.limited(new ManualTicker()).withBean(Keyed.class).withBean("plans", Plans.class);

    private void run(Consumer<Keyed> test) {
        runner.run(context -> {
            assertThat(context).hasNotFailed();
            test.accept(context.getBean(Keyed.class));
        });
    }

    /** Two values that are one key, and one that is another. */
    record Same(Object one, Object same, Object other) {}

    record Pair(String left, int right) {}

    enum Colour {
        RED,
        BLUE
    }

    static Stream<Same> equalKeysShareABudget() {
        return Stream.of(
                new Same("a", "a", "b"),
                new Same("a", CharBuffer.wrap("a"), "A"),
                new Same(5, 5, 6),
                new Same(5L, 5L, 5.5),
                new Same(Colour.RED, Colour.RED, Colour.BLUE),
                new Same(new Pair("a", 1), new Pair("a", 1), new Pair("a", 2)),
                new Same(List.of("a", 1), new ArrayList<>(List.of("a", 1)), List.of(1, "a")),
                new Same(Set.of("a", "b"), Set.of("b", "a"), Set.of("a")),
                new Same(Map.of("a", new int[] {1}), Map.of("a", new int[] {1}), Map.of("a", new int[] {2})),
                new Same(new String[] {"a"}, new String[] {"a"}, new String[] {"b"}),
                new Same(new byte[] {1, 2}, new byte[] {1, 2}, new byte[] {1}),
                new Same(new int[][] {{1}, {2}}, new int[][] {{1}, {2}}, new int[][] {{1}, {3}}),
                new Same(new ArrayDeque<>(List.of(1)), new ArrayDeque<>(List.of(1)), new ArrayDeque<>(List.of(2))),
                new Same(Optional.of("a"), "a", Optional.of("b")),
                new Same(Arrays.asList("a", null), Arrays.asList("a", null), Arrays.asList("a", "b")),
                new Same(principal("ann"), "ann", principal("bob")));
    }

    private static Principal principal(@Nullable String name) {
        return () -> name;
    }

    @ParameterizedTest
    @MethodSource
    void equalKeysShareABudget(Same keys) {
        run(bean -> {
            bean.plain(keys.one);
            refused(() -> bean.plain(keys.same));
            bean.plain(keys.other);
        });
    }

    static Stream<Object> missingKeysShareOneBudget() {
        return Stream.of("", " \t", Optional.empty(), Optional.of(" "), principal(null), principal(""));
    }

    @ParameterizedTest
    @MethodSource
    void missingKeysShareOneBudget(Object missing) {
        run(bean -> {
            bean.plain(null);
            refused(() -> bean.plain(missing));
            refused(() -> bean.plain(null));
            bean.plain("someone");
        });
    }

    @Test
    void missingKeysAreDeniedWhereTheLimitSaysSo() {
        runner.withPropertyValues("rate-limit.limits[Keyed.plain].missing-key=deny")
                .run(context -> {
                    Keyed bean = context.getBean(Keyed.class);
                    assertThatThrownBy(() -> bean.plain(null))
                            .isInstanceOf(RateLimitExceededException.class)
                            .hasMessage(
                                    "Rate limit 'Keyed.plain' rejects calls without a key: the key is null or blank,"
                                            + " and missing-key is deny");
                    bean.plain("someone");
                });
    }

    @Test
    void missingKeysAreExemptWhereTheLimitSaysSo() {
        runner.withPropertyValues("rate-limit.limits[Keyed.plain].missing-key=skip")
                .run(context -> {
                    Keyed bean = context.getBean(Keyed.class);
                    bean.plain(null);
                    bean.plain(" ");
                    bean.plain("someone");
                    refused(() -> bean.plain("someone"));
                });
    }

    @Test
    void aMutableKeyThatChangesLaterKeepsItsBudget() {
        run(bean -> {
            List<String> key = new ArrayList<>(List.of("a"));
            bean.plain(key);
            key.add("b");
            bean.plain(key);
            refused(() -> bean.plain(List.of("a")));
            String[] array = {"x"};
            bean.plain(array);
            array[0] = "y";
            refused(() -> bean.plain(new String[] {"x"}));
        });
    }

    @Test
    void anObjectWithoutAKnownTextFailsTheCall() {
        run(bean -> {
            assertThatIllegalStateException()
                    .isThrownBy(() -> bean.plain(new Object()))
                    .withMessageContaining("key of rate limit 'Keyed.plain' \"#key\"")
                    .withMessageContaining("java.lang.Object is not a key")
                    .withMessageContaining("the call was not made");
            assertThatIllegalStateException().isThrownBy(() -> bean.plain(List.of(new Object())));
            assertThat(bean.calls()).isZero();
        });
    }

    @Test
    void anExpressionThatThrowsFailsTheCall() {
        run(bean -> {
            assertThatIllegalStateException()
                    .isThrownBy(() -> bean.path(new User("ann", null)))
                    .withMessageContaining("key of rate limit 'Keyed.path' \"#user.friend.name\" failed")
                    .withMessageContaining("the call was not made");
            assertThatIllegalStateException()
                    .isThrownBy(() -> bean.bean("broken"))
                    .withMessageContaining("no such plan");
            assertThat(bean.calls()).isZero();
        });
    }

    @Test
    void aNullSafePathThatEndsEarlyIsAMissingKey() {
        run(bean -> {
            bean.nullSafe(new User("ann", null));
            refused(() -> bean.nullSafe(null));
            bean.nullSafe(new User("ann", new User("bob", null)));
        });
    }

    @Test
    void pathsReadMapsListsBeansAndTheRoot() {
        run(bean -> {
            bean.access(Map.of("id", List.of("a", "b")));
            refused(() -> bean.access(Map.of("id", List.of("x", "b"))));
            bean.bean("gold");
            refused(() -> bean.bean("gold"));
            bean.root("a");
            refused(() -> bean.root("a"));
            bean.root("b");
        });
    }

    @Test
    void aWebWordOutsideARequestSaysSo() {
        run(bean -> {
            assertThatIllegalStateException()
                    .isThrownBy(() -> bean.web())
                    .withMessageContaining("clientIp is only known in a request");
            assertThatIllegalStateException()
                    .isThrownBy(() -> bean.header())
                    .withMessageContaining("header('X-Api-Key') is only known in a request")
                    .withMessageContaining("context-propagation: auto; the call was not made");
        });
    }

    @ParameterizedTest
    @ValueSource(doubles = {-1, -0.5, Double.NaN, Double.POSITIVE_INFINITY, 1e30})
    void permitsThatAreNoNumberOfAtLeastZeroFailTheCall(double permits) {
        run(bean -> {
            assertThatIllegalStateException()
                    .isThrownBy(() -> bean.weighted(permits))
                    .withMessageContaining("permits of rate limit 'Keyed.weighted' \"#permits\"")
                    .withMessageContaining("a number from 0 to 2^63 - 1, not " + permits);
            assertThatIllegalStateException().isThrownBy(() -> bean.weighted(null));
            assertThat(bean.calls()).isZero();
        });
    }

    @Test
    void aWeightOfZeroGoesAndFractionsAreRoundedUp() {
        run(bean -> {
            bean.weighted(8.5);
            bean.weighted(new BigDecimal("0.000000000000000000001"));
            for (Number nothing : List.of(0, 0L, 0.0, -0.0, BigDecimal.ZERO)) {
                bean.weighted(nothing);
            }
            assertThat(bean.calls()).isEqualTo(7);
            refused(() -> bean.weighted(1));
            refused(() -> bean.weighted(0.1));
            assertThat(bean.calls()).isEqualTo(7);
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"9223372036854775808", "-1", "1e400"})
    void permitsBeyondAllRangesFailTheCall(BigDecimal permits) {
        run(bean -> {
            assertThatIllegalStateException().isThrownBy(() -> bean.weighted(permits));
            assertThatIllegalStateException().isThrownBy(() -> bean.weighted(permits.toBigInteger()));
            assertThat(bean.calls()).isZero();
        });
    }

    @Test
    void hugePermitsAreRefusedForEver() {
        run(bean -> {
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> bean.weighted(Long.MAX_VALUE))
                    .satisfies(refusal -> assertThat(refusal.decision().never()).isTrue());
            bean.weighted(10);
            refused(() -> bean.weighted(1L));
        });
    }

    @Test
    void theConditionDecidesWhetherTheLimitApplies() {
        run(bean -> {
            bean.when(true);
            bean.when(false);
            bean.when(false);
            refused(() -> bean.when(true));
            assertThatIllegalStateException()
                    .isThrownBy(() -> bean.when("yes"))
                    .withMessageContaining("when of rate limit 'Keyed.when' \"#on\" must be a boolean, not \"yes\"");
            assertThatIllegalStateException().isThrownBy(() -> bean.when(null));
        });
    }

    @Test
    void theClassLoaderOfTheCallersThreadDoesNotMatter() {
        run(bean -> {
            Thread thread = Thread.currentThread();
            ClassLoader own = thread.getContextClassLoader();
            thread.setContextClassLoader(ClassLoader.getPlatformClassLoader());
            try {
                // So often that the expression is compiled.
                for (int i = 0; i < 1_000; i++) {
                    bean.typed("user " + i);
                }
            } finally {
                thread.setContextClassLoader(own);
            }
            refused(() -> bean.typed("user 0"));
        });
    }

    /** Counts how many there are. */
    public static final class Numbered {

        private final int number;

        Numbered(int number) {
            this.number = number;
        }

        public int plus(int more) {
            return number + more;
        }

        @Override
        public String toString() {
            return "number " + number;
        }
    }

    /** Often enough for the expression to be compiled, which must change nothing. */
    @Test
    void ofTheBeansThatAnExpressionNamesOnlySingletonsAreKept() throws Exception {
        DefaultListableBeanFactory beans = new DefaultListableBeanFactory();
        AtomicInteger made = new AtomicInteger();
        for (String scope : List.of("singleton", "prototype")) {
            RootBeanDefinition bean =
                    new RootBeanDefinition(Numbered.class, () -> new Numbered(made.getAndIncrement()));
            bean.setScope(scope);
            beans.registerBeanDefinition(scope, bean);
        }
        CallExpression expression = new CallExpression(
                "key",
                "search",
                "'@singleton' + @singleton.plus(#key) + @ 'prototype'.plus( #key ) + @singleton",
                Keyed.class.getMethod("plain", Object.class),
                Keyed.class,
                Map.of("key", 0),
                beans);
        for (int i = 1; i <= 1_000; i++) {
            assertThat(expression.value(null, new Object[] {1000}, null))
                    .isEqualTo("@singleton1000" + (1000 + i) + "number 0");
        }
        assertThat(made).hasValue(1_001);
    }

    /** A path that starts from a bean is compiled after some calls, others are not. */
    @Test
    void aBeanAtTheStartIsTheSameAsABeanElsewhere() throws Exception {
        DefaultListableBeanFactory beans = new DefaultListableBeanFactory();
        AtomicInteger made = new AtomicInteger();
        for (String scope : List.of("singleton", "prototype")) {
            RootBeanDefinition bean =
                    new RootBeanDefinition(Numbered.class, () -> new Numbered(made.getAndIncrement()));
            bean.setScope(scope);
            beans.registerBeanDefinition(scope, bean);
        }
        Method method = Keyed.class.getMethod("plain", Object.class);
        Map<String, Integer> names = Map.of("key", 0);
        CallExpression singleton =
                new CallExpression("key", "search", "@singleton.plus(#key)", method, Keyed.class, names, beans);
        CallExpression prototype =
                new CallExpression("key", "search", "@'prototype'.plus(#key)", method, Keyed.class, names, beans);
        CallExpression both = new CallExpression(
                "key", "search", "@singleton.plus(@prototype.plus(#key))", method, Keyed.class, names, beans);
        for (int i = 0; i < 500; i++) {
            assertThat(singleton.value(null, new Object[] {1000}, null)).isEqualTo(1000);
            assertThat(prototype.value(null, new Object[] {1000}, null)).isEqualTo(1000 + 2 * i + 1);
            assertThat(both.value(null, new Object[] {1000}, null)).isEqualTo(1000 + 2 * i + 2);
        }
        assertThat(made).hasValue(1_001);
    }

    @Test
    void aFactoryOfABeanIsNamedWithAnAmpersand() throws Exception {
        DefaultListableBeanFactory beans = new DefaultListableBeanFactory();
        ObjectFactoryCreatingFactoryBean factory = new ObjectFactoryCreatingFactoryBean();
        factory.setTargetBeanName("target");
        factory.setBeanFactory(beans);
        beans.registerSingleton("made", factory);
        CallExpression expression = new CallExpression(
                "key",
                "search",
                "&made.singleton",
                Keyed.class.getMethod("plain", Object.class),
                Keyed.class,
                Map.of(),
                beans);
        assertThat(expression.value(null, new Object[] {1}, null)).isEqualTo(true);
    }

    @Test
    void aParameterIsReadWithoutAllocatingAnything() throws Exception {
        CallExpression expression = new CallExpression(
                "key",
                "search",
                "#key",
                Keyed.class.getMethod("plain", Object.class),
                Keyed.class,
                Map.of("key", 0),
                new DefaultListableBeanFactory());
        Object[] args = {"ann"};
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long read = 0;
        long before = threads.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < 100_000; i++) {
            read += expression.value(null, args, null) == args[0] ? 1 : 0;
        }
        long allocated = threads.getCurrentThreadAllocatedBytes() - before;
        assertThat(read).isEqualTo(100_000);
        assertThat(allocated).isLessThan(100_000);
    }

    /** SpEL cannot parse these. */
    @Test
    void aParameterMayHaveTheNameOfAnOperator() throws Exception {
        CallExpression expression = new CallExpression(
                "key",
                "search",
                "#mod",
                Keyed.class.getMethod("plain", Object.class),
                Keyed.class,
                Map.of("mod", 0),
                new DefaultListableBeanFactory());
        assertThat(expression.value(null, new Object[] {"ann"}, null)).isEqualTo("ann");
    }

    @Test
    void whereParametersHaveNoNamesTheMessageTellsHowToKeepThem() throws Exception {
        DefaultListableBeanFactory beans = new DefaultListableBeanFactory();
        Method method = Keyed.class.getMethod("plain", Object.class);
        Map<String, Integer> nameless = Map.of("a0", 0, "p0", 0);
        assertThatIllegalArgumentException()
                .isThrownBy(
                        () -> new CallExpression("key", "search", "#user.name", method, Keyed.class, nameless, beans))
                .withMessage("names the unknown parameter #user in \"#user.name\"; there are [#a0]"
                        + " (compile with -parameters to use names)");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new CallExpression("charge", "search", "#user", method, Keyed.class, nameless, beans))
                .withMessageEndingWith(
                        "[#a0, #cancelled, #count, #error, #result] (compile with -parameters to use names)");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new CallExpression("charge", "search", "#user", method, Keyed.class, Map.of(), beans))
                .withMessageEndingWith("there are [#cancelled, #count, #error, #result]");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new CallExpression(
                        "key", "search", "#user", method, Keyed.class, Map.of("a0", 0, "p0", 0, "key", 0), beans))
                .withMessageEndingWith("there are [#a0, #key]");
    }

    static Stream<String> theShortWayReadsWhatTheLongOneReads() {
        return Stream.of("#user", "#user.name", "#user.friend", "#user.friend.name", "#a0.name", "#p0.name.length");
    }

    @ParameterizedTest
    @MethodSource
    void theShortWayReadsWhatTheLongOneReads(String path) throws Exception {
        runner.run(context -> {
            var method = Keyed.class.getMethod("path", User.class);
            ConfigurableListableBeanFactory beans = context.getBeanFactory();
            Map<String, Integer> names = Map.of("user", 0, "a0", 0, "p0", 0);
            CallExpression shortWay = new CallExpression("key", "search", path, method, Keyed.class, names, beans);
            CallExpression longWay =
                    new CallExpression("key", "search", "true ? " + path + " : 0", method, Keyed.class, names, beans);
            User[] users = {null, new User(null, null), new User("ann", new User("bob", null))};
            for (User user : users) {
                assertThat(outcome(shortWay, user)).isEqualTo(outcome(longWay, user));
            }
        });
    }

    private static Object outcome(CallExpression expression, @Nullable User user) {
        try {
            return Optional.ofNullable(expression.value(null, new Object[] {user}, null));
        } catch (IllegalStateException ex) {
            return ex.getCause().getMessage().replaceAll(".*EL", "EL").replaceAll("at position \\d+", "");
        }
    }

    private static void refused(Runnable call) {
        assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(call::run);
    }

    public record User(@Nullable String name, @Nullable User friend) {}

    static class Plans {
        public String of(String user) {
            if (user.equals("broken")) {
                throw new IllegalArgumentException("no such plan");
            }
            return user;
        }
    }

    public static String lower(String text) {
        return text.toLowerCase(Locale.ROOT);
    }

    static class Keyed {

        @RateLimited(rate = "1/h", key = "T(io.ratelimited.spring.internals.call.KeysTest).lower(#user)")
        public void typed(String user) {}

        private int calls;

        int calls() {
            return calls;
        }

        @RateLimited(rate = "1/h", key = "#key")
        public void plain(@Nullable Object key) {
            calls++;
        }

        @RateLimited(rate = "1/h", key = "#user.friend.name")
        public void path(User user) {
            calls++;
        }

        @RateLimited(rate = "1/h", key = "#user?.friend?.name")
        public void nullSafe(@Nullable User user) {}

        @RateLimited(rate = "1/h", key = "#map['id'][1]")
        public void access(Map<String, List<String>> map) {}

        @RateLimited(rate = "1/h", key = "@plans.of(#user)")
        public void bean(String user) {
            calls++;
        }

        @RateLimited(rate = "1/h", key = "{#root.args[0], method.name, target.class.simpleName}")
        public void root(String key) {}

        @RateLimited(rate = "1/h", key = "clientIp")
        public void web() {}

        @RateLimited(rate = "1/h", key = "header('X-Api-Key')")
        public void header() {}

        @RateLimited(rate = "10/h", permits = "#permits")
        public void weighted(@Nullable Number permits) {
            calls++;
        }

        @RateLimited(rate = "1/h", when = "#on")
        public void when(@Nullable Object on) {}
    }
}
