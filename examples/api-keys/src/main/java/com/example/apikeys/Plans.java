package com.example.apikeys;

import java.util.Map;
import org.springframework.stereotype.Component;

/** Who has which API key, and which plan. An application reads it from its database. */
@Component
public class Plans {

    private record Customer(String name, String plan) {}

    private static final Map<String, Customer> CUSTOMERS =
            Map.of("key-of-ann", new Customer("ann", "free"), "key-of-bob", new Customer("bob", "gold"));

    /** Null for an unknown key: otherwise each key that a client makes up would have a fresh limit. */
    public String owner(String apiKey) {
        Customer customer = apiKey == null ? null : CUSTOMERS.get(apiKey);
        return customer == null ? null : customer.name();
    }

    public String of(String apiKey) {
        Customer customer = apiKey == null ? null : CUSTOMERS.get(apiKey);
        return customer == null ? null : customer.plan();
    }
}
