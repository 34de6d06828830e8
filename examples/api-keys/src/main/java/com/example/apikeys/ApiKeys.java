package com.example.apikeys;

import java.util.Map;
import org.springframework.stereotype.Component;

@Component("keys")
class ApiKeys {
    private final Map<String, String> owners = Map.of("key-of-ann", "ann", "key-of-bob", "bob");

    /** Null for an unknown key: such a call follows missing-key. */
    public String owner(String apiKey) {
        return apiKey == null ? null : owners.get(apiKey);
    }
}
