package io.ratelimited.spring.okhttp;

import okhttp3.Interceptor;

/**
 * Limits the calls of an OkHttp client to the hosts of {@code rate-limit.clients}; others pass. Thread-safe.
 *
 * <p>Experimental: may change in a minor release.
 *
 * <p>The application context has one bean of this type if properties name a client. Add it as the last application interceptor,
 * so that it sees each attempt of an SDK, and the request with all that other interceptors add:
 *
 * <pre>{@code
 * new OkHttpClient.Builder().addInterceptor(limits).build()
 * }</pre>
 *
 * <p>A call that is not admitted is not sent: {@code execute()} throws the {@link
 * io.ratelimited.core.RateLimitExceededException}, {@code enqueue()} reports an {@link java.io.IOException} that it has caused.
 * A network interceptor would hold a connection while it waits, and may not reject: do not add it as one.
 */
public interface RateLimitInterceptor extends Interceptor {}
