package io.ratelimited.spring.autoconfigure.client;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.RateLimitProperties;
import io.ratelimited.spring.fields.RateLimitHeaderReader;
import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.internals.bean.InternalConfiguration;
import io.ratelimited.spring.internals.boot.OnEnabledCondition;
import io.ratelimited.spring.internals.call.LimitEnforcer;
import io.ratelimited.spring.internals.client.BlockingClientInterceptor;
import io.ratelimited.spring.internals.client.ClientProperties;
import io.ratelimited.spring.internals.client.LimitedClients;
import io.ratelimited.spring.internals.client.OkHttpInterceptor;
import io.ratelimited.spring.internals.client.OwnBuilders;
import io.ratelimited.spring.internals.client.ReactiveClientFilter;
import io.ratelimited.spring.internals.client.ResponseHeaders;
import io.ratelimited.spring.internals.client.SentOnce;
import io.ratelimited.spring.internals.client.UnlimitedClients;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.okhttp.RateLimitInterceptor;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import okhttp3.OkHttpClient;
import org.apache.hc.client5.http.impl.async.HttpAsyncClientBuilder;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.springframework.ai.anthropic.http.okhttp.AnthropicHttpClientBuilderCustomizer;
import org.springframework.ai.openai.http.okhttp.OpenAiHttpClientBuilderCustomizer;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.http.client.ClientHttpRequestFactoryBuilder;
import org.springframework.boot.http.client.HttpClientSettings;
import org.springframework.boot.http.client.HttpComponentsClientHttpRequestFactoryBuilder;
import org.springframework.boot.http.client.autoconfigure.ClientHttpRequestFactoryBuilderCustomizer;
import org.springframework.boot.http.client.autoconfigure.reactive.ClientHttpConnectorBuilderCustomizer;
import org.springframework.boot.http.client.reactive.ClientHttpConnectorBuilder;
import org.springframework.boot.http.client.reactive.HttpComponentsClientHttpConnectorBuilder;
import org.springframework.boot.restclient.RestClientCustomizer;
import org.springframework.boot.restclient.RestTemplateCustomizer;
import org.springframework.boot.webclient.WebClientCustomizer;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationListener;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Role;
import org.springframework.context.event.ContextClosedEvent;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.http.client.ClientHttpRequestInterceptor;
import org.springframework.util.ClassUtils;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.publisher.Mono;

/**
 * Wires the limits of calls to others: every {@code RestClient}, {@code RestTemplate} and {@code WebClient} that a builder of
 * Spring Boot or a bean builds, HTTP interface clients of service groups included, and the clients of the SDKs of Spring AI.
 */
@AutoConfiguration(after = RateLimitAutoConfiguration.class)
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@Conditional({OnEnabledCondition.class, OnClientsCondition.class})
@ConditionalOnBean({LimitRegistry.class, LimitEnforcer.class})
public final class ClientRateLimitAutoConfiguration {

    private static final String REST_CLIENT = "org.springframework.boot.restclient.RestClientCustomizer";
    private static final String WEB_CLIENT = "org.springframework.boot.webclient.WebClientCustomizer";
    private static final String OK_HTTP = "okhttp3.OkHttpClient";

    /** The clients, and the end of their waits, in the context of a hierarchy that has the limits. */
    @InternalConfiguration
    @ConditionalOnMissingBean(LimitedClients.class)
    static class ClientsConfiguration {

