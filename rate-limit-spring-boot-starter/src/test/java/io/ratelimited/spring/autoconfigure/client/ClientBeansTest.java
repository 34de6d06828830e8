package io.ratelimited.spring.autoconfigure.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.mockito.Mockito.mock;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.RateLimitDecision;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.internals.client.BlockingClientInterceptor;
import io.ratelimited.spring.okhttp.RateLimitInterceptor;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.stream.Stream;
import okhttp3.OkHttpClient;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.aop.scope.ScopedObject;
import org.springframework.beans.factory.config.CustomScopeConfigurer;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.http.client.autoconfigure.HttpClientAutoConfiguration;
import org.springframework.boot.http.client.autoconfigure.imperative.ImperativeHttpClientAutoConfiguration;
import org.springframework.boot.http.client.autoconfigure.reactive.ReactiveHttpClientAutoConfiguration;
import org.springframework.boot.restclient.RestTemplateBuilder;
import org.springframework.boot.restclient.autoconfigure.RestClientAutoConfiguration;
import org.springframework.boot.restclient.autoconfigure.RestTemplateAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.webclient.autoconfigure.WebClientAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Scope;
import org.springframework.context.annotation.ScopedProxyMode;
import org.springframework.context.support.SimpleThreadScope;
import org.springframework.http.HttpMethod;
import org.springframework.http.HttpStatus;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.ReactorResourceFactory;
import org.springframework.mock.http.client.MockClientHttpRequest;
import org.springframework.mock.http.client.MockClientHttpResponse;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;
import org.springframework.web.reactive.function.client.ClientResponse;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.publisher.Mono;

