package io.ratelimited.spring.internals.client;

import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpMethod;
import org.springframework.http.StreamingHttpOutputMessage;
import org.springframework.http.client.AbstractClientHttpRequest;
import org.springframework.http.client.AbstractClientHttpRequestFactoryWrapper;
import org.springframework.http.client.ClientHttpRequest;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.ClientHttpResponse;
import org.springframework.util.FastByteArrayOutputStream;

/**
 * Follows the redirects of limited calls of {@code RestClient} and {@code RestTemplate}, behind all interceptors, and reports to
 * the call which host has responded. Leaves all other requests to the HTTP library. Thread-safe.
 */
public final class FollowingRequestFactory extends AbstractClientHttpRequestFactoryWrapper implements DisposableBean {

    private final HttpLibrary<ClientHttpRequestFactory> library;
    private final Supplier<LimitedClients> clients;

    /** @param still makes the same library, which follows no redirects */
    public FollowingRequestFactory(
            ClientHttpRequestFactory usual,
            Supplier<ClientHttpRequestFactory> still,
            Supplier<LimitedClients> clients) {
        super(usual);
        this.library = new HttpLibrary<>(usual, still);
        this.clients = clients;
    }

    @Override
    protected ClientHttpRequest createRequest(URI uri, HttpMethod method, ClientHttpRequestFactory usual)
            throws IOException {
        ClientCall call = BlockingClientInterceptor.current();
        return call == null ? usual.createRequest(uri, method) : new Request(call, Hop.first(method, uri));
    }

    @Override
    public void destroy() throws Exception {
        library.close();
    }

    private final class Request extends AbstractClientHttpRequest implements StreamingHttpOutputMessage {

        private final ClientCall call;
        private final Hop first;
        private @Nullable FastByteArrayOutputStream written;
        private @Nullable Body body;

        private Request(ClientCall call, Hop first) {
            this.call = call;
            this.first = first;
        }

        @Override
        public HttpMethod getMethod() {
            return first.method();
        }

        @Override
        public URI getURI() {
            return first.uri();
        }

        @Override
        public void setBody(Body body) {
            this.body = body;
        }

        @Override
        protected OutputStream getBodyInternal(HttpHeaders headers) {
            if (written == null) {
                written = new FastByteArrayOutputStream();
                body = written::writeTo;
            }
            return written;
        }

        @Override
        protected ClientHttpResponse executeInternal(HttpHeaders headers) throws IOException {
            Hop hop = first;
            ClientHttpResponse response = send(hop, headers);
            for (Hop next = next(hop, response); next != null; next = next(hop, response)) {
                response.close();
                hop = next;
                response = send(hop, headers);
            }
            return response;
        }

        private @Nullable Hop next(Hop hop, ClientHttpResponse response) throws IOException {
            Hop next = hop.next(response.getStatusCode(), response.getHeaders());
            boolean isSentOnce = body != null && written == null && !body.repeatable();
            return next != null && next.hasBody() && isSentOnce ? null : next;
        }

        private ClientHttpResponse send(Hop hop, HttpHeaders headers) throws IOException {
            call.answersFrom(hop.responder(call, clients.get()));
            ClientHttpRequest request = library.still().createRequest(hop.uri(), hop.method());
            headers.forEach((name, values) -> request.getHeaders().addAll(name, values));
            hop.reduce(request.getHeaders());
            request.getAttributes().putAll(getAttributes());
            if (body != null && hop.hasBody()) {
                if (request instanceof StreamingHttpOutputMessage streaming) {
                    streaming.setBody(body);
                } else {
                    body.writeTo(request.getBody());
                }
            }
            return request.execute();
        }
    }
}
