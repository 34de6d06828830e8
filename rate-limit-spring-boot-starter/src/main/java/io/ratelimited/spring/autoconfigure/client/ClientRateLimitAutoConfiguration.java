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
import io.ratelimited.spring.internals.client.ClientBeans;
import io.ratelimited.spring.internals.client.ClientProperties;
import io.ratelimited.spring.internals.client.LimitedClients;
import io.ratelimited.spring.internals.client.OkHttpInterceptor;
import io.ratelimited.spring.internals.client.ReactiveClientFilter;
import io.ratelimited.spring.internals.client.ResponseHeaders;
import io.ratelimited.spring.internals.client.SentOnce;
import io.ratelimited.spring.internals.limit.EndOfWaits;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.okhttp.RateLimitInterceptor;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import okhttp3.OkHttpClient;
import org.apache.hc.client5.http.impl.async.HttpAsyncClientBuilder;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.springframework.ai.anthropic.http.okhttp.AnthropicHttpClientBuilderCustomizer;
import org.springframework.ai.openai.http.okhttp.OpenAiHttpClientBuilderCustomizer;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Qualifier;
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
import org.springframework.boot.restclient.RestTemplateBuilder;
import org.springframework.boot.restclient.RestTemplateCustomizer;
import org.springframework.boot.webclient.WebClientCustomizer;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Role;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.util.ClassUtils;
import org.springframework.util.function.SingletonSupplier;
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

    /**
     * The clients for all that limits calls. A bean that takes part in decisions, such as an observer, may itself call others, so
     * the limits of its client cannot be made before it.
     */
    record LaterClients(Supplier<LimitedClients> clients) {}

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
                ObjectProvider<ClientBeans<?>> kinds,
                ConfigurableListableBeanFactory beans) {
            Map<String, ClientProperties> clients = properties.clients() == null ? Map.of() : properties.clients();
            ClassLoader loader = beans.getBeanClassLoader();
            if (Stream.of(REST_CLIENT, WEB_CLIENT, OK_HTTP).noneMatch(name -> ClassUtils.isPresent(name, loader))
                    && kinds.stream().noneMatch(ClientBeans::exist)) {
                throw new InvalidRateLimitException(
                        "Property rate-limit.clients has " + clients.keySet()
                                + ", but nothing on the class path builds clients that can be limited",
                        "Add org.springframework.boot:spring-boot-restclient or spring-boot-webclient, or remove the property. [RL-113]");
            }
            return new LimitedClients(
                    clients, registry, enforcer, readers.getIfAvailable(() -> ResponseHeaders::read), beans);
        }

        @InternalBean("io.ratelimited.rateLimitLaterClients")
        LaterClients rateLimitLaterClients(ObjectProvider<LimitedClients> clients) {
            return new LaterClients(SingletonSupplier.of(clients::getObject));
        }

        /** Ends the waits of calls when the context closes: they would hold up the beans that wait for these calls. */
        @InternalBean("io.ratelimited.closingClients")
        EndOfWaits closingClients(LimitedClients clients, ApplicationContext context) {
            return new EndOfWaits(context, clients::close);
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
                LaterClients later) {
            SentOnce once = new SentOnce(later.clients());
            return builder -> builder.withHttpClientCustomizer(apache -> apache.setRetryStrategy(once));
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
                LaterClients later) {
            SentOnce once = new SentOnce(later.clients());
            return builder -> builder.withHttpClientCustomizer(apache -> apache.setRetryStrategy(once));
        }
    }

    /**
     * Blocking clients of Spring. Without any client of the properties there is no interceptor: with one, Spring keeps request
     * bodies in memory.
     */
    @InternalConfiguration
    @ConditionalOnClass(RestClient.class)
    static class BlockingConfiguration {

        /** Made for the first that calls others by it: limits whose calls all wait without threads are told from others. */
        @InternalBean("io.ratelimited.rateLimitClientInterceptor")
        @Lazy
        BlockingClientInterceptor rateLimitClientInterceptor(LaterClients later) {
            return new BlockingClientInterceptor(later.clients());
        }

        @InternalBean("io.ratelimited.rateLimitRestClientBuilders")
        static ClientBeans<RestClient.Builder> rateLimitRestClientBuilders(
                ConfigurableListableBeanFactory beans, ObjectProvider<BlockingClientInterceptor> interceptor) {
            return new ClientBeans<>(
                    beans,
                    RestClient.Builder.class,
                    builder -> {
                        builder.requestInterceptors(
                                all -> interceptor.getObject().addTo(all));
                        return builder;
                    },
                    BlockingConfiguration::isLimited,
                    "Create it with RestClientBuilderConfigurer.configure(RestClient.builder()).");
        }

        @InternalBean("io.ratelimited.rateLimitRestTemplates")
        static ClientBeans<RestTemplate> rateLimitRestTemplates(
                ConfigurableListableBeanFactory beans, ObjectProvider<BlockingClientInterceptor> interceptor) {
            return new ClientBeans<>(
                    beans,
                    RestTemplate.class,
                    template -> {
                        interceptor.getObject().addTo(template.getInterceptors());
                        return template;
                    },
                    template -> BlockingClientInterceptor.isIn(template.getInterceptors()),
                    "Build it with a RestTemplateBuilder of Spring Boot.");
        }

        @InternalBean("io.ratelimited.rateLimitRestClients")
        static ClientBeans<RestClient> rateLimitRestClients(ConfigurableListableBeanFactory beans) {
            return new ClientBeans<>(
                    beans,
                    RestClient.class,
                    UnaryOperator.identity(),
                    client -> isLimited(client.mutate()),
                    "Build it with a RestClient.Builder of Spring Boot.");
        }

        private static boolean isLimited(RestClient.Builder builder) {
            AtomicBoolean limited = new AtomicBoolean();
            builder.requestInterceptors(all -> limited.set(BlockingClientInterceptor.isIn(all)));
            return limited.get();
        }
    }

    /** What Spring Boot builds blocking clients by. The last customizers, so that the interceptor stands innermost. */
    @InternalConfiguration
    @ConditionalOnClass({RestClientCustomizer.class, RestClient.class})
    static class BootsBlockingConfiguration {

        private static final String TEMPLATES = "io.ratelimited.rateLimitRestTemplateCustomizer";

        @InternalBean("io.ratelimited.rateLimitRestClientCustomizer")
        @Order(Ordered.LOWEST_PRECEDENCE)
        RestClientCustomizer rateLimitRestClientCustomizer(BlockingClientInterceptor interceptor) {
            return builder -> builder.requestInterceptors(interceptor::addTo);
        }

        @InternalBean(TEMPLATES)
        @Order(Ordered.LOWEST_PRECEDENCE)
        RestTemplateCustomizer rateLimitRestTemplateCustomizer(BlockingClientInterceptor interceptor) {
            return template -> interceptor.addTo(template.getInterceptors());
        }

        /** A builder is immutable, and another one, of this very class, takes its place. It has a customizer once. */
        @InternalBean("io.ratelimited.rateLimitRestTemplateBuilders")
        static ClientBeans<RestTemplateBuilder> rateLimitRestTemplateBuilders(
                ConfigurableListableBeanFactory beans,
                @Qualifier(TEMPLATES) ObjectProvider<RestTemplateCustomizer> customizer) {
            return new ClientBeans<>(
                    beans,
                    RestTemplateBuilder.class,
                    builder -> canBeReplaced(builder) ? builder.additionalCustomizers(customizer.getObject()) : builder,
                    BootsBlockingConfiguration::canBeReplaced,
                    "Make the bean a RestTemplateBuilder, not a subclass of it.");
        }

        private static boolean canBeReplaced(RestTemplateBuilder builder) {
            return builder.getClass() == RestTemplateBuilder.class;
        }

        @InternalBean("io.ratelimited.rateLimitBlockingRedirects")
        static ClientHttpRequestFactoryBuilderCustomizer<ClientHttpRequestFactoryBuilder<?>> rateLimitBlockingRedirects(
                LaterClients later,
                RateLimitProperties properties,
                ListableBeanFactory beans,
                ObjectProvider<HttpClientSettings> settings) {
            return builder -> FollowedRedirects.canBeFollowed(
                            "RestClient and RestTemplate",
                            ClientHttpRequestFactoryBuilderCustomizer.class,
                            properties,
                            beans,
                            settings)
                    ? FollowedRedirects.Factories.of(builder, later.clients())
                    : builder;
        }
    }

    /** Clients of Spring without threads. */
    @InternalConfiguration
    @ConditionalOnClass({WebClient.class, Mono.class})
    static class ReactiveConfiguration {

        /** As {@link BlockingConfiguration#rateLimitClientInterceptor}. */
        @InternalBean("io.ratelimited.rateLimitClientFilter")
        @Lazy
        ReactiveClientFilter rateLimitClientFilter(LaterClients later) {
            return new ReactiveClientFilter(later.clients());
        }

        @InternalBean("io.ratelimited.rateLimitWebClientBuilders")
        static ClientBeans<WebClient.Builder> rateLimitWebClientBuilders(
                ConfigurableListableBeanFactory beans, ObjectProvider<ReactiveClientFilter> filter) {
            return new ClientBeans<>(
                    beans,
                    WebClient.Builder.class,
                    builder -> {
                        builder.filters(all -> filter.getObject().addTo(all));
                        return builder;
                    },
                    ReactiveConfiguration::isLimited,
                    "Apply the beans of type WebClientCustomizer to it.");
        }

        @InternalBean("io.ratelimited.rateLimitWebClients")
        static ClientBeans<WebClient> rateLimitWebClients(ConfigurableListableBeanFactory beans) {
            return new ClientBeans<>(
                    beans,
                    WebClient.class,
                    UnaryOperator.identity(),
                    client -> isLimited(client.mutate()),
                    "Build it with a WebClient.Builder of Spring Boot.");
        }

        private static boolean isLimited(WebClient.Builder builder) {
            AtomicBoolean limited = new AtomicBoolean();
            builder.filters(all -> limited.set(ReactiveClientFilter.isIn(all)));
            return limited.get();
        }
    }

    /** As {@link BootsBlockingConfiguration}, for {@code WebClient}. */
    @InternalConfiguration
    @ConditionalOnClass({WebClientCustomizer.class, WebClient.class, Mono.class})
    static class BootsReactiveConfiguration {

        @InternalBean("io.ratelimited.rateLimitWebClientCustomizer")
        @Order(Ordered.LOWEST_PRECEDENCE)
        WebClientCustomizer rateLimitWebClientCustomizer(ReactiveClientFilter filter) {
            return builder -> builder.filters(filter::addTo);
        }

        @InternalBean("io.ratelimited.rateLimitReactiveRedirects")
        static ClientHttpConnectorBuilderCustomizer<ClientHttpConnectorBuilder<?>> rateLimitReactiveRedirects(
                LaterClients later,
                RateLimitProperties properties,
                ListableBeanFactory beans,
                ObjectProvider<HttpClientSettings> settings) {
            return builder -> FollowedRedirects.canBeFollowed(
                            "WebClient", ClientHttpConnectorBuilderCustomizer.class, properties, beans, settings)
                    ? FollowedRedirects.Connectors.of(builder, later.clients())
                    : builder;
        }
    }

    /** Clients that are built on OkHttp, by the application or by Spring AI for the SDKs of OpenAI and Anthropic. */
    @InternalConfiguration
    @ConditionalOnClass(OkHttpClient.class)
    static class OkHttpConfiguration {

        @InternalBean("io.ratelimited.rateLimitInterceptor")
        RateLimitInterceptor rateLimitInterceptor(LaterClients later) {
            return new OkHttpInterceptor(later.clients());
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
