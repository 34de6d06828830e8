package io.ratelimited.spring.openapi;

import static org.assertj.core.api.Assertions.assertThat;

import com.jayway.jsonpath.JsonPath;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.fields.RateLimitHeaderWriter;
import io.ratelimited.spring.internals.web.RunningServer;
import io.swagger.v3.oas.annotations.headers.Header;
import io.swagger.v3.oas.annotations.responses.ApiResponse;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.Environment;
import org.springframework.stereotype.Component;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** The document of springdoc, as a client reads it from a running server. */
@Tag("slow")
class OpenApiTest {

    private static final List<String> FIELDS = List.of("RateLimit", "RateLimit-Policy");

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({Api.class, OfOneLimit.class, OwnProblem.class, OwnFields.class, Away.class, Plans.class})
    static class App {}

    @RestController
    static class Api {

        @GetMapping("/limited/{id}")
        @RateLimited(name = "limited", rate = "5/m")
        String limited(@PathVariable String id) {
            return id;
        }

        @GetMapping("/open")
        String open() {
            return "open";
        }

        @GetMapping("/routed/{id}")
        String routed(@PathVariable String id) {
            return id;
        }

        @PostMapping("/routed/{id}")
        String notRouted(@PathVariable String id) {
            return id;
        }

        @GetMapping("/shadow")
        @RateLimited(name = "shadow", rate = "5/m", policy = Policy.SHADOW)
        String shadow() {
            return "shadow";
        }

        @GetMapping("/fallback")
        @RateLimited(name = "fallback", rate = "5/m", fallback = "open")
        String fallback() {
            return "fallback";
        }

        @GetMapping("/unlimited")
        @RateLimited(name = "unlimited", rate = "unlimited")
        String unlimited() {
            return "unlimited";
        }

        @GetMapping("/local")
        @RateLimited(name = "local", rate = "5/m")
        String local() {
            return "local";
        }

        @GetMapping("/cased")
        String cased() {
            return "cased";
        }

        @GetMapping("/own")
        @RateLimited(name = "own", rate = "5/m")
        @ApiResponse(responseCode = "200", description = "fine")
        @ApiResponse(
                responseCode = "429",
                description = "slow down",
                headers = @Header(name = "RateLimit", description = "mine"))
        String own() {
            return "own";
        }
    }

    /** Its schema has the name of ours. */
    record RateLimitProblem(String code) {}

    @RestController
    @ConditionalOnProperty("own-problem")
    static class OwnProblem {

        @GetMapping("/problem")
        RateLimitProblem problem() {
            return new RateLimitProblem("none");
        }
    }

    @Component
    @ConditionalOnProperty("own-fields")
    static class OwnFields implements RateLimitHeaderWriter {

        @Override
        public void write(List<AppliedLimit> limits, BiConsumer<String, String> setter) {
            setter.accept("Quota", "many");
        }

        @Override
        public List<String> names() {
            return List.of("Quota");
        }
    }

    @Component("plans")
    static class Plans {

        public String limitOf(String customer) {
            return "2/m";
        }
    }

    /** A backend that may not answer, as Redis. */
    @Component
    static class Away implements LimiterFactory {

        @Override
        public String backend() {
            return "away";
        }

        @Override
        public Set<String> properties() {
            return Set.of("onFailure");
        }