        @InternalBean("io.ratelimited.rateLimitedClients")
        @Lazy(false)
        LimitedClients rateLimitedClients(
                RateLimitProperties properties,
                LimitRegistry registry,
                LimitEnforcer enforcer,
                ObjectProvider<RateLimitHeaderReader> readers,
                ConfigurableListableBeanFactory beans) {
            Map<String, ClientProperties> clients = properties.clients() == null ? Map.of() : properties.clients();
            ClassLoader loader = getClass().getClassLoader();
            if (Stream.of(REST_CLIENT, WEB_CLIENT, OK_HTTP).noneMatch(name -> ClassUtils.isPresent(name, loader))) {
                throw new InvalidRateLimitException(
                        "Property rate-limit.clients has " + clients.keySet()
                                + ", but nothing on the class path builds clients that can be limited",
                        "Add org.springframework.boot:spring-boot-restclient or spring-boot-webclient, or remove the property. [RL-113]");
            }
            return new LimitedClients(
                    clients, registry, enforcer, readers.getIfAvailable(() -> ResponseHeaders::read), beans);
        }

        /** Ends the waits of calls when the context closes: they would hold up the beans that wait for these calls. */
        @InternalBean("io.ratelimited.closingClients")
        ApplicationListener<ContextClosedEvent> closingClients(LimitedClients clients, ApplicationContext context) {
            return event -> {
                if (event.getApplicationContext() == context) {
                    clients.close();
                }
            };
        }
    }

    /**
     * Apache's client repeats a call that is answered 429 or 503 when {@code Retry-After} is over, and one that fails: inside of
     * the limits, which would know of neither. Calls that are limited are sent once. The first customizer, so that an application
     * can decide otherwise.
     */
    @InternalConfiguration
    @ConditionalOnClass({
        HttpClientBuilder.class,
        HttpComponentsClientHttpRequestFactoryBuilder.class,
        ClientHttpRequestFactoryBuilderCustomizer.class
    })
    static class ApacheConfiguration {

        @InternalBean("io.ratelimited.sentOnce")
        @Order(Ordered.HIGHEST_PRECEDENCE)
        ClientHttpRequestFactoryBuilderCustomizer<HttpComponentsClientHttpRequestFactoryBuilder> sentOnce(
                LimitedClients clients) {
            return builder ->
                    builder.withHttpClientCustomizer(apache -> apache.setRetryStrategy(new SentOnce(clients)));
        }
    }

    /** As {@link ApacheConfiguration}, for {@code WebClient}. */
    @InternalConfiguration
    @ConditionalOnClass({
        HttpAsyncClientBuilder.class,
        HttpComponentsClientHttpConnectorBuilder.class,
        ClientHttpConnectorBuilderCustomizer.class
    })
    static class ReactiveApacheConfiguration {

        @InternalBean("io.ratelimited.sentOnceWithoutThread")
        @Order(Ordered.HIGHEST_PRECEDENCE)
        ClientHttpConnectorBuilderCustomizer<HttpComponentsClientHttpConnectorBuilder> sentOnceWithoutThread(
                LimitedClients clients) {
            return builder ->
                    builder.withHttpClientCustomizer(apache -> apache.setRetryStrategy(new SentOnce(clients)));
        }
    }

    /**
     * Blocking clients. The last customizer, so that its interceptor stands innermost. Without any client of the properties there
     * is no interceptor: with one, Spring keeps request bodies in memory.
     */
    @InternalConfiguration
    @ConditionalOnClass({RestClientCustomizer.class, RestClient.class})
    static class BlockingConfiguration {

        @InternalBean("io.ratelimited.rateLimitClientInterceptor")
        BlockingClientInterceptor rateLimitClientInterceptor(LimitedClients clients) {
            return new BlockingClientInterceptor(clients);
        }

        @InternalBean("io.ratelimited.rateLimitRestClientCustomizer")
        @Order(Ordered.LOWEST_PRECEDENCE)
        RestClientCustomizer rateLimitRestClientCustomizer(BlockingClientInterceptor interceptor) {
            return builder -> builder.requestInterceptor(interceptor);
        }

        @InternalBean("io.ratelimited.rateLimitRestTemplateCustomizer")
        @Order(Ordered.LOWEST_PRECEDENCE)
        RestTemplateCustomizer rateLimitRestTemplateCustomizer(BlockingClientInterceptor interceptor) {
            return template -> template.getInterceptors().add(interceptor);
        }

