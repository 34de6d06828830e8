package io.ratelimited.sample.shop;

import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.stereotype.Component;

/** Knows who has an API key and which plan they pay for. The limit "search" asks it for its key and its tier. */
@Component
class Plans {

    /** A real shop would look these up; the caller must never be the one who names the plan. */
    private final Map<String, String> planByApiKey = Map.of("key-of-gina", "gold", "key-of-the-website", "internal");

    /** The owner of an API key; null for a key that nobody has, since a caller can invent as many of those as he likes. */
    @Nullable
    public String owner(@Nullable String apiKey) {
        return of(apiKey) == null ? null : apiKey;
    }

    /**
     * The plan of the owner of an API key.
     *
     * @return null for everybody else: the limit without a tier applies
     */
    @Nullable
    public String of(@Nullable String apiKey) {
        return apiKey == null ? null : planByApiKey.get(apiKey);
    }
}