        @Override
        public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
            return new InMemoryRateLimiter(limit);
        }
    }

    @RestController
    @RateLimited(name = "of-class", rate = "5/m")
    static class OfOneLimit {

        @GetMapping("/class")
        String limited() {
            return "class";
        }
    }

    /** The document of an application on a server of one kind. */
    private static String document(WebApplicationType type, String... properties) throws Exception {
        List<String> arguments = new ArrayList<>(List.of(
                "--server.port=0",
                "--spring.main.banner-mode=off",
                "--springdoc.api-docs.enabled=true",
                "--spring.autoconfigure.exclude=" + RunningServer.SECURITY,
                "--rate-limit.limits.route.rate=1/h",
                "--rate-limit.routes[0].path=/routed/{id:[0-9]{3}}",
                "--rate-limit.routes[0].methods=GET",
                "--rate-limit.routes[0].limits=route"));
        arguments.addAll(List.of(properties));
        try (ConfigurableApplicationContext context =
                new SpringApplicationBuilder(App.class).web(type).run(arguments.toArray(String[]::new))) {
            Environment environment = context.getEnvironment();
            return get(environment.getRequiredProperty("local.server.port")
                    + environment.getProperty("spring.mvc.servlet.path", ""));
        }
    }

    private static String get(String server) throws IOException, InterruptedException {
        return HttpClient.newHttpClient()
                .send(
                        HttpRequest.newBuilder(URI.create("http://localhost:" + server + "/v3/api-docs"))
                                .build(),
                        BodyHandlers.ofString())
                .body();
    }

    private static Map<String, Object> responses(String document, String method, String path) {
        return JsonPath.read(document, "$.paths['" + path + "']." + method + ".responses");
    }

    private static Set<String> headers(String document, String path, String status) {
        Map<String, Object> response =
                JsonPath.read(document, "$.paths['" + path + "'].get.responses['" + status + "']");
        return response.get("headers") instanceof Map<?, ?> headers
                ? Set.copyOf(headers.keySet().stream().map(String::valueOf).toList())
                : Set.of();
    }

    /** Their numbers come from data of the application. */
    @Test
    void aLimitWithNumbersOfCallersIsShown() throws Exception {
        String document = document(
                WebApplicationType.SERVLET,
                "--rate-limit.limits.unlimited.key=clientIp",
                "--rate-limit.limits.unlimited.tier=@plans.limitOf(clientIp)");
        assertThat(responses(document, "get", "/unlimited")).containsOnlyKeys("200", "429");
        assertThat(headers(document, "/unlimited", "200")).containsExactlyInAnyOrderElementsOf(FIELDS);
    }

    @ParameterizedTest
    @EnumSource(names = {"SERVLET", "REACTIVE"})
    void everyLimitedOperationShowsItsRefusalAndItsFields(WebApplicationType type) throws Exception {
        String document = document(type);
        for (String path : List.of("/limited/{id}", "/routed/{id}", "/class")) {
            assertThat(responses(document, "get", path)).as(path).containsOnlyKeys("200", "429");
            assertThat(JsonPath.<String>read(document, "$.paths['" + path + "'].get.responses['429'].$ref"))
                    .isEqualTo("#/components/responses/RateLimited");
            assertThat(headers(document, path, "200")).containsExactlyInAnyOrderElementsOf(FIELDS);
        }
        assertThat(JsonPath.<Map<String, Object>>read(document, "$.components.responses.RateLimited.headers"))
                .containsOnlyKeys("RateLimit", "RateLimit-Policy", "Retry-After");
        assertThat(JsonPath.<String>read(
                        document, "$.components.responses.RateLimited.content['application/problem+json'].schema.$ref"))
                .isEqualTo("#/components/schemas/RateLimitProblem");
        assertThat(JsonPath.<Map<String, Object>>read(document, "$.components.schemas.RateLimitProblem.properties"))
                .containsOnlyKeys("type", "title", "status", "detail", "instance", "violated-policies");
        assertThat(JsonPath.<Map<String, Object>>read(document, "$.components.headers"))
                .containsOnlyKeys("RateLimit", "RateLimit-Policy", "Retry-After");

        for (String path : List.of("/open", "/unlimited", "/shadow")) {
            assertThat(responses(document, "get", path)).as(path).containsOnlyKeys("200");
            assertThat(headers(document, path, "200")).isEmpty();
        }
        assertThat(responses(document, "post", "/routed/{id}")).containsOnlyKeys("200");
        assertThat(responses(document, "get", "/fallback")).containsOnlyKeys("200");
        assertThat(headers(document, "/fallback", "200")).containsExactlyInAnyOrderElementsOf(FIELDS);
        assertThat(JsonPath.<String>read(document, "$.paths['/own'].get.responses['429'].description"))
                .isEqualTo("slow down");
        assertThat(JsonPath.<String>read(
                        document, "$.paths['/own'].get.responses['429'].headers.RateLimit.description"))
                .isEqualTo("mine");
        assertThat(headers(document, "/own", "429")).contains("Retry-After", "RateLimit-Policy");
    }

    @Test
    void statusAndFieldsAreThoseOfTheProperties() throws Exception {
        String legacy = document(
                WebApplicationType.SERVLET, "--rate-limit.http.status=503", "--rate-limit.http.headers=legacy");
        assertThat(responses(legacy, "get", "/class")).containsOnlyKeys("200", "503");
        assertThat(headers(legacy, "/class", "200"))
                .containsExactlyInAnyOrder("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset");
        String none = document(WebApplicationType.SERVLET, "--rate-limit.http.headers=none");
        assertThat(responses(none, "get", "/class")).containsOnlyKeys("200", "429");
        assertThat(headers(none, "/class", "200")).isEmpty();
        assertThat(JsonPath.<Map<String, Object>>read(none, "$.components.responses.RateLimited.headers"))
                .containsOnlyKeys("Retry-After");
    }

    @ParameterizedTest
    @EnumSource(names = {"SERVLET", "REACTIVE"})
    void aLimitThatDeniesWhileItsBackendIsAwayShowsThatItIsUnavailable(WebApplicationType type) throws Exception {
        List<String> away = new ArrayList<>(List.of("--rate-limit.redis.on-failure=deny"));
        for (String limit : List.of("limited", "route", "shadow", "fallback", "unlimited", "local")) {
            away.add("--rate-limit.limits." + limit + ".backend=away");
        }
        away.add("--rate-limit.limits.local.on-failure=local");
        String document = document(type, away.toArray(String[]::new));
        for (String path : List.of("/limited/{id}", "/routed/{id}")) {
            assertThat(responses(document, "get", path)).as(path).containsOnlyKeys("200", "429", "503");
            assertThat(JsonPath.<String>read(document, "$.paths['" + path + "'].get.responses['503'].$ref"))
                    .isEqualTo("#/components/responses/RateLimitUnavailable");
        }
        String unavailable = "$.components.responses.RateLimitUnavailable";
        assertThat(JsonPath.<Map<String, Object>>read(document, unavailable + ".headers"))
                .containsOnlyKeys("RateLimit", "RateLimit-Policy");
        assertThat(JsonPath.<Map<String, Object>>read(
                        document, unavailable + ".content['application/problem+json'].schema.properties"))
                .containsOnlyKeys("title", "status", "detail", "instance");
        for (String path : List.of("/shadow", "/fallback", "/unlimited")) {
            assertThat(responses(document, "get", path)).as(path).containsOnlyKeys("200");
        }
        for (String path : List.of("/local", "/class")) {
            assertThat(responses(document, "get", path)).as(path).containsOnlyKeys("200", "429");
        }
        String same = document(type, concat(away, "--rate-limit.http.status=503"));
        assertThat(JsonPath.<String>read(same, "$.paths['/limited/{id}'].get.responses['503'].$ref"))
                .isEqualTo("#/components/responses/RateLimited");
    }

    @ParameterizedTest
    @EnumSource(names = {"SERVLET", "REACTIVE"})
    void aLimitThatFindsItselfShowsThatTheServiceMayHaveTooMuchToDo(WebApplicationType type) throws Exception {
        String document = document(type, "--rate-limit.limits.local.algorithm=adaptive");
        assertThat(responses(document, "get", "/local")).containsOnlyKeys("200", "503");
        assertThat(headers(document, "/local", "200")).isEmpty();
        String overloaded = "$.components.responses.RateLimitOverloaded";
        assertThat(JsonPath.<Map<String, Object>>read(document, overloaded + ".headers"))
                .containsOnlyKeys("Retry-After");
        assertThat(JsonPath.<String>read(
                        document, overloaded + ".content['application/problem+json'].schema.properties.type.example"))
                .endsWith("#temporary-reduced-capacity");
    }

    private static String[] concat(List<String> arguments, String more) {
        List<String> all = new ArrayList<>(arguments);
        all.add(more);
        return all.toArray(String[]::new);
    }

    @Test
    void fieldsThatABeanWritesAreShown() throws Exception {
        String document = document(WebApplicationType.SERVLET, "--own-fields=true");
        assertThat(headers(document, "/class", "200")).containsOnly("Quota");
        assertThat(JsonPath.<Map<String, Object>>read(document, "$.components.responses.RateLimited.headers"))
                .containsOnlyKeys("Quota", "Retry-After");
    }

    @Test
    void aSchemaOfTheApplicationStaysAndOursStandsInTheResponse() throws Exception {
        String document = document(WebApplicationType.SERVLET, "--own-problem=true");
        assertThat(JsonPath.<Map<String, Object>>read(document, "$.components.schemas.RateLimitProblem.properties"))
                .containsOnlyKeys("code");
        assertThat(JsonPath.<Map<String, Object>>read(
                        document,
                        "$.components.responses.RateLimited.content['application/problem+json'].schema.properties"))
                .containsKey("violated-policies");
    }

    /** In another case, or with the path of the dispatcher servlet. So does an exclusion, which is read as for requests. */
    @Test
    void aRouteOfAnotherSpellingIsShownBecauseItCounts() throws Exception {
        String document = document(
                WebApplicationType.SERVLET,
                "--spring.mvc.servlet.path=/api",
                "--rate-limit.routes[1].path=/CASED/",
                "--rate-limit.routes[1].limits=route",
                "--rate-limit.routes[2].path=/api/**",
                "--rate-limit.routes[2].methods=POST",
                "--rate-limit.routes[2].limits=route",
                "--rate-limit.routes[3].path=/api/{any:open|unlimited}",
                "--rate-limit.routes[3].exclude=/api/unlimited",
                "--rate-limit.routes[3].limits=route");
        assertThat(responses(document, "get", "/cased")).containsOnlyKeys("200", "429");
        assertThat(responses(document, "get", "/routed/{id}")).containsOnlyKeys("200", "429");
        assertThat(responses(document, "post", "/routed/{id}")).containsOnlyKeys("200", "429");
        assertThat(responses(document, "get", "/open")).containsOnlyKeys("200", "429");
        assertThat(responses(document, "get", "/unlimited")).containsOnlyKeys("200");
    }

    @ParameterizedTest
    @EnumSource(names = {"SERVLET", "REACTIVE"})
    void aLimitThatHidesItsFieldsShowsNone(WebApplicationType type) throws Exception {
        String document = document(
                type, "--rate-limit.limits.limited.http-headers=none", "--rate-limit.limits.own.http-headers=none");
        assertThat(responses(document, "get", "/limited/{id}")).containsOnlyKeys("200", "429");
        assertThat(headers(document, "/limited/{id}", "200")).isEmpty();
        assertThat(JsonPath.<String>read(document, "$.paths['/limited/{id}'].get.responses['429'].$ref"))
                .isEqualTo("#/components/responses/RateLimitedWithoutHeaders");
        assertThat(JsonPath.<Map<String, Object>>read(
                        document, "$.components.responses.RateLimitedWithoutHeaders.headers"))
                .containsOnlyKeys("Retry-After");
        for (String refusal : List.of("RateLimited", "RateLimitedWithoutHeaders")) {
            assertThat(JsonPath.<String>read(
                            document,
                            "$.components.responses." + refusal + ".content['application/problem+json'].schema.$ref"))
                    .isEqualTo("#/components/schemas/RateLimitProblem");
        }
        assertThat(headers(document, "/own", "429")).containsExactlyInAnyOrder("RateLimit", "Retry-After");
        assertThat(headers(document, "/class", "200")).containsExactlyInAnyOrderElementsOf(FIELDS);
        assertThat(JsonPath.<Map<String, Object>>read(document, "$.components.responses.RateLimited.headers"))
                .containsOnlyKeys("RateLimit", "RateLimit-Policy", "Retry-After");
    }

    /** Also where all limits hide their fields, and one of them denies while its backend is away. */
    @Test
    void theDocumentHasAllComponentsThatItRefersTo() throws Exception {
        String document = document(
                WebApplicationType.SERVLET,
                "--rate-limit.defaults.http-headers=none",
                "--rate-limit.redis.on-failure=deny",
                "--rate-limit.limits.limited.backend=away");
        assertThat(document).contains("/RateLimitUnavailable");
        assertThat(JsonPath.<List<String>>read(document, "$..$ref"))
                .isNotEmpty()
                .allSatisfy(reference -> assertThat(JsonPath.<Object>read(
                                document, "$" + reference.substring(1).replaceAll("/([^/]+)", "['$1']")))
                        .isNotNull());
    }

    @ParameterizedTest
    @ValueSource(strings = {"false", "off", "no", "OFF"})
    void offByProperty(String off) throws Exception {
        String document = document(WebApplicationType.SERVLET, "--rate-limit.http.open-api=" + off);
        assertThat(responses(document, "get", "/limited/{id}")).containsOnlyKeys("200");
        assertThat(document).doesNotContain("RateLimit-Policy", "/RateLimited");
    }

    @Test
    void aDocumentWithoutLimitedOperationsStaysAsItIs() throws Exception {
        assertThat(document(WebApplicationType.SERVLET, "--rate-limit.enabled=false"))
                .doesNotContain("RateLimit-Policy", "/RateLimited");
    }
}
