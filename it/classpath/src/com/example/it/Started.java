package com.example.it;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Arrays;
import org.springframework.boot.SpringApplication;
import org.springframework.context.ConfigurableApplicationContext;

/** An application that was started as its main method starts it, called with what the JDK has. */
public final class Started implements AutoCloseable {

    private final ConfigurableApplicationContext application;

    public Started(Class<?> main, String... settings) {
        String[] arguments = Arrays.copyOf(settings, settings.length + 1);
        arguments[settings.length] = "--server.port=0";
        application = SpringApplication.run(main, arguments);
    }

    public <T> T bean(Class<T> type) {
        return application.getBean(type);
    }

    public int port() {
        return application.getEnvironment().getRequiredProperty("local.server.port", Integer.class);
    }

    public int get(String path) {
        return send(HttpRequest.newBuilder(at(path))).statusCode();
    }

    public String body(String path) {
        return send(HttpRequest.newBuilder(at(path))).body();
    }

    public int post(String path, String type, String body) {
        return send(form(path, type, body)).statusCode();
    }

    public String answer(String path, String type, String body) {
        return send(form(path, type, body)).body();
    }

    private HttpRequest.Builder form(String path, String type, String body) {
        return HttpRequest.newBuilder(at(path))
                .header("Content-Type", type)
                .POST(HttpRequest.BodyPublishers.ofString(body));
    }

    private URI at(String path) {
        return URI.create("http://localhost:" + port() + path);
    }

    private static HttpResponse<String> send(HttpRequest.Builder request) {
        try {
            return HttpClient.newHttpClient().send(request.build(), HttpResponse.BodyHandlers.ofString());
        } catch (IOException e) {
            throw new IllegalStateException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }

    /** Whether a class is on the class path. */
    public static boolean has(String type) {
        try {
            Class.forName(type, false, Started.class.getClassLoader());
            return true;
        } catch (ClassNotFoundException missing) {
            return false;
        }
    }

    @Override
    public void close() {
        application.close();
    }
}
