package io.ratelimited.spring.autoconfigure.client;

import io.ratelimited.spring.autoconfigure.RateLimitProperties;
import io.ratelimited.spring.internals.client.FollowingConnector;
import io.ratelimited.spring.internals.client.FollowingRequestFactory;
import io.ratelimited.spring.internals.client.LimitedClients;
import io.ratelimited.spring.internals.text.LogText;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.http.client.ClientHttpRequestFactoryBuilder;
import org.springframework.boot.http.client.HttpClientSettings;
import org.springframework.boot.http.client.HttpRedirects;
import org.springframework.boot.http.client.reactive.ClientHttpConnectorBuilder;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.reactive.ClientHttpConnector;

/**
 * Wraps Spring Boot's builders of HTTP libraries, so that the redirects of limited calls are followed on this side of the
 * library. Where the application customizes the library, which may concern redirects, the library follows them.
 */
final class FollowedRedirects {

    private static final LogText.Lines LOG = LogText.lines(FollowedRedirects.class);

    /** Shares the event loops of Reactor Netty, and nothing else. */
    private static final String BOOTS = "reactorResourceFactoryClientHttpConnectorBuilderCustomizer";

    private FollowedRedirects() {}

    /**
     * Returns whether the library is as Spring Boot makes it; tells at startup if it is not.
     *
     * @param users the classes of Spring that use the library
     * @param customizer the type of beans that customize it
     */
    static boolean canBeFollowed(
            String users,
            Class<?> customizer,
            RateLimitProperties properties,
            ListableBeanFactory beans,
            ObjectProvider<HttpClientSettings> settings) {
        List<String> others = Arrays.stream(BeanFactoryUtils.beanNamesForTypeIncludingAncestors(beans, customizer))
                .filter(name -> !name.startsWith("io.ratelimited.") && !name.equals(BOOTS))
                .toList();
        HttpClientSettings common = settings.getIfUnique();
        if (!others.isEmpty() && (common == null || common.redirects() != HttpRedirects.DONT_FOLLOW)) {
            LOG.info(
                    "rate-limit.clients "
                            + (properties.clients() == null
                                    ? List.of()
                                    : properties.clients().keySet().stream()
                                            .sorted()
                                            .toList())
                            + " can be paused by a host to which theirs redirect, for max-pause at a time: beans "
                            + others
                            + " customize the HTTP library of " + users + ", which follows redirects itself. Set"
                            + " spring.http.clients.redirects to dont-follow, or configure the library by properties. [RL-335]");
        }
        return others.isEmpty();
    }

    /** The settings without redirects; null if there are none anyway. */
    private static @Nullable HttpClientSettings still(@Nullable HttpClientSettings settings) {
        HttpClientSettings usual = settings == null ? HttpClientSettings.defaults() : settings;
        return usual.redirects() == HttpRedirects.DONT_FOLLOW ? null : usual.withRedirects(HttpRedirects.DONT_FOLLOW);
    }

    /** For blocking clients. */
    record Factories(
            ClientHttpRequestFactoryBuilder<ClientHttpRequestFactory> builder, Supplier<LimitedClients> clients)
            implements ClientHttpRequestFactoryBuilder<ClientHttpRequestFactory> {

        @SuppressWarnings("unchecked") // it makes factories, whatever else they are
        static Factories of(ClientHttpRequestFactoryBuilder<?> builder, Supplier<LimitedClients> clients) {
            return new Factories((ClientHttpRequestFactoryBuilder<ClientHttpRequestFactory>) builder, clients);
        }

        @Override
        public ClientHttpRequestFactory build(@Nullable HttpClientSettings settings) {
            HttpClientSettings still = still(settings);
            ClientHttpRequestFactory usual = builder.build(settings);
            return still == null ? usual : new FollowingRequestFactory(usual, () -> builder.build(still), clients);
        }

        @Override
        public Factories withCustomizers(Collection<Consumer<ClientHttpRequestFactory>> customizers) {
            return new Factories(builder.withCustomizers(customizers), clients);
        }
    }

    /** For clients without threads. */
    record Connectors(ClientHttpConnectorBuilder<ClientHttpConnector> builder, Supplier<LimitedClients> clients)
            implements ClientHttpConnectorBuilder<ClientHttpConnector> {

        @SuppressWarnings("unchecked") // as above
        static Connectors of(ClientHttpConnectorBuilder<?> builder, Supplier<LimitedClients> clients) {
            return new Connectors((ClientHttpConnectorBuilder<ClientHttpConnector>) builder, clients);
        }

        @Override
        public ClientHttpConnector build(@Nullable HttpClientSettings settings) {
            HttpClientSettings still = still(settings);
            ClientHttpConnector usual = builder.build(settings);
            return still == null ? usual : new FollowingConnector(usual, () -> builder.build(still), clients);
        }

        @Override
        public Connectors withCustomizers(Collection<Consumer<ClientHttpConnector>> customizers) {
            return new Connectors(builder.withCustomizers(customizers), clients);
        }
    }
}
