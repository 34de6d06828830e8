package com.example;

import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.stereotype.Component;
import org.springframework.web.client.RestClient;

@SpringBootApplication
public class Application {

    @Component
    public static class Partner {

        private final RestClient client;

        Partner(RestClient.Builder builder) {
            client = builder.build();
        }

        public void call(String address) {
            client.get().uri(address).retrieve().toBodilessEntity();
        }
    }
}
