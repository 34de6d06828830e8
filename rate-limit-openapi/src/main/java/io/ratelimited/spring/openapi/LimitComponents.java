package io.ratelimited.spring.openapi;

import io.ratelimited.spring.autoconfigure.RateLimitProperties;
import io.ratelimited.spring.fields.RateLimitHeaderWriter;
import io.ratelimited.spring.internals.web.Rejection;
import io.swagger.v3.oas.models.Components;
import io.swagger.v3.oas.models.OpenAPI;
import io.swagger.v3.oas.models.headers.Header;
import io.swagger.v3.oas.models.media.ArraySchema;
import io.swagger.v3.oas.models.media.Content;
import io.swagger.v3.oas.models.media.IntegerSchema;
import io.swagger.v3.oas.models.media.MediaType;
import io.swagger.v3.oas.models.media.ObjectSchema;
import io.swagger.v3.oas.models.media.Schema;
import io.swagger.v3.oas.models.media.StringSchema;
import io.swagger.v3.oas.models.responses.ApiResponse;
import java.math.BigDecimal;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The parts that limited operations share, each described once among the components of the document. */
final class LimitComponents {

    private static final String REFUSAL = "RateLimited";
    private static final String REFUSAL_WITHOUT_FIELDS = "RateLimitedWithoutHeaders";
    private static final String UNAVAILABLE = "RateLimitUnavailable";
    private static final String OVERLOADED = "RateLimitOverloaded";
    private static final String PROBLEM = "RateLimitProblem";
    private static final String PROBLEM_JSON = "application/problem+json";
    private static final String RETRY_AFTER = "Retry-After";
    /** Characters of the longest value: servers accept about so many in all header fields together. */
    private static final int LONGEST = 8192;

    private final int status;
    private final Map<String, Header> fields = new LinkedHashMap<>();

    /** @param writer writes the standard fields; null for draft 10 */
    LimitComponents(RateLimitProperties.Http http, @Nullable RateLimitHeaderWriter writer) {
        this.status = http.status();
        switch (http.headers()) {
            case STANDARD -> {
                if (writer != null) {
                    writer.names().forEach(name -> fields.put(name, field("Rate limits of the request.")));
                    return;
                }
                fields.put(
                        "RateLimit",
                        list(
                                "Each limit that applies to the request: r permits remain; t is the time until it is full again, or until a retry can succeed, in seconds."));
                fields.put(
                        "RateLimit-Policy",
                        list("The limits that apply to the request: a quota of q permits in w seconds."));
            }
            case LEGACY -> {
                fields.put("X-RateLimit-Limit", number("Permits of the tightest limit.", 0));
                fields.put("X-RateLimit-Remaining", number("Remaining permits of this limit.", 0));
                fields.put("X-RateLimit-Reset", number("Seconds until the limit is full again.", 1));
            }
            case NONE -> {}
        }
    }

    private static Header field(String description) {
        return new Header().description(description).schema(new StringSchema().maxLength(LONGEST));
    }

    private static Header list(String description) {
        Header header = field(description);
        header.getSchema().setPattern("^\".*$");
        return header;
    }

    private static Header number(String description, long least) {
        return new Header()
                .description(description)
                .schema(new IntegerSchema()
                        .format("int64")
                        .minimum(BigDecimal.valueOf(least))
                        .maximum(BigDecimal.valueOf(999_999_999_999_999L)));
    }

    /** The status of a refusal. */
    String status() {
        return String.valueOf(status);
    }

    /** A refusal, by reference. */
    ApiResponse refusal() {
        return reference(REFUSAL);
    }

    /** A refusal by limits that hide their fields, by reference. */
    ApiResponse refusalWithoutFields() {
        return reference(REFUSAL_WITHOUT_FIELDS);
    }

    /** Returns whether a response is {@link #refusalWithoutFields}. */
    boolean isWithoutFields(ApiResponse response) {
        return refusalWithoutFields().get$ref().equals(response.get$ref());
    }

    /** The answer to a request that the service has no room for, by reference. */
    ApiResponse overloaded() {
        return reference(OVERLOADED);
    }

    /** The answer to a request that nobody can decide, by reference. */
    ApiResponse unavailable() {
        return reference(UNAVAILABLE);
    }

    private static ApiResponse reference(String response) {
        return new ApiResponse().$ref("#/components/responses/" + response);
    }

    /** Adds the rate limit fields that a response has not documented. */
    void addFields(ApiResponse response) {
        fields.keySet().forEach(name -> addHeader(response, name));
    }

    /** Adds {@code Retry-After} to a refusal that the application describes itself. */
    void addRetryAfter(ApiResponse response) {
        addHeader(response, RETRY_AFTER);
    }

    private static void addHeader(ApiResponse response, String name) {
        if (response.get$ref() == null
                && (response.getHeaders() == null || !response.getHeaders().containsKey(name))) {
            response.addHeaderObject(name, new Header().$ref("#/components/headers/" + name));
        }
    }

