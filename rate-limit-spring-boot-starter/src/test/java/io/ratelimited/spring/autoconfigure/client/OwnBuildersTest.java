package io.ratelimited.spring.autoconfigure.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.internals.client.BlockingClientInterceptor;
import io.ratelimited.spring.internals.client.ReactiveClientFilter;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.http.client.autoconfigure.HttpClientAutoConfiguration;
import org.springframework.boot.http.client.autoconfigure.imperative.ImperativeHttpClientAutoConfiguration;
import org.springframework.boot.restclient.RestTemplateBuilder;
import org.springframework.boot.restclient.autoconfigure.RestClientAutoConfiguration;
import org.springframework.boot.restclient.autoconfigure.RestClientBuilderConfigurer;
import org.springframework.boot.restclient.autoconfigure.RestTemplateAutoConfiguration;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.HttpMethod;
import org.springframework.http.HttpStatus;
import org.springframework.http.client.ClientHttpRequestInterceptor;
import org.springframework.mock.http.client.MockClientHttpRequest;
import org.springframework.mock.http.client.MockClientHttpResponse;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;
import org.springframework.web.reactive.function.client.ClientRequest;
import org.springframework.web.reactive.function.client.ClientResponse;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.publisher.Mono;

/** Builders that the application makes itself, with a load balancer as Spring Cloud adds it to a bean. */
class OwnBuildersTest {

    private static final AtomicInteger SENT = new AtomicInteger();

    private interface Calls {

        void of(ApplicationContext context);
    }

    private static void run(Calls calls) {
        SENT.set(0);
        Contexts.runner(new ManualTicker())
                .withConfiguration(AutoConfigurations.of(
                        ClientRateLimitAutoConfiguration.class,
                        HttpClientAutoConfiguration.class,
                        ImperativeHttpClientAutoConfiguration.class,
                        RestClientAutoConfiguration.class,
                        RestTemplateAutoConfiguration.class))
                .withUserConfiguration(Builders.class)
                .withPropertyValues(
                        "rate-limit.clients.orders.hosts=orders",
                        "rate-limit.clients.orders.limits=calls",
                        "rate-limit.clients.orders.policy=reject",
                        "rate-limit.limits.calls.rate=2/h")
                .run(calls::of);
    }

    private static void assertTwoAreSent(Runnable call) {
        call.run();
        call.run();
        assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(call::run);
        assertThat(SENT).hasValue(2);
    }

    @Test
    void aBuilderIsLimitedByTheNameOfTheService() {
        for (String name : List.of("builder", "configured", "produced")) {
            run(context -> {
                RestClient client =
                        context.getBean(name, RestClient.Builder.class).build();
                assertTwoAreSent(
                        () -> client.get().uri("http://orders/1").retrieve().toBodilessEntity());
            });
        }
    }

    @Test
    void aTemplateIsLimitedByTheNameOfTheService() {
        for (String name : List.of("template", "configuredTemplate")) {
            run(context -> {
                RestTemplate template = context.getBean(name, RestTemplate.class);
                assertTwoAreSent(() -> template.getForEntity("http://orders/1", String.class));
            });
        }
    }

    @Test
    void aReactiveBuilderIsLimitedByTheNameOfTheService() {
        run(context -> {
            WebClient client = context.getBean(WebClient.Builder.class).build();
            assertTwoAreSent(() -> client.get()
                    .uri("http://orders/1")
                    .retrieve()
                    .toBodilessEntity()
                    .block());
        });
    }

    @Test
    void noneHasTheLimitsTwice() {
        run(context -> {
            for (RestClient.Builder builder :
                    context.getBeansOfType(RestClient.Builder.class).values()) {
                builder.requestInterceptors(all -> assertThat(all)
                        .filteredOn(BlockingClientInterceptor.class::isInstance)
                        .hasSize(1));
            }
            for (RestTemplate template :
                    context.getBeansOfType(RestTemplate.class).values()) {
                assertThat(template.getInterceptors())
                        .filteredOn(BlockingClientInterceptor.class::isInstance)
                        .hasSize(1);
            }
            context.getBean(WebClient.Builder.class)
                    .filters(all -> assertThat(all)
                            .filteredOn(ReactiveClientFilter.class::isInstance)
                            .hasSize(1));
        });
    }

    @Configuration(proxyBeanMethods = false)
    static class Builders {

        /** Chooses an instance, and calls it: not before the limits, which know the service. */
        private static final ClientHttpRequestInterceptor BALANCER = (request, body, execution) -> {
            assertThat(request.getURI()).hasHost("orders");
            SENT.incrementAndGet();
            return new MockClientHttpResponse(new byte[0], HttpStatus.OK);
        };

        @Bean
        static BeanPostProcessor balancer() {
            return new BeanPostProcessor() {

                @Override
                public Object postProcessBeforeInitialization(Object bean, String name) {
                    if (bean instanceof RestClient.Builder builder) {
                        builder.requestInterceptor(BALANCER);
                    } else if (bean instanceof WebClient.Builder builder) {
                        builder.filter((request, next) -> next.exchange(ClientRequest.from(request)
                                .url(URI.create("http://192.0.2.1:8080/1"))
                                .build()));
                    } else if (bean instanceof RestTemplate template) {
                        List<ClientHttpRequestInterceptor> all = new ArrayList<>(template.getInterceptors());
                        all.add(BALANCER);
                        template.setInterceptors(all);
                    }
                    return bean;
                }
            };
        }

        @Bean
        RestClient.Builder builder() {
            return RestClient.builder();
        }

        @Bean
        RestClient.Builder configured(RestClientBuilderConfigurer configurer) {
            return configurer.configure(RestClient.builder());
        }

        @Bean
        FactoryBean<RestClient.Builder> produced() {
            return new FactoryBean<>() {

                @Override
                public RestClient.Builder getObject() {
                    return RestClient.builder()
                            .requestFactory((uri, method) -> new MockClientHttpRequest(HttpMethod.GET, uri) {

                                @Override
                                protected MockClientHttpResponse executeInternal() {
                                    SENT.incrementAndGet();
                                    return new MockClientHttpResponse(new byte[0], HttpStatus.OK);
                                }
                            });
                }

                @Override
                public Class<?> getObjectType() {
                    return RestClient.Builder.class;
                }
            };
        }

        @Bean
        RestTemplate template() {
            return new RestTemplate();
        }

        @Bean
        RestTemplate configuredTemplate(RestTemplateBuilder builder) {
            return builder.build();
        }

        @Bean
        WebClient.Builder reactive() {
            return WebClient.builder().exchangeFunction(request -> {
                assertThat(request.url()).hasHost("192.0.2.1");
                SENT.incrementAndGet();
                return Mono.just(ClientResponse.create(HttpStatus.OK).build());
            });
        }
    }
}
