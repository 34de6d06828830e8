package com.example;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.junit.jupiter.api.Assertions.*;

import com.example.it.Started;
import com.sun.net.httpserver.HttpServer;
import io.ratelimited.core.RateLimitExceededException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicInteger;
import okhttp3.Call;
import okhttp3.Callback;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.Response;
import org.junit.jupiter.api.Test;

class ApplicationTest {

    @Test
    void theClassPathLacksThese() {
        assertFalse(Started.has("jakarta.servlet.Filter"));
        assertFalse(Started.has("reactor.core.publisher.Mono"));
    }

    @Test
    void theInterceptorOfOkHttpHoldsOnItsFifthLine() throws IOException {
        HttpServer model = HttpServer.create(new InetSocketAddress("localhost", 0), 0);
        model.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, 4);
            exchange.getResponseBody().write("text".getBytes(US_ASCII));
            exchange.close();
        });
        model.start();
        try (Started application = new Started(
                Application.class,
                "--rate-limit.clients.partner.limits=places",
                "--rate-limit.clients.partner.policy=reject",
                "--rate-limit.limits.places.algorithm=concurrency",
                "--rate-limit.limits.places.max-concurrent=1")) {
            OkHttpClient client = application.bean(OkHttpClient.class);
            String address = "http://localhost:" + model.getAddress().getPort() + "/";
            Call second = client.newCall(new Request.Builder().url(address).build());
            try (Response first = second.clone().execute()) {
                assertThrows(RateLimitExceededException.class, () -> second.clone().execute());
                CompletionException failure = assertThrows(CompletionException.class, enqueued(second.clone())::join);
                assertInstanceOf(RateLimitExceededException.class, failure.getCause().getCause());
                assertEquals("text", first.body().string());
            }
            try (Response next = enqueued(second).join()) {
                assertEquals("text", next.body().string());
            }
        } finally {
            model.stop(0);
        }
    }

    private static CompletableFuture<Response> enqueued(Call call) {
        CompletableFuture<Response> result = new CompletableFuture<>();
        call.enqueue(new Callback() {

            @Override
            public void onFailure(Call failed, IOException failure) {
                result.completeExceptionally(failure);
            }

            @Override
            public void onResponse(Call answered, Response response) {
                result.complete(response);
            }
        });
        return result;
    }

    @Test
    void theSecondCallDoesNotTouchTheNetwork() throws IOException {
        AtomicInteger calls = new AtomicInteger();
        HttpServer partner = HttpServer.create(new InetSocketAddress("localhost", 0), 0);
        partner.createContext("/", exchange -> {
            calls.incrementAndGet();
            exchange.sendResponseHeaders(204, -1);
            exchange.close();
        });
        partner.start();
        try (Started application = new Started(Application.class)) {
            Application.Partner client = application.bean(Application.Partner.class);
            String address = "http://localhost:" + partner.getAddress().getPort() + "/";
            client.call(address);
            assertThrows(RateLimitExceededException.class, () -> client.call(address));
            assertEquals(1, calls.get());
        } finally {
            partner.stop(0);
        }
    }
}
