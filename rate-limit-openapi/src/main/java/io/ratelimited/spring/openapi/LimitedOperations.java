package io.ratelimited.spring.openapi;

import io.ratelimited.core.Policy;
import io.ratelimited.spring.internals.aop.LimitedMethod;
import io.ratelimited.spring.internals.aop.LimitedMethods;
import io.ratelimited.spring.internals.call.LimitUse;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import io.ratelimited.spring.internals.web.RoutePatterns;
import io.swagger.v3.oas.models.Components;
import io.swagger.v3.oas.models.OpenAPI;
import io.swagger.v3.oas.models.Operation;
import io.swagger.v3.oas.models.responses.ApiResponse;
import io.swagger.v3.oas.models.responses.ApiResponses;
import java.util.List;
import org.springdoc.core.customizers.GlobalOpenApiCustomizer;
import org.springdoc.core.customizers.GlobalOperationCustomizer;
import org.springframework.http.HttpStatus;
import org.springframework.web.method.HandlerMethod;

/**
 * Adds to each operation that an annotation or a route limits the visible effects: the rate limit fields of its responses,
 * and the refusal. Documentation of the application itself stays. A limit on a method that the handler method calls is not
 * found. Thread-safe.
 */
final class LimitedOperations implements GlobalOperationCustomizer, GlobalOpenApiCustomizer {

    private static final String UNAVAILABLE = String.valueOf(HttpStatus.SERVICE_UNAVAILABLE.value());

    private final LimitedMethods methods;
    private final RoutePatterns routes;
    private final String dispatcher;
    private final LimitComponents components;

    /** @param dispatcher the path of the dispatcher servlet, which documents leave out; empty if it has none */
    LimitedOperations(LimitedMethods methods, RoutePatterns routes, String dispatcher, LimitComponents components) {
        this.methods = methods;
        this.routes = routes;
        this.dispatcher = dispatcher;
        this.components = components;
    }

    @Override
    public Operation customize(Operation operation, HandlerMethod handler) {
        LimitedMethod method = methods.find(handler.getMethod(), handler.getBeanType());
        if (method != null) {
            describe(operation, method.limits().stream().map(LimitUse::limit).toList(), method.fallback() == null);
        }
        return operation;
    }

    /** Adds routes, and at last the components to which operations refer. */
    @Override
    public void customise(OpenAPI document) {
        if (document.getPaths() == null) {
            return;
        }
        document.getPaths()
                .forEach((path, item) -> item.readOperationsMap()
                        .forEach((method, operation) ->
                                describe(operation, routes.limits(method.name(), dispatcher, path), true)));
        if (document.getComponents() == null) {
            document.setComponents(new Components());
        }
        components.addTo(document);
    }

    /** @param refuses whether a refusal reaches the client, as far as the operation decides */
    private void describe(Operation operation, List<ConfiguredLimit> limits, boolean refuses) {
        List<ConfiguredLimit> limiting =
                limits.stream().filter(LimitedOperations::isLimiting).toList();
        if (limiting.isEmpty()) {
            return;
        }
        ApiResponses responses = operation.getResponses();
        if (responses == null) {
            responses = new ApiResponses();
            operation.setResponses(responses);
        }
        List<ConfiguredLimit> refusing = refuses
                ? limiting.stream()
                        .filter(limit -> limit.policy() != Policy.SHADOW)
                        .toList()
                : List.of();
        boolean mayRefuse = !refusing.stream().allMatch(ConfiguredLimit::findsItsLimit);
        boolean showsFields = limiting.stream().anyMatch(LimitedOperations::showsFields);
        ApiResponse own = responses.get(components.status());
        if (own != null && mayRefuse && !(showsFields && components.isWithoutFields(own))) {
            components.addRetryAfter(own);
        } else if (mayRefuse) {
            responses.addApiResponse(
                    components.status(), showsFields ? components.refusal() : components.refusalWithoutFields());
        }
        if (refusing.stream().anyMatch(ConfiguredLimit::findsItsLimit)) {
            responses.putIfAbsent(UNAVAILABLE, components.overloaded());
        } else if (refusing.stream()
                .anyMatch(limit -> "deny".equals(limit.properties().get("on-failure")))) {
            responses.putIfAbsent(UNAVAILABLE, components.unavailable());
        }
        if (showsFields) {
            responses.values().forEach(components::addFields);
        }
    }

    private static boolean showsFields(ConfiguredLimit limit) {
        return limit.showsHeaders() && !limit.findsItsLimit();
    }

    private static boolean isLimiting(ConfiguredLimit limit) {
        return limit.mayHaveNumbers() || limit.limitAndTiers().stream().anyMatch(each -> !each.isUnlimited());
    }
}
