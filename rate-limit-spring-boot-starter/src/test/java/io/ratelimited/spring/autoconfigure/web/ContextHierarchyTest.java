package io.ratelimited.spring.autoconfigure.web;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.MeterRegistry;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.RateLimitChangedEvent;
import io.ratelimited.spring.RateLimitDecision;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.internals.web.RunningServer;
import io.ratelimited.spring.internals.web.SharedServers;
import java.lang.ref.WeakReference;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.web.server.context.WebServerApplicationContext;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.event.EventListener;
import org.springframework.core.NestedExceptionUtils;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.support.AnnotationConfigWebApplicationContext;
import org.springframework.web.servlet.DispatcherServlet;
import org.springframework.web.servlet.config.annotation.EnableWebMvc;

/** Contexts that are auto-configured each, one the parent of the others, have one set of limits. */
@Tag("slow")
class ContextHierarchyTest {

    private static final String[] PROPERTIES = {
        "server.port=0",
        "spring.main.banner-mode=off",
        "spring.reactor.netty.shutdown-quiet-period=0s",
        "management.endpoints.web.exposure.include=ratelimits",
        "rate-limit.limits.stated.rate=3/h",
        "rate-limit.limits.refined.policy=reject",
        "rate-limit.limits.refined.rate=2/h",
        "spring.autoconfigure.exclude=" + RunningServer.SECURITY
                + ",org.springframework.boot.jetty.autoconfigure.servlet.JettyServletWebServerAutoConfiguration"
                + ",org.springframework.boot.jetty.autoconfigure.actuate.web.server.JettyServletManagementContextAutoConfiguration"
    };

    /** A parent and a child of each kind, for tests that leave them as they are. */
    private static ConfigurableApplicationContext parent;

    private static final Map<WebApplicationType, ConfigurableApplicationContext> CHILDREN =
            new EnumMap<>(WebApplicationType.class);

    private final List<ConfigurableApplicationContext> started = new ArrayList<>();

    @BeforeAll
    static void startShared() {
        parent = run(parentOfOthers());
        for (WebApplicationType type : List.of(WebApplicationType.SERVLET, WebApplicationType.REACTIVE)) {
            CHILDREN.put(type, run(childOf(parent, type)));
        }
    }

    @AfterAll
    static void closeShared() {
        CHILDREN.values().forEach(ConfigurableApplicationContext::close);
        CHILDREN.clear();
        parent.close();
    }

    @BeforeEach
    void everyBudgetIsFull() {
        TestLimits.of(parent).revert("shared");
        parent.getBean(ManualTicker.class).advance(Duration.ofDays(1));
    }

