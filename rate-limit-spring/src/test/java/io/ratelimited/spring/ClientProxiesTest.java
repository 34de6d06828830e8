package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.internals.aop.Declarations;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Limits of beans whose class nobody has written, such as clients: their interface says what the class cannot. */
final class ClientProxiesTest {

    private final ContextRunner runner = ContextRunner.limited(new ManualTicker());

    @Test
    void resultIsThatOfTheTypeArgumentOfTheInterface() {
        runner.withUserConfiguration(GenericClient.class).run(context -> {
            Mono<String> call = context.getBean(MonoClient.class).call();
            assertThat(call.block()).isEqualTo("x");
            assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(call::block);
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"lambda", "generic", "object", "adapted"})
    void reactiveResultThatNoTypeNamesFailsTheCall(String bean) {
        runner.withUserConfiguration(Untyped.class).run(context -> {
            Base<?> called = context.getBean(bean, Base.class);
            for (int i = 0; i < 3; i++) { // each ends, and leaves the only place
                assertThatExceptionOfType(InvalidRateLimitException.class)
                        .isThrownBy(called::call)
                        .withMessageContainingAll("'base'", "method call returned ", ".call()")
                        .satisfies(ex -> assertThat(ex.remedy())
                                .contains("reactor.core.publisher." + (bean.equals("adapted") ? "Flux" : "Mono"))
                                .endsWith("[RL-118]"));
            }
        });
    }

    @Test
    void otherResultsThatNoTypeNamesPass() {
        runner.withUserConfiguration(Untyped.class).run(context -> {
            assertThat(context.getBean("value", Base.class).call()).isEqualTo("x");
            assertThat(context.getBean("future", Base.class).call()).isInstanceOf(CompletableFuture.class);
        });
    }

    @Test
    void keyOnAnInterfaceNamesParametersOfItsMethods() {
        runner.withUserConfiguration(Customers.class).run(context -> {
            assertThat(context).hasNotFailed();
            context.getBeansOfType(CustomerClient.class)
                    .forEach((name, client) -> assertThat(client.get(name)).isEqualTo(name));
            assertThat(TestLimits.of(context).peek("customers", "lambda").remaining())
                    .isZero();
        });
    }

    @Test
    void callThatIsHandedOnCountsOnceUnderTheNameOfTheProxy() {
        runner.withUserConfiguration(WithFragment.class).run(context -> {
            TestLimits limits = TestLimits.of(context);
            Repository repository = context.getBean(Repository.class);
            repository.search("a");
            repository.find("a");
            assertThat(limits.peek("Repository.search", null).remaining()).isEqualTo(4);
            assertThat(limits.peek("Repository.search#2", null).remaining()).isEqualTo(8);
            assertThat(limits.peek("Repository", null).remaining()).isEqualTo(4);
            assertThat(limits.peek("FragmentImpl.search", null).remaining()).isEqualTo(5);
            assertThat(limits.peek("FragmentImpl", null).remaining()).isEqualTo(5);
            context.getBean(FragmentImpl.class).search("a");
            assertThat(limits.peek("FragmentImpl.search", null).remaining()).isEqualTo(4);
        });
    }

    @Test
    void clientsOfACommonInterfaceHaveALimitEach() {
        runner.withUserConfiguration(TwoClients.class).run(context -> {
            assertThat(context.getBean(Orders.class).get()).isEqualTo("orders");
            assertThat(context.getBean(Users.class).get()).isEqualTo("users");
            assertThat(TestLimits.of(context).limits())
                    .extracting(NamedLimit::name)
                    .containsExactlyInAnyOrder("Orders.get", "Users.get", "audit");
        });
    }

    @Test
    void clientThatCallsAnotherOneOfACommonInterfaceCountsInBoth() {
        runner.withUserConfiguration(TwoClients.class).run(context -> {
            TestLimits limits = TestLimits.of(context);
            assertThat(context.getBean(Orders.class).audit()).isEqualTo("users");
            assertThat(limits.peek("audit", null).remaining()).isEqualTo(8);
        });
    }

    @Test
    void fallbackOfAClientThatIsTheLimitedMethodFailsStartup() {
        runner.withUserConfiguration(Looping.class)
                .run(context -> assertThat(context.getStartupFailure())
                        .hasStackTraceContaining("fallback get is the limited method itself"));
    }

    static Stream<Arguments> methodsOfSeveralInterfaces() {
        return Stream.of(
                Arguments.of(Wide.class, new Class<?>[] {Wide.class, Narrow.class}, Narrow.class),
                Arguments.of(Wide.class, new Class<?>[] {Narrow.class, Wide.class}, Narrow.class),
                Arguments.of(Wide.class, new Class<?>[] {Wide.class, Overriding.class}, Overriding.class),
                Arguments.of(Wide.class, new Class<?>[] {Wide.class, Other.class}, Wide.class),
                Arguments.of(Wide.class, new Class<?>[] {Other.class, Wide.class}, Other.class),
                Arguments.of(Wide.class, new Class<?>[] {StaticOnly.class, Wide.class}, Wide.class));
    }

    @ParameterizedTest
    @MethodSource("methodsOfSeveralInterfaces")
    void ofSeveralInterfacesTheOneThatOverridesOthersHasTheMethod(
            Class<?> called, Class<?>[] interfaces, Class<?> expected) throws Exception {
        Class<?> proxy = Proxy.newProxyInstance(getClass().getClassLoader(), interfaces, (p, m, args) -> null)
                .getClass();
        Method specific = Declarations.specific(called.getMethod("read", String.class), proxy);
        assertThat(specific.getDeclaringClass()).isEqualTo(expected);
        assertThat(specific.isBridge()).isFalse();
    }

    @Test
    void methodOfAClientIsTheOneBehindTheBridgeOfItsInterface() throws Exception {
        Class<?> proxy = proxy(OrderStore.class, args -> null).getClass();
        for (Class<?> called : new Class<?>[] {Store.class, OrderStore.class, proxy}) {
            assertThat(Declarations.specific(called.getMethod("save", Object.class), proxy))
                    .isEqualTo(OrderStore.class.getMethod("save", String.class));
        }
        assertThat(Declarations.specific(Object.class.getMethod("toString"), proxy)
                        .getDeclaringClass())
                .isEqualTo(proxy);
    }

    private static <T> T proxy(Class<T> type, Function<Object[], Object> call) {
        InvocationHandler handler = (proxy, method, args) -> switch (method.getName()) {
            case "hashCode" -> 1;
            case "equals" -> proxy == args[0];
            case "toString" -> type.getName();
            default ->
                method.isDefault()
                        ? InvocationHandler.invokeDefault(proxy, method, args)
                        : call.apply(args == null ? new Object[0] : args);
        };
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler));
    }

    interface Base<R> {
        @RateLimited(name = "base", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        R call();
    }

    interface LimitedPerHour<R> {
        @RateLimited(name = "hourly", rate = "1/h")
        R call();
    }

    interface MonoClient extends LimitedPerHour<Mono<String>> {}

    @Configuration(proxyBeanMethods = false)
    static class GenericClient {
        @Bean
        MonoClient client() {
            return proxy(MonoClient.class, args -> Mono.just("x"));
        }
    }

    static class Simple<R> implements Base<R> {

        private final Supplier<R> result;

        Simple(Supplier<R> result) {
            this.result = result;
        }

        @Override
        public R call() {
            return result.get();
        }
    }

    static class Anything implements Base<Object> {
        @Override
        public Object call() {
            return Mono.just("x");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Untyped {
        @Bean
        Base<Mono<String>> lambda() {
            return () -> Mono.just("x");
        }

        @Bean
        Base<Mono<String>> generic() {
            return new Simple<>(() -> Mono.just("x"));
        }

        @Bean
        Base<Object> object() {
            return new Anything();
        }

        @Bean
        Base<Flux<String>> adapted() {
            return new Simple<>(() -> Flux.just("x").hide());
        }

        @Bean
        Base<String> value() {
            return new Simple<>(() -> "x");
        }

        @Bean
        Base<Object> future() {
            return new Simple<>(() -> CompletableFuture.completedFuture(null));
        }
    }

    @RateLimited(name = "customers", rate = "1/h", key = "#customer")
    interface CustomerClient {
        String get(String customer);
    }

    @Configuration(proxyBeanMethods = false)
    static class Customers {
        @Bean
        CustomerClient proxied() {
            return proxy(CustomerClient.class, args -> args[0]);
        }

        @Bean
        CustomerClient lambda() {
            return customer -> customer;
        }
    }

    interface Fragment {
        @RateLimited(rate = "5/h")
        @RateLimited(rate = "9/h")
        String search(String text);
    }

    @RateLimited(rate = "5/h")
    interface FindingFragment {
        String find(String text);
    }

    static class FragmentImpl implements Fragment, FindingFragment {
        @Override
        public String search(String text) {
            return text;
        }

        @Override
        public String find(String text) {
            return text;
        }
    }

    interface Repository extends Fragment, FindingFragment {}

    @Configuration(proxyBeanMethods = false)
    static class WithFragment {
        @Bean
        FragmentImpl fragment() {
            return new FragmentImpl();
        }

        @Bean
        Repository repository(FragmentImpl fragment) {
            Object made = Proxy.newProxyInstance(
                    Repository.class.getClassLoader(),
                    new Class<?>[] {Repository.class},
                    (proxy, method, args) -> method.getDeclaringClass() == Object.class
                            ? System.identityHashCode(proxy)
                            : method.invoke(fragment, args));
            return (Repository) made;
        }
    }

    interface Crud {
        @RateLimited(rate = "1/h")
        String get();

        @RateLimited(name = "audit", rate = "10/h")
        String audit();
    }

    interface Orders extends Crud {}

    interface Users extends Crud {}

    @Configuration(proxyBeanMethods = false)
    static class TwoClients {
        @Bean
        Users users() {
            return proxy(Users.class, args -> "users");
        }

        @Bean
        Orders orders(Users users) {
            Object made = Proxy.newProxyInstance(
                    Orders.class.getClassLoader(),
                    new Class<?>[] {Orders.class},
                    (proxy, method, args) -> method.getName().equals("audit") ? users.audit() : "orders");
            return (Orders) made;
        }
    }

    interface LoopingClient {
        @RateLimited(rate = "1/h", fallback = "get")
        String get();
    }

    @Configuration(proxyBeanMethods = false)
    static class Looping {
        @Bean
        LoopingClient client() {
            return proxy(LoopingClient.class, args -> "x");
        }
    }

    interface Wide {
        Object read(String text);
    }

    interface Narrow {
        String read(String text);
    }

    interface Overriding extends Wide {
        @Override
        Object read(String text);
    }

    interface Other {
        Object read(String text);
    }

    interface StaticOnly {
        static Object read(String text) {
            return text;
        }
    }

    interface Store<T> {
        void save(T entity);
    }

    interface OrderStore extends Store<String> {
        @Override
        void save(String order);
    }
}
