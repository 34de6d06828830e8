package com.example;

import io.ratelimited.spring.okhttp.RateLimitInterceptor;
import okhttp3.OkHttpClient;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.stereotype.Component;
import org.springframework.web.client.RestClient;

@SpringBootApplication
public class Application {

    @Bean
    OkHttpClient okHttp(RateLimitInterceptor limits) {
        return new OkHttpClient.Builder().addInterceptor(limits).build();
    }

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
