package io.ratelimited.spring.internals.client;

import java.io.IOException;
import java.net.URISyntaxException;
import java.util.function.Supplier;
import org.apache.hc.client5.http.HttpRequestRetryStrategy;
import org.apache.hc.client5.http.impl.DefaultHttpRequestRetryStrategy;
import org.apache.hc.client5.http.protocol.HttpClientContext;
import org.apache.hc.core5.http.HttpRequest;
import org.apache.hc.core5.http.HttpResponse;
import org.apache.hc.core5.http.protocol.HttpContext;
import org.apache.hc.core5.util.TimeValue;

/**
 * Repeats no call that is limited, and none behind a redirect of the library, which may be part of one; others as Apache's
 * client does by itself. Thread-safe.
 */
public final class SentOnce implements HttpRequestRetryStrategy {

    private final Supplier<LimitedClients> clients;
    private final HttpRequestRetryStrategy others = DefaultHttpRequestRetryStrategy.INSTANCE;

    /** @param clients whose calls are sent once */
    public SentOnce(Supplier<LimitedClients> clients) {
        this.clients = clients;
    }

    @Override
    public boolean retryRequest(HttpRequest request, IOException failure, int attempts, HttpContext context) {
        return !isLimited(request, context) && others.retryRequest(request, failure, attempts, context);
    }

    @Override
    public boolean retryRequest(HttpResponse response, int attempts, HttpContext context) {
        HttpRequest request = HttpClientContext.cast(context).getRequest();
        return !isLimited(request, context) && others.retryRequest(response, attempts, context);
    }

    @Override
    public TimeValue getRetryInterval(HttpResponse response, int attempts, HttpContext context) {
        return others.getRetryInterval(response, attempts, context);
    }

    private boolean isLimited(HttpRequest request, HttpContext context) {
        try {
            return BlockingClientInterceptor.current() != null
                    || context.getAttribute(FollowingConnector.LIMITED) != null
                    || HttpClientContext.cast(context).getRedirectLocations().size() > 0
                    || clients.get().of(request.getUri()) != null;
        } catch (URISyntaxException ex) {
            return true;
        }
    }
}
