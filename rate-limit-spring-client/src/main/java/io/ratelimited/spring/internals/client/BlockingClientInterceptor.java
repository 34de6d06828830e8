package io.ratelimited.spring.internals.client;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.core.Ordered;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpRequest;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.client.ClientHttpRequestExecution;
import org.springframework.http.client.ClientHttpRequestInterceptor;
import org.springframework.http.client.ClientHttpResponse;

/**
 * Limits the calls of {@code RestClient} and {@code RestTemplate}. Stands innermost, next to the network: each attempt of an
 * interceptor that retries counts, and the request has all that others add. Thread-safe.
 */
public final class BlockingClientInterceptor
        implements ClientHttpRequestInterceptor, Ordered, SmartInitializingSingleton {

    /** The limited call that a thread makes. */
    private static final ThreadLocal<ClientCall> CALL = new ThreadLocal<>();

    private final Supplier<LimitedClients> clients;

    /** @param clients whose hosts are limited; asked for no earlier than a call or the end of startup */
    public BlockingClientInterceptor(Supplier<LimitedClients> clients) {
        this.clients = clients;
    }

    @Override
    public void afterSingletonsInstantiated() {
        clients.get().all().forEach(client -> client.usedBy(true));
    }

    /** Returns whether calls pass the limits. */
    public static boolean isIn(List<ClientHttpRequestInterceptor> all) {
        return all.stream().anyMatch(BlockingClientInterceptor.class::isInstance);
    }

    /** Limits calls that do not yet pass the limits, behind the interceptors that are there. */
    public void addTo(List<ClientHttpRequestInterceptor> all) {
        if (!isIn(all)) {
            all.add(this);
        }
    }

    @Override
    public int getOrder() {
        return LOWEST_PRECEDENCE;
    }

    @Override
    public ClientHttpResponse intercept(HttpRequest request, byte[] body, ClientHttpRequestExecution execution)
            throws IOException {
        LimitedClient client = clients.get().of(request.getURI());
        if (client == null) {
            return execute(null, request, body, execution); // which may be made while a limited one is
        }
        ClientCall call = client.enter(
                new OutgoingRequest(request.getMethod().name(), request.getURI(), request.getHeaders()::get));
        Throwable failure = null;
        ClientHttpResponse response = null;
        try {
            response = execute(call, request, body, execution);
            call.answered(response.getStatusCode().value(), response.getHeaders()::get);
            return new EndingResponse(response, call);
        } catch (Throwable ex) {
            failure = ex;
            throw ex;
        } finally {
            if (failure != null) {
                call.end(failure);
                if (response != null) {
                    response.close();
                }
            }
        }
    }

    private static ClientHttpResponse execute(
            @Nullable ClientCall call, HttpRequest request, byte[] body, ClientHttpRequestExecution execution)
            throws IOException {
        ClientCall outer = CALL.get();
        set(call);
        try {
            return execution.execute(request, body);
        } finally {
            set(outer);
        }
    }

    private static void set(@Nullable ClientCall call) {
        if (call == null) {
            CALL.remove();
        } else {
            CALL.set(call);
        }
    }

    /** The call that the current thread makes; null without one, or one that is not limited. */
    static @Nullable ClientCall current() {
        return CALL.get();
    }

    /** Ends the call when it is closed or read to its end, since an answer may be streamed. */
    private record EndingResponse(ClientHttpResponse response, ClientCall call) implements ClientHttpResponse {

        @Override
        public HttpStatusCode getStatusCode() throws IOException {
            return response.getStatusCode();
        }

        @Override
        public String getStatusText() throws IOException {
            return response.getStatusText();
        }

        @Override
        public HttpHeaders getHeaders() {
            return response.getHeaders();
        }

        @Override
        public InputStream getBody() throws IOException {
            return new FilterInputStream(response.getBody()) {

                @Override
                public int read() throws IOException {
                    try {
                        return endedBy(in.read());
                    } catch (IOException ex) {
                        throw endedBy(ex);
                    }
                }

                @Override
                public int read(byte[] bytes, int offset, int length) throws IOException {
                    try {
                        return endedBy(in.read(bytes, offset, length));
                    } catch (IOException ex) {
                        throw endedBy(ex);
                    }
                }

                private int endedBy(int read) {
                    if (read < 0) {
                        call.end();
                    }
                    return read;
                }

                /** The answer has broken off, by a timeout perhaps. */
                private IOException endedBy(IOException failure) {
                    call.end(failure);
                    return failure;
                }

                @Override
                public void close() throws IOException {
                    try {
                        super.close();
                    } finally {
                        call.end();
                    }
                }
            };
        }

        @Override
        public void close() {
            try {
                response.close();
            } finally {
                call.end();
            }
        }
    }
}