    @AfterEach
    void close() {
        for (int i = started.size() - 1; i >= 0; i--) {
            started.get(i).close();
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = WebApplicationType.class,
            names = {"SERVLET", "REACTIVE"})
    void aBeanOfTheParentAndOneOfTheChildShareABudget(WebApplicationType type) throws Exception {
        ConfigurableApplicationContext child = CHILDREN.get(type);

        for (int i = 0; i < 3; i++) {
            assertThat(get(child, "/" + (i % 2 == 0 ? "parent" : "child")).statusCode())
                    .isEqualTo(200);
        }

        assertThat(get(child, "/parent").statusCode()).isEqualTo(429);
        assertThat(get(child, "/child").statusCode()).isEqualTo(429);
        assertThatThrownBy(parent.getBean(OfParent.class)::call).isInstanceOf(RateLimitExceededException.class);
        assertThatThrownBy(child.getBean(Api.class)::call).isInstanceOf(RateLimitExceededException.class);
    }

    @Test
    void everyContextPeeksAtAndResetsTheSameBudget() throws Exception {
        ConfigurableApplicationContext child = CHILDREN.get(WebApplicationType.SERVLET);
        get(child, "/parent");
        get(child, "/child");

        assertThat(remaining(parent)).isEqualTo(1);
        assertThat(remaining(child)).isEqualTo(1);

        TestLimits.of(parent).reset("shared", null);
        assertThat(remaining(child)).isEqualTo(3);
    }

    @ParameterizedTest
    @EnumSource(
            value = WebApplicationType.class,
            names = {"SERVLET", "REACTIVE"})
    void theEndpointOfTheChildChangesTheLimitOfEveryContext(WebApplicationType type) throws Exception {
        ConfigurableApplicationContext child = CHILDREN.get(type);

        HttpResponse<String> changed = HttpClient.newHttpClient()
                .send(
                        HttpRequest.newBuilder(uri(child, "/actuator/ratelimits/shared"))
                                .header("Content-Type", "application/json")
                                .POST(BodyPublishers.ofString("{\"rate\": \"0/s\"}"))
                                .build(),
                        BodyHandlers.ofString());

        assertThat(changed.statusCode()).isEqualTo(200);
        assertThat(get(child, "/parent").statusCode()).isEqualTo(429);
        assertThat(get(child, "/child").statusCode()).isEqualTo(429);
        assertThatThrownBy(parent.getBean(OfParent.class)::call).isInstanceOf(RateLimitExceededException.class);
    }

    @ParameterizedTest
    @EnumSource(
            value = WebApplicationType.class,
            names = {"SERVLET", "REACTIVE"})
    void aBeanOfTheParentKnowsTheRequestOfTheChild(WebApplicationType type) throws Exception {
        ConfigurableApplicationContext child = CHILDREN.get(type);

        HttpResponse<String> first = get(child, "/address");

        assertThat(first.statusCode()).as(first.body()).isEqualTo(200);
        assertThat(first.headers().firstValue("RateLimit"))
                .hasValueSatisfying(field -> assertThat(field).contains("\"address\";r=0"));
        assertThat(get(child, "/address").statusCode()).isEqualTo(429);
    }

    @Test
    void callsOfEveryContextAreCountedByTheMeters() throws Exception {
        ConfigurableApplicationContext child = CHILDREN.get(WebApplicationType.SERVLET);
        double before = admitted(child);
        get(child, "/parent");
        get(child, "/child");
        TestLimits.of(child).tryAcquire("shared", null);

        assertThat(admitted(child) - before).isEqualTo(3);
    }

    @Test
    void theParentReceivesTheChangesAndDecisionsOfEveryContext() throws Exception {
        Received received = parent.getBean(Received.class);
        ConfigurableApplicationContext child = CHILDREN.get(WebApplicationType.SERVLET);
        received.events.clear();

        child.getBean(RateLimitOperations.class).change("shared", LimitChange.rate("1/h"));
        get(child, "/child");
        get(child, "/parent");

        assertThat(received.events).containsExactly("change", "decision true", "decision false");
    }

    private static double admitted(ConfigurableApplicationContext context) {
        Collection<Counter> counters = context.getBean(MeterRegistry.class)
                .find("rate.limit.decisions")
                .tags("limit", "shared", "outcome", "admitted")
                .counters();
        assertThat(counters).hasSizeLessThan(2);
        return counters.stream().mapToDouble(Counter::count).sum();
    }

    @Test
    void siblingsShareTheLimitsAndEachHasItsRequests() throws Exception {
        ConfigurableApplicationContext one = CHILDREN.get(WebApplicationType.SERVLET);
        ConfigurableApplicationContext other = CHILDREN.get(WebApplicationType.REACTIVE);

        assertThat(get(one, "/child").statusCode()).isEqualTo(200);
        assertThat(get(other, "/child").statusCode()).isEqualTo(200);
        assertThat(get(one, "/parent").statusCode()).isEqualTo(200);
        assertThat(get(other, "/parent").statusCode()).isEqualTo(429);
        assertThat(get(one, "/address").statusCode()).isEqualTo(200);
        HttpResponse<String> refused = get(other, "/address");
        assertThat(refused.statusCode()).isEqualTo(429);
        assertThat(refused.headers().firstValue("RateLimit")).isPresent();
    }

    @ParameterizedTest
    @EnumSource(
            value = WebApplicationType.class,
            names = {"SERVLET", "REACTIVE"})
    void aChildThatIsClosedLeavesTheLimitsToTheOthers(WebApplicationType type) throws Exception {
        ConfigurableApplicationContext parent = start(parentOfOthers());
        ConfigurableApplicationContext first = start(childOf(parent, type));
        assertThat(get(first, "/child").statusCode()).isEqualTo(200);
        first.close();

        parent.getBean(OfParent.class).call();
        assertThat(remaining(parent)).isEqualTo(1);

        ConfigurableApplicationContext second = start(childOf(parent, type));
        assertThat(get(second, "/address").statusCode()).isEqualTo(200);
        assertThat(get(second, "/child").statusCode()).isEqualTo(200);
        assertThat(get(second, "/child").statusCode()).isEqualTo(429);
    }

    /** Without the other beans of Spring Boot, some of which keep contexts for longer. */
    @Test
    void aChildThatIsClosedDoesNotStayInMemory() throws Exception {
        try (AnnotationConfigApplicationContext parent = limiting(null)) {
            WeakReference<Object> child = beansOfAClosedChild(parent);
            for (int i = 0; i < 20 && child.get() != null; i++) {
                System.gc();
                Thread.sleep(50);
            }
            assertThat(child.get()).isNull();
            assertThat(parent.isActive()).isTrue();
        }
    }

    private static WeakReference<Object> beansOfAClosedChild(ApplicationContext parent) {
        try (AnnotationConfigApplicationContext child = limiting(parent, OfChild.class)) {
            child.getBean(OfChild.class).call("ann");
            return new WeakReference<>(child.getBeanFactory());
        }
    }

    private static AnnotationConfigApplicationContext limiting(@Nullable ApplicationContext parent, Class<?>... beans) {
        AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();
        context.setParent(parent);
        context.register(AopAutoConfiguration.class, RateLimitAutoConfiguration.class);
        Stream.of(beans).forEach(context::register);
        context.refresh();
        return context;
    }

    static class OfChild {

        @RateLimited(name = "of-child", rate = "3/h", key = "#user")
        public void call(String user) {}
    }

    /** The parent has made it from the properties, before anybody knew of the annotation. */
    @Test
    void anAnnotationOfTheChildDefinesWhatThePropertiesDoNot() {
        ConfigurableApplicationContext child = CHILDREN.get(WebApplicationType.SERVLET);

        assertThat(TestLimits.of(child).limit("refined").limit()).hasToString("refined: sliding-log, rate 2/h");
        assertThat(TestLimits.of(parent).limit("refined"))
                .isSameAs(TestLimits.of(child).limit("refined"));
    }

    /** Routes, status and proxies are those of the context that serves the request. */
    @Test
    void eachContextAnswersByItsOwnProperties() throws Exception {
        ConfigurableApplicationContext child = start(
                new SpringApplicationBuilder(Web.class)
                        .web(WebApplicationType.SERVLET)
                        .parent(parent),
                "rate-limit.http.status=503",
                "rate-limit.http.trusted-proxies=1",
                "rate-limit.routes[0].path=/missing",
                "rate-limit.routes[0].limits=stated");
        ConfigurableApplicationContext sibling = CHILDREN.get(WebApplicationType.SERVLET);

        get(child, "/address", "X-Forwarded-For", "192.0.2.1");
        assertThat(get(child, "/address", "X-Forwarded-For", "192.0.2.2").statusCode())
                .isEqualTo(200);
        assertThat(get(child, "/address", "X-Forwarded-For", "192.0.2.2").statusCode())
                .isEqualTo(503);
        assertThat(get(sibling, "/address", "X-Forwarded-For", "192.0.2.3").statusCode())
                .isEqualTo(200);
        assertThat(get(sibling, "/address", "X-Forwarded-For", "192.0.2.4").statusCode())
                .isEqualTo(429);
        for (int i = 0; i < 3; i++) {
            assertThat(get(child, "/missing").statusCode()).isEqualTo(404);
        }
        assertThat(get(child, "/missing").statusCode()).isEqualTo(503);
        assertThat(get(sibling, "/missing").statusCode()).isEqualTo(404);
    }

    @Test
    void anotherDefinitionInTheChildStopsItsStart() {
        assertThatThrownBy(() -> new SpringApplicationBuilder(Other.class)
                        .web(WebApplicationType.NONE)
                        .parent(parent)
                        .run())
                .satisfies(failure -> assertThat(cause(failure)).isInstanceOf(InvalidRateLimitException.class))
                .hasMessageContaining("'shared'")
                .hasMessageContaining("defined differently");
    }

    @Test
    void classesOfTwoContextsWithTheSameDefaultNameStopTheStart() {
        assertThatThrownBy(() -> new SpringApplicationBuilder(Plain.class, Nested.OfParent.class)
                        .web(WebApplicationType.NONE)
                        .parent(parent)
                        .run())
                .satisfies(failure -> assertThat(cause(failure)).isInstanceOf(InvalidRateLimitException.class))
                .hasMessageContaining("'OfParent.nameless'")
                .hasMessageContaining("its default name is also that of")
                .hasMessageContaining(OfParent.class.getName())
                .hasMessageContaining(Nested.OfParent.class.getName());
    }

    @Test
    void aBeanClassOfTwoContextsHasOneLimit() {
        ConfigurableApplicationContext child = start(new SpringApplicationBuilder(Plain.class, OfParent.class)
                .web(WebApplicationType.NONE)
                .parent(parent));

        parent.getBean(OfParent.class).nameless();
        child.getBean(OfParent.class).nameless();
        assertThatThrownBy(parent.getBean(OfParent.class)::nameless).isInstanceOf(RateLimitExceededException.class);
    }

    /** The text of the property is the same. */
    @Test
    void anotherValueOfAPlaceholderInTheChildStopsItsStart() {
        String common = "rate-limit.limits.placed.rate=${placed.rate:100/s}";
        ConfigurableApplicationContext parent = start(parentOfOthers(), common);
        assertThatThrownBy(() -> new SpringApplicationBuilder(Plain.class)
                        .web(WebApplicationType.NONE)
                        .parent(parent)
                        .properties(common, "placed.rate=5/h")
                        .run())
                .satisfies(failure -> assertThat(cause(failure)).isInstanceOf(InvalidRateLimitException.class))
                .hasMessageContaining(
                        "Property rate-limit.limits.placed.rate is 5/h in a child context, but 100/s in its parent");
    }

    @Test
    void aChildMayWriteOutTheValueThatItsParentHasByAPlaceholder() {
        ConfigurableApplicationContext parent =
                start(parentOfOthers(), "rate-limit.limits.placed.rate=${placed.rate:100/s}");
        ConfigurableApplicationContext child = start(
                new SpringApplicationBuilder(Plain.class)
                        .web(WebApplicationType.NONE)
                        .parent(parent),
                "rate-limit.limits.placed.rate=100/s");
        assertThat(TestLimits.of(child).limit("placed").limit())
                .hasToString("placed: token-bucket, rate 100/s, burst 100");
    }

    @ParameterizedTest
    @ValueSource(strings = {"rate-limit.redis.url=redis://me:secret@cache", "rate-limit.redis.password=secret"})
    void theValueOfAPropertyOfRedisIsNotShownBecauseItCanHoldAPassword(String property) {
        assertThatThrownBy(() -> new SpringApplicationBuilder(Web.class)
                        .web(WebApplicationType.NONE)
                        .parent(parent)
                        .properties(property)
                        .run())
                .satisfies(failure -> assertThat(cause(failure))
                        .isInstanceOf(InvalidRateLimitException.class)
                        .hasMessageContaining(property.substring(0, property.indexOf('=')))
                        .hasMessageNotContaining("secret"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "rate-limit.limits.stated.rate=4/h",
                "rate-limit.limits.more.rate=4/h",
                "rate-limit.memory.maximum-keys=17",
                "rate-limit.enabled=false"
            })
    void propertiesOfTheChildAloneStopItsStart(String property) {
        assertThatThrownBy(() -> new SpringApplicationBuilder(Web.class)
                        .web(WebApplicationType.NONE)
                        .parent(parent)
                        .properties(property)
                        .run())
                .satisfies(failure -> {
                    assertThat(cause(failure))
                            .isInstanceOf(InvalidRateLimitException.class)
                            .hasMessageContaining(property.substring(0, property.indexOf('=')))
                            .hasMessageContaining(property.substring(property.indexOf('=') + 1));
                    assertThat(Contexts.analyse(failure).getAction()).contains("parent");
                });
    }

    @Test
    void aParentThatIsSwitchedOffLeavesTheChildItsLimits() throws Exception {
        ConfigurableApplicationContext parent = start(
                new SpringApplicationBuilder(Parent.class).web(WebApplicationType.NONE), "rate-limit.enabled=false");
        ConfigurableApplicationContext child = start(
                new SpringApplicationBuilder(Web.class)
                        .web(WebApplicationType.SERVLET)
                        .parent(parent),
                "rate-limit.enabled=true");

        for (int i = 0; i < 3; i++) {
            parent.getBean(OfParent.class).call();
            assertThat(get(child, "/child").statusCode()).isEqualTo(200);
        }
        parent.getBean(OfParent.class).call();
        assertThat(get(child, "/child").statusCode()).isEqualTo(429);
        assertThat(TestLimits.of(child).tryAcquire("shared", null)).isFalse();
    }

    /** As in a WAR: the filters are those of the root context, the controllers those of a dispatcher servlet. */
    @Test
    void aRootContextAndTheContextOfAServletHaveOneSetOfLimits() throws Exception {
        ConfigurableApplicationContext root =
                start(new SpringApplicationBuilder(Root.class).web(WebApplicationType.SERVLET));

        assertThat(get(root, "/inner/child").statusCode()).isEqualTo(200);
        assertThat(get(root, "/inner/parent").statusCode()).isEqualTo(200);
        assertThat(get(root, "/inner/child").statusCode()).isEqualTo(200);
        HttpResponse<String> refused = get(root, "/inner/child");
        assertThat(refused.statusCode()).isEqualTo(429);
        assertThat(refused.headers().allValues("RateLimit")).hasSize(1);
        assertThat(get(root, "/inner/address").statusCode()).isEqualTo(200);
        assertThat(get(root, "/inner/address").statusCode()).isEqualTo(429);
        assertThat(get(root, "/actuator/ratelimits/shared").body()).contains("\"remaining\":0", "3/h");
    }

    /** The parent of the management context has the limits; that context has none of its own. */
    @Test
    void aManagementPortShowsTheLimitsOfAServletApplication() throws Exception {
        ConfigurableApplicationContext child = start(
                new SpringApplicationBuilder(Web.class)
                        .web(WebApplicationType.SERVLET)
                        .parent(parent),
                "management.server.port=0");
        assertThat(get(child, "/child").statusCode()).isEqualTo(200);

        URI management = URI.create("http://localhost:"
                + child.getEnvironment().getRequiredProperty("local.management.port") + "/actuator/ratelimits/shared/");
        HttpResponse<String> shown = HttpClient.newHttpClient()
                .send(HttpRequest.newBuilder(management.resolve("shared")).build(), BodyHandlers.ofString());

        assertThat(shown.statusCode()).isEqualTo(200);
        assertThat(shown.body()).contains("\"shared\"");
    }

    private static Throwable cause(Throwable failure) {
        return NestedExceptionUtils.getMostSpecificCause(failure);
    }

    private static SpringApplicationBuilder parentOfOthers() {
        return new SpringApplicationBuilder(Parent.class).web(WebApplicationType.NONE);
    }

    private static SpringApplicationBuilder childOf(ConfigurableApplicationContext parent, WebApplicationType type) {
        return new SpringApplicationBuilder(Web.class).web(type).parent(parent);
    }

    private ConfigurableApplicationContext start(SpringApplicationBuilder builder, String... more) {
        ConfigurableApplicationContext context = run(builder, more);
        started.add(context);
        return context;
    }

    private static ConfigurableApplicationContext run(SpringApplicationBuilder builder, String... more) {
        return builder.properties(
                        Stream.concat(Stream.of(PROPERTIES), Stream.of(more)).toArray(String[]::new))
                .run();
    }

    private static long remaining(ConfigurableApplicationContext context) {
        return TestLimits.of(context).peek("shared", null).remaining();
    }

    private static HttpResponse<String> get(ConfigurableApplicationContext context, String path, String... headers)
            throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder(uri(context, path));
        if (headers.length > 0) {
            request.headers(headers);
        }
        return HttpClient.newHttpClient().send(request.build(), BodyHandlers.ofString());
    }

    /** The property of the port is one for a parent and all children but the first. */
    private static URI uri(ConfigurableApplicationContext context, String path) {
        return URI.create("http://localhost:"
                + ((WebServerApplicationContext) context).getWebServer().getPort() + path);
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({OfParent.class, Received.class, SharedServers.OwnLoops.class})
    static class Parent {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }
    }

    static class Received implements DecisionObserver {

        private final List<String> events = new CopyOnWriteArrayList<>();

        @EventListener(RateLimitChangedEvent.class)
        void changed() {
            events.add("change");
        }

        @Override
        public void onDecision(RateLimitDecision decision) {
            events.add("decision " + (decision.outcome() == Outcome.ADMITTED));
        }
    }

    static class OfParent {

        @RateLimited(name = "shared", rate = "3/h")
        public String call() {
            return "parent";
        }

        @RateLimited(name = "address", rate = "1/h", key = "clientIp")
        public String ofAddress() {
            return "parent";
        }

        @RateLimited(rate = "2/h")
        public void nameless() {}
    }

    static class Nested {

        static class OfParent {

            @RateLimited(rate = "2/h")
            public void nameless() {}
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({Api.class, Refined.class})
    static class Web {}

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @EnableWebMvc
    @Import({Api.class, Refined.class})
    static class Inner {}

    @RestController
    static class Api {

        private final OfParent parent;

        Api(OfParent parent) {
            this.parent = parent;
        }

        @GetMapping("/child")
        @RateLimited(name = "shared", rate = "3/h")
        public String call() {
            return "child";
        }

        @GetMapping("/parent")
        String ofParent() {
            return parent.call();
        }

        @GetMapping("/address")
        String ofAddress() {
            return parent.ofAddress();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Plain {}

    static class Refined {

        @RateLimited(name = "refined", algorithm = Algorithm.SLIDING_LOG, rate = "9/h")
        public void call() {}
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Other.Service.class)
    static class Other {

        static class Service {

            @RateLimited(name = "shared", rate = "4/h")
            public void call() {}
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(OfParent.class)
    static class Root {

        @Bean
        ServletRegistrationBean<DispatcherServlet> inner() {
            AnnotationConfigWebApplicationContext context = new AnnotationConfigWebApplicationContext();
            context.register(Inner.class);
            ServletRegistrationBean<DispatcherServlet> servlet =
                    new ServletRegistrationBean<>(new DispatcherServlet(context), "/inner/*");
            servlet.setName("inner");
            servlet.setLoadOnStartup(1);
            return servlet;
        }
    }
}
