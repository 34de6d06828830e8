package io.ratelimited.sample.shop;

import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.stereotype.Component;

/** Knows which plan a customer pays for. The limit "search" asks it through its tier expression, {@code @plans.of(…)}. */
@Component
class Plans {

    /** A real shop would look these up; the caller must never be the one who names the plan. */
    private final Map<String, String> planByApiKey = Map.of("key-of-gina", "gold", "key-of-the-website", "internal");

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
