package io.ratelimited.spring.okhttp;

import okhttp3.Interceptor;

/**
 * Limits the calls of an OkHttp client to the hosts of {@code rate-limit.clients}; other calls are not limited. Thread-safe.
 *
 * <p>Experimental: may change in a minor release.
 *
 * <p>The application context has one bean of this type, which admits every call if limits are disabled or no property names a client. Add it as the last application interceptor, so that it receives each attempt of an SDK, and the request with the changes of all other interceptors:
 *
 * <pre>{@code
 * new OkHttpClient.Builder().addInterceptor(limits).build()
 * }</pre>
 *
 * <p>A call that is not admitted is not sent: {@code execute()} throws the {@link io.ratelimited.core.RateLimitExceededException}, and {@code enqueue()} reports an {@link java.io.IOException} with this cause. Do not add it as a network interceptor, which would hold a connection while it waits, and must not reject calls.
 */
public interface RateLimitInterceptor extends Interceptor {}
