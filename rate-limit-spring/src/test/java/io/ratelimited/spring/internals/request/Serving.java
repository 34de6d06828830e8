package io.ratelimited.spring.internals.request;

import org.jspecify.annotations.Nullable;

/** Every thread is one of those that serve requests; nothing is known of its request. */
public final class Serving implements CurrentRequest.Source {

    @Override
    public @Nullable CurrentRequest current() {
        return null;
    }

    @Override
    public boolean isRequestThread() {
        return true;
    }
}
