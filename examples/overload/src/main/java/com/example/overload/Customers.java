package com.example.overload;

import org.springframework.stereotype.Component;

/** Callers do not choose their priority: a bean decides. */
@Component
public class Customers {

    public String priority(String apiKey) {
        return "key-of-gold".equals(apiKey) ? "paying" : "free";
    }
}
