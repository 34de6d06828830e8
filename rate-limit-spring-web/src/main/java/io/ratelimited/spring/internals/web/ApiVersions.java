package io.ratelimited.spring.internals.web;

import org.jspecify.annotations.Nullable;

/**
 * The API versions that an application takes from its requests, {@code spring.mvc.apiversion} or {@code
 * spring.webflux.apiversion}. Spring reads {@code /1/login}, {@code /v1/login} and {@code /v01.0/login} as one version of one
 * handler, so a route that names a version counts every spelling of it.
 */
public interface ApiVersions {

    /**
     * Returns the version that a text stands for, as the application reads it.
     *
     * @return null when the text is no version, or when the application has no versions
     */
    @Nullable
    Comparable<?> parse(String text);

    /** Returns whether two versions of one application are the same, by the order that Spring maps them by. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    static boolean areSame(Comparable<?> one, Comparable<?> other) {
        return ((Comparable) one).compareTo(other) == 0;
    }
}