/** The beans by which an application calls others, of each kind and however it has come by them. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class ClientBeansTest {

    private static final String BOOTS_REST_CLIENT = "org.springframework.boot.restclient";
    private static final String BOOTS_WEB_CLIENT = "org.springframework.boot.webclient";
    private static final String[] CLIENT = {
        "rate-limit.clients.orders.hosts=orders",
        "rate-limit.clients.orders.limits=calls",
        "rate-limit.clients.orders.policy=reject",
        "rate-limit.limits.calls.rate=2/h"
    };

    private static final AtomicInteger SENT = new AtomicInteger();

    /** Answers without a network. */
    private static final ClientHttpRequestFactory NETWORK =
            (uri, method) -> new MockClientHttpRequest(HttpMethod.GET, uri) {

                @Override
                protected MockClientHttpResponse executeInternal() {
                    SENT.incrementAndGet();
                    return new MockClientHttpResponse(new byte[0], HttpStatus.OK);
                }
            };

    private static ApplicationContextRunner plain(Class<?> configuration) {
        SENT.set(0);
        return Contexts.runner(new ManualTicker())
                .withConfiguration(AutoConfigurations.of(ClientRateLimitAutoConfiguration.class))
                .withUserConfiguration(configuration)
                .withPropertyValues(CLIENT);
    }

    private static ApplicationContextRunner runner(Class<?> configuration) {
        return plain(configuration)
                .withConfiguration(AutoConfigurations.of(
                        HttpClientAutoConfiguration.class,
                        ImperativeHttpClientAutoConfiguration.class,
                        ReactiveHttpClientAutoConfiguration.class,
                        RestClientAutoConfiguration.class,
                        RestTemplateAutoConfiguration.class,
                        WebClientAutoConfiguration.class))
                .withBean(ReactorResourceFactory.class, Contexts::reactorResources);
    }

    private static void assertTwoAreSent(Runnable call) {
        SENT.set(0);
        call.run();
        call.run();
        assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(call::run);
        assertThat(SENT).hasValue(2);
    }

    private static void assertLimited(RestTemplate template) {
        assertTwoAreSent(() -> template.getForEntity("http://orders/1", String.class));
    }

    private static void assertLimited(RestClient client) {
        assertTwoAreSent(() -> client.get().uri("http://orders/1").retrieve().toBodilessEntity());
    }

    private static void assertLimited(WebClient client) {
        assertTwoAreSent(() -> client.get()
                .uri("http://orders/1")
                .retrieve()
                .toBodilessEntity()
                .block());
    }

    private static List<String> warnings(CapturedOutput output) {
        return output.getAll().lines().filter(line -> line.contains("[RL-230]")).toList();
    }

    @ParameterizedTest
    @ValueSource(strings = {BOOTS_REST_CLIENT, BOOTS_WEB_CLIENT, BOOTS_REST_CLIENT + "," + BOOTS_WEB_CLIENT})
    void buildersAndTemplatesAreLimitedWithoutSpringBootsModuleForTheirKind(String missing, CapturedOutput output) {
        ApplicationContextRunner runner =
                plain(OwnClients.class).withClassLoader(new FilteredClassLoader((missing + ",okhttp3").split(",", -1)));
        runner.run(context -> assertLimited(context.getBean(RestTemplate.class)));
        runner.run(context ->
                assertLimited(context.getBean(RestClient.Builder.class).build()));
        runner.run(context ->
                assertLimited(context.getBean(WebClient.Builder.class).build()));
        assertThat(warnings(output))
                .hasSize(6)
                .allMatch(line -> line.contains("bean 'client'") || line.contains("bean 'reactiveClient'"));
    }

    @Test
    void withoutAnythingThatCanBeLimitedStartupFails() {
        ApplicationContextRunner runner = plain(Nothing.class)
                .withClassLoader(new FilteredClassLoader(BOOTS_REST_CLIENT, BOOTS_WEB_CLIENT, "okhttp3"));
        runner.run(context -> assertThat(context)
                .getFailure()
                .rootCause()
                .isInstanceOf(InvalidRateLimitException.class)
                .hasMessageContaining("nothing on the class path builds clients"));
    }

    @Test
    void aBuilderOfTemplatesIsLimited() {
        runner(OwnTemplateBuilder.class).run(context -> {
            assertThat(context.getBean(RestTemplateBuilder.class).build().getInterceptors())
                    .hasSize(1);
            assertLimited(context.getBean(RestTemplateBuilder.class).build());
        });
        runner(Nothing.class).run(context -> {
            RestTemplateBuilder boots = context.getBean(RestTemplateBuilder.class);
            assertThat(boots.build().getInterceptors()).hasSize(1);
            assertLimited(boots.requestFactory(() -> NETWORK).build());
        });
    }

    @Test
    void aBuilderOfTemplatesOfAnotherClassStaysAsItIsAndIsNamed(CapturedOutput output) {
        runner(Subclass.class).run(context -> assertThat(context).hasNotFailed().hasSingleBean(Subclass.Builder.class));
        assertThat(warnings(output))
                .singleElement()
                .asString()
                .contains("bean 'special'")
                .contains("this RestTemplateBuilder itself");
    }

    @Test
    void mocksAreLeftAloneAndNotNamed(CapturedOutput output) {
        runner(Mocks.class)
                .run(context -> assertThat(context)
                        .hasNotFailed()
                        .getBean(RestTemplateBuilder.class)
                        .isSameAs(Mocks.TEMPLATES));
        assertThat(warnings(output)).isEmpty();
    }

    /** As {@code @MockitoBean} registers them. */
    @Test
    void mocksThatAreRegisteredAsTheyAreAreNotNamed(CapturedOutput output) {
        runner(Nothing.class)
                .withInitializer(context -> {
                    context.getBeanFactory().registerSingleton("client", mock(RestClient.class));
                    context.getBeanFactory().registerSingleton("reactiveClient", mock(WebClient.class));
                })
                .run(context -> assertThat(context).hasNotFailed());
        assertThat(warnings(output)).isEmpty();
    }

    /** A warning is all that the look at it is for. */
    @Test
    void aClientThatCannotTellWhetherItIsLimitedDoesNotFailStartup() {
        runner(Odd.class).run(context -> assertThat(context).hasNotFailed());
    }

    @Test
    void whatAScopeMakesIsLimitedAndItsProxyIsLeftAlone(CapturedOutput output) {
        runner(Scoped.class).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(Scoped.MADE).as("made at startup").hasValue(0);
            RestTemplate template = context.getBean("template", RestTemplate.class);
            assertThat(template).isInstanceOf(ScopedObject.class);
            assertLimited(template);
            assertThat(template.getInterceptors())
                    .filteredOn(BlockingClientInterceptor.class::isInstance)
                    .hasSize(1);
        });
        assertThat(warnings(output)).isEmpty();
    }

    static Stream<Class<?>> whatTakesPartInDecisionsCanCallOthers() {
        return Stream.of(
                Observers.OfRestClient.class,
                Observers.OfRestTemplate.class,
                Observers.OfWebClient.class,
                Observers.OfOkHttp.class,
                Observers.Backend.class);
    }

    /** Its client has the limits that it takes part in. */
    @ParameterizedTest
    @MethodSource
    void whatTakesPartInDecisionsCanCallOthers(Class<?> configuration) {
        runner(configuration).run(context -> {
            assertThat(context).hasNotFailed();
            assertLimited(context.getBean(RestClient.Builder.class)
                    .requestFactory(NETWORK)
                    .build());
        });
    }

    @Test
    void nothingIsMadeBeforeItsTime(CapturedOutput output) {
        runner(OwnClients.class).run(context -> assertThat(context).hasNotFailed());
        assertThat(output).doesNotContain("is not eligible for getting processed by all BeanPostProcessors");
    }

    @Configuration(proxyBeanMethods = false)
    static class Nothing {}

    @Configuration(proxyBeanMethods = false)
    static class OwnClients {

        @Bean
        RestTemplate template() {
            return new RestTemplate(NETWORK);
        }

        @Bean
        RestClient.Builder builder() {
            return RestClient.builder().requestFactory(NETWORK);
        }

        @Bean
        RestClient client() {
            return RestClient.create();
        }

        @Bean
        WebClient.Builder reactive() {
            return WebClient.builder().exchangeFunction(request -> {
                SENT.incrementAndGet();
                return Mono.just(ClientResponse.create(HttpStatus.OK).build());
            });
        }

        @Bean
        WebClient reactiveClient() {
            return WebClient.create();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OwnTemplateBuilder {

        @Bean
        RestTemplateBuilder templates() {
            return new RestTemplateBuilder().requestFactory(() -> NETWORK);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Subclass {

        static final class Builder extends RestTemplateBuilder {}

        @Bean
        Builder special() {
            return new Builder();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Mocks {

        static final RestTemplateBuilder TEMPLATES = mock(RestTemplateBuilder.class);

        @Bean
        RestTemplateBuilder templates() {
            return TEMPLATES;
        }

        @Bean
        RestTemplate template() {
            return mock(RestTemplate.class);
        }

        @Bean
        RestClient.Builder builder() {
            return mock(RestClient.Builder.class);
        }

        @Bean
        RestClient client() {
            return mock(RestClient.class);
        }

        @Bean
        WebClient.Builder reactive() {
            return mock(WebClient.Builder.class);
        }

        @Bean
        WebClient reactiveClient() {
            return mock(WebClient.class);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Odd {

        @Bean
        RestClient client() {
            return (RestClient) java.lang.reflect.Proxy.newProxyInstance(
                    getClass().getClassLoader(), new Class<?>[] {RestClient.class}, (proxy, method, arguments) -> {
                        throw new UnsupportedOperationException(method.getName());
                    });
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Scoped {

        static final AtomicInteger MADE = new AtomicInteger();

        /** As a request, it is not there at startup. */
        @Bean
        static CustomScopeConfigurer requests() {
            CustomScopeConfigurer scopes = new CustomScopeConfigurer();
            scopes.addScope("call", new SimpleThreadScope());
            return scopes;
        }

        @Bean
        @Scope(value = "call", proxyMode = ScopedProxyMode.TARGET_CLASS)
        RestTemplate template() {
            MADE.incrementAndGet();
            return new RestTemplate(NETWORK);
        }

        @Bean
        @Scope(value = "call", proxyMode = ScopedProxyMode.INTERFACES)
        WebClient client() {
            MADE.incrementAndGet();
            return WebClient.create();
        }

        @Bean
        Supplier<RestTemplate> user(RestTemplate template) {
            return () -> template;
        }
    }

    /** Beans that report each decision elsewhere, or let others decide. */
    private static final class Observers {

        private record Observer(Object client) implements DecisionObserver {

            @Override
            public void onDecision(RateLimitDecision decision) {}
        }

        @Configuration(proxyBeanMethods = false)
        static class OfRestClient {

            @Bean
            Observer observer(RestClient.Builder builder) {
                return new Observer(builder.build());
            }
        }

        @Configuration(proxyBeanMethods = false)
        static class OfRestTemplate {

            @Bean
            Observer observer(RestTemplateBuilder builder) {
                return new Observer(builder.build());
            }
        }

        @Configuration(proxyBeanMethods = false)
        static class OfWebClient {

            @Bean
            Observer observer(WebClient.Builder builder) {
                return new Observer(builder.build());
            }
        }

        @Configuration(proxyBeanMethods = false)
        static class OfOkHttp {

            @Bean
            Observer observer(RateLimitInterceptor limits) {
                return new Observer(
                        new OkHttpClient.Builder().addInterceptor(limits).build());
            }
        }

        @Configuration(proxyBeanMethods = false)
        static class Backend {

            @Bean
            LimiterFactory backend(RestClient.Builder builder) {
                RestClient client = builder.build();
                return new LimiterFactory() {

                    @Override
                    public String backend() {
                        return client == null ? "none" : "memory";
                    }

                    @Override
                    public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
                        return new InMemoryRateLimiter(limit);
                    }
                };
            }
        }
    }
}
