package com.example.it;

import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.springframework.boot.SpringApplication;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.web.client.RestClient;

/** An application that was started as its main method starts it, on a port of its own. */
public final class Running implements AutoCloseable {

    private final ConfigurableApplicationContext application;
    private final RestClient client;

    public Running(Class<?> main, String... settings) {
        String[] arguments = Arrays.copyOf(settings, settings.length + 1);
        arguments[settings.length] = "--server.port=0";
        application = SpringApplication.run(main, arguments);
        client = RestClient.create(
                "http://localhost:" + application.getEnvironment().getProperty("local.server.port"));
    }

    /** The status codes of six calls at once. */
    public List<Integer> sixCalls(String path) {
        return IntStream.range(0, 6)
                .mapToObj(call -> client.get().uri(path).exchange((request, answer) -> answer.getStatusCode().value()))
                .toList();
    }

    public String get(String path) {
        return client.get().uri(path).retrieve().body(String.class);
    }

    @Override
    public void close() {
        application.close();
    }
}
