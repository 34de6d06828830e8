package io.ratelimited.spring.autoconfigure.client;

import io.ratelimited.spring.internals.client.LimitedClient;
import io.ratelimited.spring.internals.client.LimitedClients;
import io.ratelimited.spring.internals.text.LogText;
import java.util.List;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.http.client.HttpClientSettings;
import org.springframework.boot.http.client.HttpRedirects;

/**
 * Tells at startup if the HTTP library follows redirects and does not report which host has responded behind them.
 *
 * @param <T> the type that selects the library
 */
final class FollowedRedirects<T> implements SmartInitializingSingleton {

    private static final LogText.Lines LOG = LogText.lines(FollowedRedirects.class);

    private final String users;
    private final LimitedClients clients;
    private final ObjectProvider<T> libraries;
    private final ObjectProvider<HttpClientSettings> settings;
    private final Class<? extends T> reporting;
    private final String remedy;

    /**
     * @param users the classes of Spring that use the library
     * @param reporting of the library that reports the host
     * @param remedy the name of that library
     */
    FollowedRedirects(
            String users,
            LimitedClients clients,
            ObjectProvider<T> libraries,
            ObjectProvider<HttpClientSettings> settings,
            Class<? extends T> reporting,
            String remedy) {
        this.users = users;
        this.clients = clients;
        this.libraries = libraries;
        this.settings = settings;
        this.reporting = reporting;
        this.remedy = remedy;
    }

    @Override
    public void afterSingletonsInstantiated() {
        HttpClientSettings common = settings.getIfUnique();
        T library = libraries.getIfUnique();
        if (library == null
                || reporting.isInstance(library)
                || (common != null && common.redirects() == HttpRedirects.DONT_FOLLOW)) {
            return;
        }
        List<String> names =
                clients.all().stream().map(LimitedClient::name).sorted().toList();
        LOG.info("rate-limit.clients " + names
                + " can be paused by a host to which theirs redirect, for max-pause at a time: the HTTP library of "
                + users + " follows redirects and does not report which host has responded. Set"
                + " spring.http.clients.redirects to dont-follow, or use " + remedy + ". [RL-335]");
    }
}
