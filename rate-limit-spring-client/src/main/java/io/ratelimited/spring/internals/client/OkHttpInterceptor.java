package io.ratelimited.spring.internals.client;

import io.ratelimited.spring.internals.client.ClientCall.Responder;
import io.ratelimited.spring.okhttp.RateLimitInterceptor;
import java.io.IOException;
import java.net.URI;
import java.util.function.Supplier;
import okhttp3.Call;
import okhttp3.Headers;
import okhttp3.MediaType;
import okhttp3.Request;
import okhttp3.Response;
import okhttp3.ResponseBody;
import okio.Buffer;
import okio.BufferedSource;
import okio.ForwardingSource;
import okio.Okio;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.SmartInitializingSingleton;

/** As {@link RateLimitInterceptor}. */
public final class OkHttpInterceptor implements RateLimitInterceptor, SmartInitializingSingleton {

    private static final int SWITCHING_PROTOCOLS = 101;

    private final Supplier<LimitedClients> clients;

    /** @param clients as for {@link BlockingClientInterceptor} */
    public OkHttpInterceptor(Supplier<LimitedClients> clients) {
        this.clients = clients;
    }

    @Override
    public void afterSingletonsInstantiated() {
        clients.get().all().forEach(client -> client.usedBy(true));
    }

    @Override
    public Response intercept(Chain chain) throws IOException {
        Request request = chain.request();
        LimitedClient client = clients.get().of(request.url().uri());
        if (client == null) {
            return chain.proceed(request);
        }
        ClientCall call = enter(client, request, chain.call());
        Response response;
        try {
            response = chain.proceed(request);
        } catch (Throwable ex) {
            call.end(ex);
            throw ex;
        }
        if (isOfCacheAlone(response)) {
            call.giveBack(); // nothing was sent, and what the service had left then is old
            return response;
        }
        call.answersFrom(responder(call, request, response));
        call.answered(response.code(), sentHeaders(response)::values);
        ResponseBody body = response.body();
        if (body == null || response.code() == SWITCHING_PROTOCOLS) {
            call.end();
            return response;
        }
        return response.newBuilder().body(new EndingBody(body, call)).build();
    }

    private Responder responder(ClientCall call, Request request, Response response) {
        if (isOfCache(response)) {
            return Responder.FOREIGN;
        }
        URI called = request.url().uri();
        URI last = response.request().url().uri();
        return last.equals(called) ? Responder.CALLED : Hop.responder(called, last, call, clients.get());
    }

    /** Returns whether nothing was sent, neither for the response nor for a redirect to it. */
    private static boolean isOfCacheAlone(Response response) {
        Response before = response.priorResponse();
        return isOfCache(response) && (before == null || isOfCacheAlone(before));
    }

    /** A request that must not use the network gets 504 without a stored response. */
    private static boolean isOfCache(Response response) {
        return response.networkResponse() == null
                && (response.cacheResponse() != null
                        || response.request().cacheControl().onlyIfCached());
    }

    /** The headers that the service has sent now: those of a stored response that it has confirmed are old. */
    private static Headers sentHeaders(Response response) {
        Response sent = response.networkResponse();
        return (sent == null ? response : sent).headers();
    }

    private static ClientCall enter(LimitedClient client, Request request, Call call) throws IOException {
        try {
            return client.enter(
                    new OutgoingRequest(request.method(), request.url().uri(), request.headers()::values),
                    call::isCanceled);
        } catch (RuntimeException ex) {
            if (call.isCanceled()) {
                throw new IOException("Canceled", ex);
            }
            if (isThreadOfOkHttp()) {
                throw new IOException(ex.getMessage(), ex);
            }
            throw ex;
        }
    }

    /**
     * Returns whether a call of {@code enqueue} runs, on a thread that has such a name meanwhile: there an exception that is none
     * of I/O would not reach the caller as it is, but the handler of uncaught exceptions. An SDK repeats a call that fails by an
     * exception of I/O, so {@code execute} gets the rejection itself.
     */
    private static boolean isThreadOfOkHttp() {
        return Thread.currentThread().getName().startsWith("OkHttp ");
    }

    /** Ends the call when it is closed or read to its end, since a response may be streamed. */
    private static final class EndingBody extends ResponseBody {

        private final ResponseBody body;
        private final BufferedSource source;

        private EndingBody(ResponseBody body, ClientCall call) {
            this.body = body;
            this.source = Okio.buffer(new ForwardingSource(body.source()) {

                @Override
                public long read(Buffer sink, long bytes) throws IOException {
                    try {
                        long read = super.read(sink, bytes);
                        if (read < 0) {
                            call.end();
                        }
                        return read;
                    } catch (IOException ex) {
                        call.end(ex);
                        throw ex;
                    }
                }

                @Override
                public void close() throws IOException {
                    try {
                        super.close();
                    } finally {
                        call.end();
                    }
                }
            });
        }

        @Override
        public @Nullable MediaType contentType() {
            return body.contentType();
        }

        @Override
        public long contentLength() {
            return body.contentLength();
        }

        @Override
        public BufferedSource source() {
            return source;
        }
    }
}
