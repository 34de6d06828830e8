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

        public int status(String address) {
            return client.get().uri(address).exchange((request, response) -> response.getStatusCode().value());
        }
    }
}