    /**
     * Adds the components to which the operations of a document refer. A component that the application has under the same
     * name stays.
     */
    void addTo(OpenAPI document) {
        List<ApiResponse> responses = document.getPaths().values().stream()
                .flatMap(item -> item.readOperations().stream())
                .flatMap(operation ->
                        operation.getResponses() == null ? Stream.empty() : operation.getResponses().values().stream())
                .toList();
        boolean refused = isUsed(refusal(), responses);
        boolean refusedWithoutFields = isUsed(refusalWithoutFields(), responses);
        boolean overloaded = isUsed(overloaded(), responses);
        boolean unavailable = isUsed(unavailable(), responses);
        Map<String, Header> all = new LinkedHashMap<>(fields);
        all.put(RETRY_AFTER, number("Seconds until a retry can succeed. Absent if no retry can.", 1));
        Components components = document.getComponents();
        all.forEach((name, header) -> {
            boolean used = refused
                    || unavailable
                    || ((overloaded || refusedWithoutFields) && name.equals(RETRY_AFTER))
                    || responses.stream().anyMatch(response -> refersTo(response, name));
            if (used && isFree(components.getHeaders(), name)) {
                components.addHeaders(name, header);
            }
        });
        if (refused) {
            addRefusal(components, REFUSAL, all.keySet());
        }
        if (refusedWithoutFields) {
            addRefusal(components, REFUSAL_WITHOUT_FIELDS, Set.of(RETRY_AFTER));
        }
        if (overloaded && isFree(components.getResponses(), OVERLOADED)) {
            ObjectSchema problem = anyProblem(503);
            problem.addProperty(
                    "type", new StringSchema().format("uri").maxLength(LONGEST).example(Rejection.TYPE_OVERLOADED));
            ApiResponse busy = new ApiResponse()
                    .description("The service is overloaded.")
                    .content(new Content().addMediaType(PROBLEM_JSON, new MediaType().schema(problem)));
            addRetryAfter(busy);
            components.addResponses(OVERLOADED, busy);
        }
        if (unavailable && isFree(components.getResponses(), UNAVAILABLE)) {
            ApiResponse away = new ApiResponse()
                    .description("The rate limit backend is unavailable.")
                    .content(new Content().addMediaType(PROBLEM_JSON, new MediaType().schema(anyProblem(503))));
            addFields(away);
            components.addResponses(UNAVAILABLE, away);
        }
    }

    private void addRefusal(Components components, String name, Set<String> headers) {
        if (!isFree(components.getResponses(), name)) {
            return;
        }
        Schema<?> problem = problem();
        if (isFree(components.getSchemas(), PROBLEM)) {
            components.addSchemas(PROBLEM, problem);
        }
        if (problem.equals(components.getSchemas().get(PROBLEM))) {
            problem = new Schema<>().$ref("#/components/schemas/" + PROBLEM);
        }
        ApiResponse refusal = new ApiResponse()
                .description("A rate limit rejected the request.")
                .content(new Content().addMediaType(PROBLEM_JSON, new MediaType().schema(problem)));
        headers.forEach(header -> addHeader(refusal, header));
        components.addResponses(name, refusal);
    }

    private static boolean isUsed(ApiResponse reference, List<ApiResponse> responses) {
        return responses.stream().anyMatch(response -> reference.get$ref().equals(response.get$ref()));
    }

    private static boolean isFree(@Nullable Map<String, ?> components, String name) {
        return components == null || !components.containsKey(name);
    }

    private static boolean refersTo(ApiResponse response, String header) {
        return response.getHeaders() != null
                && response.getHeaders().containsKey(header)
                && ("#/components/headers/" + header)
                        .equals(response.getHeaders().get(header).get$ref());
    }

    /** The problem detail of {@link Rejection}. */
    private Schema<?> problem() {
        ObjectSchema problem = anyProblem(status);
        problem.setDescription(
                "A problem detail of RFC 9457 with the type quota-exceeded, or abnormal-usage-detected if a limit has"
                        + " blocked the caller.");
        problem.addProperty(
                "type", new StringSchema().format("uri").maxLength(LONGEST).example(Rejection.TYPE));
        problem.addProperty(
                "violated-policies",
                new ArraySchema()
                        .items(text())
                        .maxItems(100)
                        .description("Names of the limits that rejected the request."));
        problem.setRequired(List.of("type", "title", "status", "violated-policies"));
        return problem;
    }

    private static ObjectSchema anyProblem(int status) {
        ObjectSchema problem = new ObjectSchema();
        problem.addProperty("title", text());
        problem.addProperty(
                "status",
                new IntegerSchema()
                        .minimum(BigDecimal.valueOf(100))
                        .maximum(BigDecimal.valueOf(599))
                        .example(status));
        problem.addProperty("detail", text());
        problem.addProperty("instance", text());
        problem.setRequired(List.of("title", "status"));
        return problem;
    }

    private static Schema<?> text() {
        return new StringSchema().maxLength(LONGEST).pattern("^.*$");
    }
}
