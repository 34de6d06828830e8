package com.example.outgoing;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Service;
import org.springframework.web.client.RestClient;

/** Knows no limits: they belong to the host, in application.yml. The builder must be the one of Spring Boot. */
@Service
class Prices {

    private final RestClient partner;

    Prices(RestClient.Builder builder, @Value("${partner.url}") String url) {
        this.partner = builder.baseUrl(url).build();
    }

    String of(String symbol) {
        return partner.get().uri("/prices/{symbol}", symbol).retrieve().body(String.class);
    }
}
