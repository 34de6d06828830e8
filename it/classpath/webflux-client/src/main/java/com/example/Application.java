package com.example;

import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.stereotype.Component;
import org.springframework.web.reactive.function.client.WebClient;

@SpringBootApplication
public class Application {

    @Component
    public static class Partner {

        private final WebClient client;

        Partner(WebClient.Builder builder) {
            client = builder.build();
        }

        public void call(String address) {
            client.get().uri(address).retrieve().toBodilessEntity().block();
        }
    }
}
