package io.ratelimited.sample;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.concurrent.CompletableFuture;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A real client of the running application. */
public final class Http {

    private final HttpClient client = HttpClient.newHttpClient();
    private final String base;

    public Http(int port) {
        this.base = "http://localhost:" + port;
    }

    public HttpResponse<String> get(String path, String... headers) {
        return send(request(path, headers).build());
    }

    public CompletableFuture<HttpResponse<String>> getAsync(String path) {
        return client.sendAsync(request(path).build(), BodyHandlers.ofString());
    }

    public HttpResponse<String> post(String path, String json) {
        return send(request(path, "Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(json))
                .build());
    }

    /** The sum of the decisions that the meters have counted for a limit and an outcome. */
    public long metered(String limit, String outcome) {
        return get("/actuator/prometheus")
                .body()
                .lines()
                .filter(line -> line.startsWith("rate_limit_decisions_total{"))
                .filter(line -> line.contains("limit=\"" + limit + "\""))
                .filter(line -> line.contains("outcome=\"" + outcome + "\""))
                .mapToLong(line -> (long) Double.parseDouble(line.substring(line.lastIndexOf(' '))))
                .sum();
    }

    /** How often the endpoint says that a key of a limit was refused. */
    public long refused(String limit, String key) {
        Matcher refused = Pattern.compile("\\{\"key\":\"" + key + "\",\"refused\":(\\d+)}")
                .matcher(get("/actuator/ratelimits/" + limit).body());
        return refused.find() ? Long.parseLong(refused.group(1)) : 0;
    }

    private HttpRequest.Builder request(String path, String... headers) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(base + path));
        return headers.length == 0 ? request : request.headers(headers);
    }

    private HttpResponse<String> send(HttpRequest request) {
        try {
            return client.send(request, BodyHandlers.ofString());
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(ex);
        }
    }
}