        @InternalBean("io.ratelimited.rateLimitOwnBlockingBuilders")
        static OwnBuilders rateLimitOwnBlockingBuilders(ObjectProvider<BlockingClientInterceptor> interceptors) {
            return new OwnBuilders(bean -> {
                if (bean instanceof RestClient.Builder builder) {
                    builder.requestInterceptors(all -> limit(all, interceptors));
                } else if (bean instanceof RestTemplate template) {
                    limit(template.getInterceptors(), interceptors);
                }
            });
        }

        private static void limit(
                List<ClientHttpRequestInterceptor> all, ObjectProvider<BlockingClientInterceptor> interceptors) {
            if (all.stream().noneMatch(BlockingClientInterceptor.class::isInstance)) {
                all.add(interceptors.getObject());
            }
        }

        @InternalBean("io.ratelimited.rateLimitBlockingRedirects")
        static ClientHttpRequestFactoryBuilderCustomizer<ClientHttpRequestFactoryBuilder<?>> rateLimitBlockingRedirects(
                LimitedClients clients, ListableBeanFactory beans, ObjectProvider<HttpClientSettings> settings) {
            return builder -> FollowedRedirects.canBeFollowed(
                            "RestClient and RestTemplate",
                            ClientHttpRequestFactoryBuilderCustomizer.class,
                            clients,
                            beans,
                            settings)
                    ? FollowedRedirects.Factories.of(builder, clients)
                    : builder;
        }

        @InternalBean("io.ratelimited.rateLimitUnlimitedRestClientBuilders")
        @Lazy(false)
        static UnlimitedClients<RestClient.Builder> rateLimitUnlimitedRestClientBuilders(
                ConfigurableListableBeanFactory beans) {
            return new UnlimitedClients<>(
                    beans,
                    RestClient.Builder.class,
                    BlockingConfiguration::isLimited,
                    "Create it with RestClientBuilderConfigurer.configure(RestClient.builder()).");
        }

        @InternalBean("io.ratelimited.rateLimitUnlimitedRestClients")
        @Lazy(false)
        static UnlimitedClients<RestClient> rateLimitUnlimitedRestClients(ConfigurableListableBeanFactory beans) {
            return new UnlimitedClients<>(
                    beans,
                    RestClient.class,
                    client -> isLimited(client.mutate()),
                    "Build it with a RestClient.Builder of Spring Boot.");
        }

        @InternalBean("io.ratelimited.rateLimitUnlimitedRestTemplates")
        @Lazy(false)
        static UnlimitedClients<RestTemplate> rateLimitUnlimitedRestTemplates(ConfigurableListableBeanFactory beans) {
            return new UnlimitedClients<>(
                    beans,
                    RestTemplate.class,
                    template ->
                            template.getInterceptors().stream().anyMatch(BlockingClientInterceptor.class::isInstance),
                    "Build it with a RestTemplateBuilder of Spring Boot.");
        }

        private static boolean isLimited(RestClient.Builder builder) {
            AtomicBoolean limited = new AtomicBoolean();
            builder.requestInterceptors(
                    all -> limited.set(all.stream().anyMatch(BlockingClientInterceptor.class::isInstance)));
            return limited.get();
        }
    }

    /** Clients without threads. The last customizer, so that its filter stands innermost. */
    @InternalConfiguration
    @ConditionalOnClass({WebClientCustomizer.class, WebClient.class, Mono.class})
    static class ReactiveConfiguration {

        @InternalBean("io.ratelimited.rateLimitClientFilter")
        ReactiveClientFilter rateLimitClientFilter(LimitedClients clients) {
            return new ReactiveClientFilter(clients);
        }

