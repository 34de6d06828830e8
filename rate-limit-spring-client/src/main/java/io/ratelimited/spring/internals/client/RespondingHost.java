package io.ratelimited.spring.internals.client;

import java.net.URISyntaxException;
import org.apache.hc.client5.http.protocol.HttpClientContext;
import org.apache.hc.core5.http.EntityDetails;
import org.apache.hc.core5.http.HttpResponse;
import org.apache.hc.core5.http.HttpResponseInterceptor;
import org.apache.hc.core5.http.protocol.HttpContext;
import org.jspecify.annotations.Nullable;

/**
 * Reports to a call of {@code RestClient} or {@code RestTemplate} which host has responded, since a host behind a redirect does
 * not count: Apache's blocking client does not say so in its response. Thread-safe.
 */
public final class RespondingHost implements HttpResponseInterceptor {

    private final LimitedClients clients;

    /** @param clients whose hosts count */
    public RespondingHost(LimitedClients clients) {
        this.clients = clients;
    }

    @Override
    public void process(HttpResponse response, EntityDetails entity, HttpContext context) {
        ClientCall call = BlockingClientInterceptor.current();
        if (call != null) {
            call.answeredBy(client(context));
        }
    }

    private @Nullable LimitedClient client(HttpContext context) {
        try {
            return clients.of(HttpClientContext.cast(context).getRequest().getUri());
        } catch (URISyntaxException ex) {
            return null;
        }
    }
}
