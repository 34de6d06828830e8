package com.example.apikeys;

import java.util.Map;
import org.springframework.stereotype.Component;

/** The plan of each owner. An application reads it from its database. */
@Component
public class Plans {

    private final Map<String, String> plans = Map.of("ann", "free", "bob", "gold");

    /** Null for an unknown owner, whose calls have the limit without a plan. */
    public String of(String owner) {
        return owner == null ? null : plans.get(owner);
    }
}
