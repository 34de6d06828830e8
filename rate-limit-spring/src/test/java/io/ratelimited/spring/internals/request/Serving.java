package io.ratelimited.spring.internals.request;

import org.jspecify.annotations.Nullable;

/** Every thread serves a request, of which nothing is known. */
public final class Serving implements CurrentRequest.Source {

    @Override
    public @Nullable CurrentRequest current() {
        return null;
    }

    @Override
    public boolean isServing() {
        return true;
    }
}