        @InternalBean("io.ratelimited.rateLimitWebClientCustomizer")
        @Order(Ordered.LOWEST_PRECEDENCE)
        WebClientCustomizer rateLimitWebClientCustomizer(ReactiveClientFilter filter) {
            return builder -> builder.filter(filter);
        }

        @InternalBean("io.ratelimited.rateLimitOwnBuilders")
        static OwnBuilders rateLimitOwnBuilders(ObjectProvider<ReactiveClientFilter> filters) {
            return new OwnBuilders(bean -> {
                if (bean instanceof WebClient.Builder builder && !isLimited(builder)) {
                    builder.filter(filters.getObject());
                }
            });
        }

        @InternalBean("io.ratelimited.rateLimitReactiveRedirects")
        static ClientHttpConnectorBuilderCustomizer<ClientHttpConnectorBuilder<?>> rateLimitReactiveRedirects(
                LimitedClients clients, ListableBeanFactory beans, ObjectProvider<HttpClientSettings> settings) {
            return builder -> FollowedRedirects.canBeFollowed(
                            "WebClient", ClientHttpConnectorBuilderCustomizer.class, clients, beans, settings)
                    ? FollowedRedirects.Connectors.of(builder, clients)
                    : builder;
        }

        @InternalBean("io.ratelimited.rateLimitUnlimitedWebClientBuilders")
        @Lazy(false)
        static UnlimitedClients<WebClient.Builder> rateLimitUnlimitedWebClientBuilders(
                ConfigurableListableBeanFactory beans) {
            return new UnlimitedClients<>(
                    beans,
                    WebClient.Builder.class,
                    ReactiveConfiguration::isLimited,
                    "Apply the beans of type WebClientCustomizer to it.");
        }

        @InternalBean("io.ratelimited.rateLimitUnlimitedWebClients")
        @Lazy(false)
        static UnlimitedClients<WebClient> rateLimitUnlimitedWebClients(ConfigurableListableBeanFactory beans) {
            return new UnlimitedClients<>(
                    beans,
                    WebClient.class,
                    client -> isLimited(client.mutate()),
                    "Build it with a WebClient.Builder of Spring Boot.");
        }

        private static boolean isLimited(WebClient.Builder builder) {
            AtomicBoolean limited = new AtomicBoolean();
            builder.filters(all -> limited.set(all.stream().anyMatch(ReactiveClientFilter.class::isInstance)));
            return limited.get();
        }
    }

    /** Clients that are built on OkHttp, by the application or by Spring AI for the SDKs of OpenAI and Anthropic. */
    @InternalConfiguration
    @ConditionalOnClass(OkHttpClient.class)
    static class OkHttpConfiguration {

        @InternalBean("io.ratelimited.rateLimitInterceptor")
        RateLimitInterceptor rateLimitInterceptor(LimitedClients clients) {
            return new OkHttpInterceptor(clients);
        }

        /** The last customizer, so that its interceptor stands innermost. */
        @InternalConfiguration
        @ConditionalOnClass(OpenAiHttpClientBuilderCustomizer.class)
        static class OpenAiConfiguration {

            @InternalBean("io.ratelimited.rateLimitOpenAiCustomizer")
            @Order(Ordered.LOWEST_PRECEDENCE)
            OpenAiHttpClientBuilderCustomizer rateLimitOpenAiCustomizer(RateLimitInterceptor interceptor) {
                return builder -> builder.interceptor(interceptor);
            }
        }

        /** As {@link OpenAiConfiguration}. */
        @InternalConfiguration
        @ConditionalOnClass(AnthropicHttpClientBuilderCustomizer.class)
        static class AnthropicConfiguration {

            @InternalBean("io.ratelimited.rateLimitAnthropicCustomizer")
            @Order(Ordered.LOWEST_PRECEDENCE)
            AnthropicHttpClientBuilderCustomizer rateLimitAnthropicCustomizer(RateLimitInterceptor interceptor) {
                return builder -> builder.interceptor(interceptor);
            }
        }
    }
}
