package io.ratelimited.spring;

import java.util.Locale;

/** The outcome of a call under one limit. */
public enum Outcome {
    /** It was admitted immediately. */
    ADMITTED,
    /** It was admitted after a wait. */
    DELAYED,
    /** It was rejected. */
    REJECTED,
    /** It was over the limit and went all the same, under {@link io.ratelimited.core.Policy#SHADOW}. */
    SHADOWED;

    /** The name in metrics. */
    public String tag() {
        return name().toLowerCase(Locale.ROOT);
    }
}
