package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Threads;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import jakarta.servlet.Filter;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.Socket;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.security.access.AccessDeniedException;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.web.server.SecurityWebFiltersOrder;
import org.springframework.security.config.web.server.ServerHttpSecurity;
import org.springframework.security.core.userdetails.MapReactiveUserDetailsService;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetails;
import org.springframework.security.provisioning.InMemoryUserDetailsManager;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.access.intercept.AuthorizationFilter;
import org.springframework.security.web.server.SecurityWebFilterChain;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.cors.CorsConfiguration;
import org.springframework.web.cors.UrlBasedCorsConfigurationSource;
import org.springframework.web.reactive.config.WebFluxConfigurer;
import org.springframework.web.server.ResponseStatusException;
import org.springframework.web.server.WebFilter;
import org.springframework.web.servlet.config.annotation.CorsRegistry;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;
import reactor.core.publisher.Mono;

/** Callers who guess passwords where a route counts nothing: by preflights, excluded paths and the actuator. */
@ParameterizedClass
@MethodSource("kinds")
@Tag("slow")
class CredentialsAttacksTest {

    @RegisterExtension
    static final SharedServers SERVERS = new SharedServers();

    private static final String FRIEND = "http://friend.example";
    private static final String RIGHT = basic("right");
    private static final String[] ROUTE = {
        "rate-limit.limits.all.rate=5/h",
        "rate-limit.limits.all.key=clientIp",
        "rate-limit.routes[0].path=/**",
        "rate-limit.routes[0].exclude=/css/**",
        "rate-limit.routes[0].limits=all",
        "management.health.defaults.enabled=false",
        "management.endpoints.web.exposure.include=health,ratelimits",
        "management.endpoint.health.probes.add-additional-paths=true"
    };

    private static final AtomicReference<CompletableFuture<String>> LATER = new AtomicReference<>();
    private static final AtomicInteger CHECKED = new AtomicInteger();
    private static final AtomicInteger WAITING = new AtomicInteger();
    private static final AtomicInteger ANSWERED_BY_SERVLET = new AtomicInteger();

    @Parameter
    Kind kind;

    /** The others are in the proofs. */
    static Stream<Kind> kinds() {
        return Stream.of(Kind.TOMCAT);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aPreflightWithCredentialsIsCounted(boolean cors) throws IOException {
        for (String[] credentials : new String[][] {
            {"Authorization", basic("wrong")}, {"Proxy-Authorization", basic("wrong")}, {"Cookie", "SESSION=guess"}
        }) {
            RunningServer server = start(cors ? corsBean() : null);
            for (int i = 0; i < 5; i++) {
                assertThat(rawPreflight(server, credentials))
                        .startsWith("HTTP/1.1 ")
                        .doesNotContain(" 429 ");
            }
            assertThat(preflight(server, "/api/x", "Authorization", RIGHT).statusCode())
                    .isEqualTo(429);
            assertThat(server.get("/api/x", "Authorization", RIGHT).statusCode())
                    .isEqualTo(429);
        }
    }

    @Test
    void aPreflightThatNoCorsConfigurationEndsIsCounted() {
        RunningServer none = start(null);
        for (int i = 0; i < 5; i++) {
            assertThat(preflight(none, "/api/x", "X-Api-Key", "guess").statusCode())
                    .isEqualTo(401);
        }
        assertThat(preflight(none, "/api/x").statusCode()).isEqualTo(429);

        RunningServer other = start(corsBean());
        String[] stranger = {"Origin", "http://stranger.example", "Access-Control-Request-Method", "GET"};
        for (int i = 0; i < 5; i++) {
            assertThat(other.send("OPTIONS", "/api/x", stranger).statusCode()).isEqualTo(403);
        }
        assertThat(other.send("OPTIONS", "/api/x", stranger).statusCode()).isEqualTo(429);
    }

    @Test
    void aPreflightThatTheApplicationAllowsIsNot() {
        for (Class<?> cors : List.of(corsBean(), corsOfHandlers())) {
            RunningServer server = start(cors);
            for (int i = 0; i < 10; i++) {
                requireAllowed(preflight(server, "/api/x"));
            }
            for (int i = 0; i < 5; i++) {
                assertThat(server.get("/api/x", "Authorization", RIGHT).statusCode())
                        .isEqualTo(200);
            }
            assertThat(server.get("/api/x", "Authorization", RIGHT).statusCode())
                    .isEqualTo(429);
            requireAllowed(preflight(server, "/api/x"));
        }
    }

    @Test
    void aRouteThatNamesOptionsCountsIt() {
        RunningServer server = start(corsBean(), "rate-limit.routes[0].methods=GET,OPTIONS");
        for (int i = 0; i < 5; i++) {
            requireAllowed(preflight(server, "/api/x"));
        }
        assertThat(preflight(server, "/api/x").statusCode()).isEqualTo(429);
    }

    @Test
    void aServletBesideTheDispatcherAnswersNoPreflightForNothing() {
        if (kind == Kind.REACTOR_NETTY) {
            return;
        }
        for (List<Class<?>> cors : List.of(List.<Class<?>>of(), List.<Class<?>>of(Cors.class, MvcCors.class))) {
            ANSWERED_BY_SERVLET.set(0);
            List<Class<?>> sources = new ArrayList<>(List.of(Open.class, OtherServlet.class));
            sources.addAll(cors);
            try (RunningServer server = kind.start(sources, ROUTE)) {
                for (int i = 0; i < 10; i++) {
                    preflight(server, "/other/x");
                    preflight(server, "/other/x", "Cookie", "a=b");
                }
                assertThat(ANSWERED_BY_SERVLET).hasValue(5);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"/css/a.css", "/actuator", "/actuator/health", "/livez"})
    void whatARouteLeavesOutIsNoPlaceToGuess(String path) {
        RunningServer server = start(null);
        for (int i = 0; i < 5; i++) {
            assertThat(server.get(path, "Authorization", basic("wrong")).statusCode())
                    .isEqualTo(401);
        }
        assertThat(server.get(path, "Authorization", RIGHT).statusCode()).isEqualTo(429);
        assertThat(server.get(path, "Cookie", "remember-me=guess").statusCode()).isEqualTo(429);
        assertThat(server.get(path).statusCode())
                .as("who has used up a budget is exempt nowhere")
                .isEqualTo(429);
    }

    @ParameterizedTest
    @ValueSource(strings = {"/css/a.css", "/actuator", "/actuator/health", "/livez"})
    void whatARouteLeavesOutCostsNothingUnlessCredentialsAreRejected(String path) {
        for (boolean secured : new boolean[] {false, true}) {
            RunningServer server = startWithKeys(secured);
            for (int i = 0; i < 10; i++) {
                assertThat(server.get(path, "X-Api-Key", "right").statusCode()).isIn(200, 404);
            }
            assertThat(server.get("/api/x").headers().firstValue("RateLimit"))
                    .hasValueSatisfying(left -> assertThat(left).contains("r=4"));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"/css/a.css", "/actuator", "/actuator/health", "/livez"})
    void whatARouteLeavesOutIsNoPlaceToGuessCredentialsOfTheApplicationsOwn(String path) {
        for (boolean secured : new boolean[] {false, true}) {
            RunningServer server = startWithKeys(secured);
            for (int i = 0; i < 5; i++) {
                int status = i % 2 == 0
                        ? server.get(path, "X-Api-Key", "guess" + i).statusCode()
                        : server.get(path + "?access_token=guess" + i).statusCode();
                assertThat(status).as("guess %d of %s", i, path).isIn(401, 403);
            }
            for (int i = 0; i < 3; i++) {
                assertThat(server.get(path, "X-Api-Key", "right").statusCode())
                        .as("the right one, secured: " + secured)
                        .isEqualTo(429);
            }
            assertThat(server.get(path + "?access_token=right").statusCode()).isEqualTo(429);
            assertThat(server.get("/api/x", "X-Api-Key", "right").statusCode()).isEqualTo(429);
            server.ticker().advance(Duration.ofHours(1));
            assertThat(server.get(path, "X-Api-Key", "right").statusCode()).isIn(200, 404);
        }
    }

    /** After a wait for its end, a window always has permits: guesses wait as on every other path. */
    @ParameterizedTest
    @ValueSource(strings = {"fixed-window", "sliding-log", "sliding-window", "token-bucket"})
    void guessesThatWouldHaveToWaitAreExemptNowhere(String algorithm) {
        RunningServer server = startWithKeys(
                false,
                "rate-limit.limits.all.algorithm=" + algorithm,
                "rate-limit.limits.all.rate=5/s",
                "rate-limit.limits.all.policy=wait",
                "rate-limit.limits.all.max-wait=10s");
        for (int i = 0; i < 5; i++) {
            assertThat(server.get("/css/a.css", "X-Api-Key", "guess" + i).statusCode())
                    .isEqualTo(401);
        }
        CompletableFuture<HttpResponse<String>> sixth =
                CompletableFuture.supplyAsync(() -> server.get("/css/a.css", "X-Api-Key", "guess5"));
        Threads.until(() -> server.ticker().sleeping() == 1);
        server.ticker().advance(Duration.ofSeconds(2));
        assertThat(sixth.join().statusCode()).isEqualTo(401);
    }

    /** Callers can leave out what the key of a limit needs: the other limits of the route stay. */
    @Test
    void aLimitWhoseKeyCannotBeReadEndsNoOtherLimitWhereARouteLeavesRequestsOut() {
        RunningServer server = startWithKeys(
                false,
                "rate-limit.limits.tenants.rate=5/h",
                "rate-limit.limits.tenants.key=header('X-Tenant').toLowerCase()",
                "rate-limit.routes[0].limits=tenants,all");
        assertThat(server.get("/css/a.css").statusCode()).isEqualTo(404);
        for (int i = 0; i < 5; i++) {
            assertThat(server.get("/css/a.css", "X-Api-Key", "guess" + i).statusCode())
                    .isEqualTo(401);
        }
        assertThat(server.get("/css/a.css", "X-Api-Key", "right").statusCode())
                .as("counted, and so without a key for its tenant")
                .isEqualTo(400);
        assertThat(server.get("/css/a.css", "X-Api-Key", "right", "X-Tenant", "shop")
                        .statusCode())
                .isEqualTo(429);
    }

    /** Spring Security makes 401 or 403 of exceptions of handlers, when all filters behind it have returned. */
    @Test
    void aGuessThatAHandlerRejectsByAnExceptionOfSpringSecurityIsCharged() {
        RunningServer server = startWithKeys(true);
        for (int i = 0; i < 5; i++) {
            assertThat(server.get("/css/wrong").statusCode()).isIn(401, 403);
        }
        assertThat(server.get("/css/a.css").statusCode()).isEqualTo(429);
    }

    /** Filters of Spring Security check keys there, though its firewall keeps the request itself from them. */
    @Test
    void aGuessThatAnErrorPageRejectsIsCharged() {
        RunningServer server = startWithKeys(true);
        String strange = "/css/x/../a.css";
        assertThat(server.get(strange, "X-Api-Key", "right").statusCode()).isEqualTo(400);
        if (kind == Kind.REACTOR_NETTY) {
            return; // no dispatch to an error page
        }
        for (int i = 0; i < 5; i++) {
            assertThat(server.get(strange, "X-Api-Key", "guess" + i).statusCode())
                    .isEqualTo(401);
        }
        assertThat(server.get(strange, "X-Api-Key", "right").statusCode()).isEqualTo(429);
    }

    /** Tomcat dispatches it to the error page at once, where filters of Spring Security check keys. */
    @Test
    void aRequestThatTheServerRejectsIsCounted() {
        RunningServer server = startWithKeys(true);
        for (int i = 0; i < 5; i++) {
            int status =
                    server.send("TRACE", "/api/x", "X-Api-Key", "guess" + i).statusCode();
            assertThat(status).isEqualTo(kind == Kind.REACTOR_NETTY ? 400 : 401);
        }
        assertThat(server.send("TRACE", "/api/x", "X-Api-Key", "right").statusCode())
                .isEqualTo(429);
        assertThat(server.send("TRACE", "/api/x", "X-Api-Key", "right", "Accept", "text/html")
                        .statusCode())
                .isEqualTo(429);
        assertThat(server.get("/api/x", "X-Api-Key", "right").statusCode()).isEqualTo(429);
    }

    /** Of a form login, which makes a session for each request that it redirects. Any client can ask for HTML. */
    @ParameterizedTest
    @ValueSource(strings = {"/css/a.css", "/actuator", "/actuator/health", "/livez"})
    void aRedirectToTheLoginIsCharged(String path) {
        boolean reactive = kind == Kind.REACTOR_NETTY;
        RunningServer server = SERVERS.getSecured(
                kind, List.of(Open.class, reactive ? ReactiveFormLogin.class : FormLogin.class), ROUTE);
        for (int i = 0; i < 5; i++) {
            HttpResponse<String> redirect = server.get(path, "Accept", "text/html");
            assertThat(redirect.statusCode()).isEqualTo(302);
            assertThat(redirect.headers().firstValue("Location"))
                    .hasValueSatisfying(login -> assertThat(login).endsWith("/login"));
        }
        assertThat(server.get(path, "Accept", "text/html").statusCode()).isEqualTo(429);
    }

    @Test
    void anUnchangedFileCostsNothing() {
        RunningServer server = startWithKeys(false);
        for (int i = 0; i < 10; i++) {
            assertThat(server.get("/css/unchanged").statusCode()).isEqualTo(304);
        }
    }

    /** Who guesses by many requests at one time owes what they cost. */
    @Test
    void guessesAtOneTimeAreAllCharged() throws Exception {
        RunningServer server = startWithKeys(false);
        CompletableFuture<String> checked = new CompletableFuture<>();
        LATER.set(checked);
        List<CompletableFuture<HttpResponse<String>>> guesses = new ArrayList<>();
        WAITING.set(0);
        for (int i = 0; i < 12; i++) {
            guesses.add(server.getAsync("/css/later"));
        }
        Threads.until(() -> WAITING.get() == 12);
        checked.completeExceptionally(new ResponseStatusException(HttpStatus.UNAUTHORIZED));
        for (CompletableFuture<HttpResponse<String>> guess : guesses) {
            assertThat(guess.get().statusCode()).isEqualTo(401);
        }
        assertThat(server.get("/css/a.css").statusCode()).isEqualTo(429);
        server.ticker().advance(Duration.ofHours(1));
        assertThat(server.get("/css/a.css").statusCode())
                .as("seven are owed, five have come back")
                .isEqualTo(429);
        server.ticker().advance(Duration.ofHours(1));
        assertThat(server.get("/css/a.css").statusCode()).isEqualTo(404);
    }

    /** Of a handler method that is limited by its class, and called by another handler for many accounts. */
    @ParameterizedTest
    @ValueSource(strings = {"/batch/of-ann", "/batch/after-a-decoy", "/logins/again"})
    void aBatchOfGuessesIsChargedEach(String path) {
        RunningServer server = SERVERS.get(kind, List.of(Open.class, Logins.class, Batch.class));
        CHECKED.set(0);
        assertThat(server.get(path + "?user=ann").statusCode()).isEqualTo(429);
        assertThat(CHECKED).as("passwords of ann").hasValue(5);
        assertThat(server.get("/logins/check?user=ann").statusCode()).isEqualTo(429);
        assertThat(server.get("/logins/check?user=tom").statusCode()).isEqualTo(200);
    }

    /** A limit of everybody, which strangers have used up. */
    @Test
    void aLimitWithoutAKeyFailsNoHealthCheck() {
        RunningServer server = startWithKeys(false, "rate-limit.limits.all.key=");
        for (int i = 0; i < 6; i++) {
            server.get("/api/x");
        }
        assertThat(server.get("/api/x").statusCode()).isEqualTo(429);
        assertThat(server.get("/livez").statusCode()).isEqualTo(200);
        assertThat(server.get("/css/a.css").statusCode()).isEqualTo(404);
    }

    /** An operator has closed it: no caller has used a permit. */
    @Test
    void aLimitThatIsClosedFailsNoHealthCheck() {
        RunningServer server = startWithKeys(false, "rate-limit.limits.all.rate=0/s");
        assertThat(server.get("/api/x").statusCode()).isEqualTo(429);
        assertThat(server.get("/livez").statusCode()).isEqualTo(200);
        assertThat(server.get("/css/a.css").statusCode()).isEqualTo(404);
        assertThat(server.get("/css/a.css", "Cookie", "SESSION=guess").statusCode())
                .isEqualTo(429);
    }

    /** Otherwise it could guess as often as it likes. */
    @Test
    void aCallerWhoseBudgetIsClosedIsNotExempt() {
        RunningServer server = startWithKeys(false, "rate-limit.limits.all.rate=4/h");
        server.context.getBean(RateLimitOperations.class).override("all", "127.0.0.1", LimitChange.rate("0/s"), null);
        assertThat(server.get("/css/a.css").statusCode()).isEqualTo(429);
    }

    /** The limit is closed for callers without the tier: this one has used permits of its own. */
    @Test
    void aCallerWhoHasUsedUpATierOfAClosedLimitIsNotExempt() {
        RunningServer server = startWithKeys(
                false,
                "rate-limit.limits.all.rate=0/s",
                "rate-limit.limits.all.tier='gold'",
                "rate-limit.limits.all.tiers.gold.rate=2/h");
        for (int status : new int[] {401, 401, 429}) {
            assertThat(server.get("/css/a.css", "X-Api-Key", "guess").statusCode())
                    .isEqualTo(status);
        }
    }

    /** Of another route, or of a method: no credentials were checked. */
    @ParameterizedTest
    @ValueSource(strings = {"/css/a.css", "/css/limited"})
    void aRejectionWhereARouteLeavesRequestsOutIsNoGuess(String path) {
        RunningServer server = startWithKeys(
                false,
                "rate-limit.http.status=403",
                "rate-limit.limits.files.rate=1/h",
                "rate-limit.limits.files.key=clientIp",
                "rate-limit.routes[1].path=/css/a.css",
                "rate-limit.routes[1].limits=files");
        assertThat(server.get(path).statusCode()).isIn(200, 404);
        for (int i = 0; i < 3; i++) {
            assertThat(server.get(path).statusCode()).isEqualTo(403);
        }
        assertThat(server.get("/api/x").headers().firstValue("RateLimit"))
                .hasValueSatisfying(left -> assertThat(left).contains("r=4"));
    }

    /** An application whose filters check keys: behind Spring Security's or among them. */
    private RunningServer startWithKeys(boolean secured, String... settings) {
        String[] all = Stream.of(ROUTE, settings).flatMap(Stream::of).toArray(String[]::new);
        boolean reactive = kind == Kind.REACTOR_NETTY;
        return secured
                ? SERVERS.getSecured(
                        kind, List.of(Keyed.class, reactive ? ReactiveKeyChain.class : KeyChain.class), all)
                : SERVERS.get(kind, List.of(Keyed.class, reactive ? ReactiveKeyFilter.class : KeyFilter.class), all);
    }

    /** The limit of everything is unkeyed here, and a stranger has used it up. */
    @Test
    void anOperatorWhoseRouteNamesTheActuatorLiftsAStarvedLimit() {
        String[] own = {
            "rate-limit.routes[0].key=", "rate-limit.limits.all.key=",
            "rate-limit.limits.operators.rate=3/h", "rate-limit.routes[1].path=/actuator/**",
            "rate-limit.routes[1].limits=operators", "rate-limit.routes[1].key=clientIp"
        };
        RunningServer server = start(null, own);
        for (int i = 0; i < 6; i++) {
            server.get("/api/x");
        }
        assertThat(server.get("/api/x", "Authorization", RIGHT).statusCode()).isEqualTo(429);
        assertThat(change(server, RIGHT, "{\"rate\":\"500/h\"}").statusCode()).isEqualTo(200);
        server.ticker().advance(Duration.ofMinutes(1));
        assertThat(server.get("/api/x", "Authorization", RIGHT).statusCode()).isEqualTo(200);
        assertThat(change(server, basic("wrong"), "{}").statusCode()).isEqualTo(401);
        assertThat(change(server, basic("wrong"), "{}").statusCode()).isEqualTo(401);
        assertThat(change(server, RIGHT, "{}").statusCode())
                .as("guesses are counted by the route of the operators")
                .isEqualTo(429);
        assertThat(server.get("/livez", "Authorization", RIGHT).statusCode())
                .as("which names another path")
                .isEqualTo(200);
    }

    /** That is: not with calls in flight, and not with limits that callers can avoid. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "algorithm=concurrency; max-concurrent=300; key=clientIp",
                "algorithm=adaptive; max-concurrent=300",
                "rate=300/h; key=clientIp; policy=shadow",
                "rate=300/h; key=clientIp; when=header('X-Internal') == null",
                "rate=300/h; key=clientIp; missing-key=skip",
                "rate=unlimited; key=clientIp",
                "rate=300/h; key=header('X-Operator')"
            })
    void aRouteThatNamesTheActuatorReplacesOthersOnlyWhereItsLimitBoundsGuesses(String limit) {
        Stream<String> own = Stream.of(limit.split("; ")).map(setting -> "rate-limit.limits.operators." + setting);
        String[] route = {"rate-limit.routes[1].path=/actuator/**", "rate-limit.routes[1].limits=operators"};
        RunningServer server = start(null, Stream.concat(own, Stream.of(route)).toArray(String[]::new));
        for (int i = 0; i < 5; i++) {
            assertThat(change(server, basic("wrong"), "{}").statusCode()).isEqualTo(401);
        }
        assertThat(change(server, RIGHT, "{}").statusCode())
                .as("guesses are counted by the route of all paths")
                .isEqualTo(429);
    }

    private static HttpResponse<String> change(RunningServer server, String authorization, String body) {
        try {
            return HttpClient.newHttpClient()
                    .send(
                            HttpRequest.newBuilder(server.uri("/actuator/ratelimits/all"))
                                    .header("Authorization", authorization)
                                    .header("Content-Type", "application/json")
                                    .POST(HttpRequest.BodyPublishers.ofString(body))
                                    .build(),
                            HttpResponse.BodyHandlers.ofString());
        } catch (IOException | InterruptedException ex) {
            throw new AssertionError(ex);
        }
    }

    /** A client of the JDK sends proxies only what is meant for them. */
    private static String rawPreflight(RunningServer server, String[] credentials) throws IOException {
        try (Socket socket = server.connect()) {
            socket.setSoTimeout(20_000);
            String request = "OPTIONS /api/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nOrigin: " + FRIEND
                    + "\r\nAccess-Control-Request-Method: GET\r\n" + credentials[0] + ": " + credentials[1]
                    + "\r\n\r\n";
            socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8)
                    .lines()
                    .findFirst()
                    .orElse("");
        }
    }

    private static HttpResponse<String> preflight(RunningServer server, String path, String... more) {
        String[] preflight = {"Origin", FRIEND, "Access-Control-Request-Method", "GET"};
        return server.send(
                "OPTIONS", path, Stream.of(preflight, more).flatMap(Stream::of).toArray(String[]::new));
    }

    private static void requireAllowed(HttpResponse<String> preflight) {
        assertThat(preflight.statusCode()).isEqualTo(200);
        assertThat(preflight.headers().allValues("Access-Control-Allow-Origin")).containsExactly(FRIEND);
    }

    private static String basic(String password) {
        return "Basic " + Base64.getEncoder().encodeToString(("ann:" + password).getBytes(StandardCharsets.UTF_8));
    }

    /** One whose budgets are full. */
    private RunningServer start(Class<?> cors, String... settings) {
        List<Class<?>> sources = new ArrayList<>(List.of(kind == Kind.REACTOR_NETTY ? Reactive.class : Basic.class));
        if (cors != null) {
            sources.add(cors);
        }
        return SERVERS.getSecured(
                kind, sources, Stream.of(ROUTE, settings).flatMap(Stream::of).toArray(String[]::new));
    }

    private Class<?> corsBean() {
        return kind == Kind.REACTOR_NETTY ? ReactiveCorsBean.class : Cors.class;
    }

    private Class<?> corsOfHandlers() {
        return kind == Kind.REACTOR_NETTY ? FluxCors.class : MvcCorsOfSecurity.class;
    }

    private static UserDetails ann() {
        return User.withUsername("ann").password("{noop}right").roles("USER").build();
    }

    private static CorsConfiguration friends() {
        CorsConfiguration friends = new CorsConfiguration();
        friends.addAllowedOrigin(FRIEND);
        return friends;
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Open {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean
        Api api() {
            return new Api();
        }
    }

    @RestController
    static class Api {

        @GetMapping("/api/x")
        String get() {
            return "x";
        }
    }

    @RestController
    @RateLimited(name = "logins", rate = "5/h", key = "#user")
    public static class Logins {

        private final ObjectProvider<Logins> self;

        public Logins(ObjectProvider<Logins> self) {
            this.self = self;
        }

        @GetMapping("/logins/check")
        public String check(@RequestParam String user) {
            if (user.equals("ann")) {
                CHECKED.incrementAndGet();
            }
            return "no";
        }

        @GetMapping("/logins/again")
        public String again(@RequestParam String user) {
            CHECKED.incrementAndGet();
            return self.getObject().again(user);
        }
    }

    @RestController
    static class Batch {

        private final Logins logins;

        Batch(Logins logins) {
            this.logins = logins;
        }

        @GetMapping("/batch/of-ann")
        String ofAnn() {
            for (int i = 0; i < 12; i++) {
                logins.check("ann");
            }
            return "all";
        }

        @GetMapping("/batch/after-a-decoy")
        String afterADecoy() {
            logins.check("bob");
            return ofAnn();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Keyed extends Open {

        @Bean
        Keys keys() {
            return new Keys();
        }
    }

    @RestController
    public static class Keys {

        @GetMapping("/css/later")
        CompletableFuture<String> later() {
            WAITING.incrementAndGet();
            return LATER.get();
        }

        @GetMapping("/css/unchanged")
        ResponseEntity<Void> unchanged() {
            return ResponseEntity.status(HttpStatus.NOT_MODIFIED).build();
        }

        @GetMapping("/css/limited")
        @RateLimited(name = "limited", rate = "1/h", key = "clientIp")
        public String limited() {
            return "limited";
        }

        @GetMapping("/css/wrong")
        String wrong() {
            throw new AccessDeniedException("wrong");
        }
    }

    /** Answers requests whose key is wrong. */
    @Configuration(proxyBeanMethods = false)
    static class KeyFilter {

        @Bean
        Filter keyFilter() {
            return checkingKeys();
        }
    }

    private static Filter checkingKeys() {
        return (request, response, chain) -> {
            HttpServletRequest http = (HttpServletRequest) request;
            String key = http.getHeader("X-Api-Key");
            if (isWrong(key == null ? http.getParameter("access_token") : key)) {
                ((HttpServletResponse) response).sendError(key == null ? 403 : 401);
            } else {
                chain.doFilter(request, response);
            }
        };
    }

    private static boolean isWrong(String key) {
        return key != null && !key.equals("right");
    }

    @Configuration(proxyBeanMethods = false)
    static class KeyChain {

        @Bean
        SecurityFilterChain keyChain(HttpSecurity http) {
            return http.authorizeHttpRequests(all -> all.anyRequest().permitAll())
                    .addFilterBefore(checkingKeys(), AuthorizationFilter.class)
                    .build();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ReactiveKeyFilter {

        @Bean
        WebFilter keyFilter() {
            return checkingReactiveKeys();
        }
    }

    private static WebFilter checkingReactiveKeys() {
        return (exchange, chain) -> {
            String key = exchange.getRequest().getHeaders().getFirst("X-Api-Key");
            String parameter = exchange.getRequest().getQueryParams().getFirst("access_token");
            if (isWrong(key == null ? parameter : key)) {
                if (key == null) {
                    return Mono.error(new ResponseStatusException(HttpStatus.FORBIDDEN));
                }
                exchange.getResponse().setStatusCode(HttpStatus.UNAUTHORIZED);
                return exchange.getResponse().setComplete();
            }
            return chain.filter(exchange);
        };
    }

    @Configuration(proxyBeanMethods = false)
    static class ReactiveKeyChain {

        @Bean
        SecurityWebFilterChain keyChain(ServerHttpSecurity http) {
            return http.authorizeExchange(all -> all.anyExchange().permitAll())
                    .addFilterAt(checkingReactiveKeys(), SecurityWebFiltersOrder.AUTHENTICATION)
                    .build();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Basic extends Open {

        @Bean
        InMemoryUserDetailsManager users() {
            return new InMemoryUserDetailsManager(ann());
        }

        @Bean
        SecurityFilterChain basic(HttpSecurity http) {
            return http.authorizeHttpRequests(all -> all.anyRequest().authenticated())
                    .httpBasic(Customizer.withDefaults())
                    .csrf(csrf -> csrf.disable())
                    .build();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Reactive extends Open {

        @Bean
        MapReactiveUserDetailsService users() {
            return new MapReactiveUserDetailsService(ann());
        }

        @Bean
        SecurityWebFilterChain basic(ServerHttpSecurity http) {
            return http.authorizeExchange(all -> all.anyExchange().authenticated())
                    .httpBasic(Customizer.withDefaults())
                    .csrf(ServerHttpSecurity.CsrfSpec::disable)
                    .build();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class FormLogin {

        @Bean
        SecurityFilterChain formLogin(HttpSecurity http) {
            return http.authorizeHttpRequests(all -> all.anyRequest().authenticated())
                    .formLogin(Customizer.withDefaults())
                    .build();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ReactiveFormLogin {

        @Bean
        MapReactiveUserDetailsService users() {
            return new MapReactiveUserDetailsService(ann());
        }

        @Bean
        SecurityWebFilterChain formLogin(ServerHttpSecurity http) {
            return http.authorizeExchange(all -> all.anyExchange().authenticated())
                    .formLogin(Customizer.withDefaults())
                    .build();
        }
    }

    /** Which Spring Security adds to its filters by itself. */
    @Configuration(proxyBeanMethods = false)
    static class Cors {

        @Bean
        UrlBasedCorsConfigurationSource corsConfigurationSource() {
            UrlBasedCorsConfigurationSource source = new UrlBasedCorsConfigurationSource();
            source.registerCorsConfiguration("/api/**", friends());
            return source;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ReactiveCorsBean {

        @Bean
        org.springframework.web.cors.reactive.UrlBasedCorsConfigurationSource corsConfigurationSource() {
            var source = new org.springframework.web.cors.reactive.UrlBasedCorsConfigurationSource();
            source.registerCorsConfiguration("/api/**", friends());
            return source;
        }
    }

    /** Spring Security, too, asks Spring MVC. */
    @Configuration(proxyBeanMethods = false)
    static class MvcCorsOfSecurity extends MvcCors {

        @Bean
        Customizer<HttpSecurity> cors() {
            return http -> http.cors(Customizer.withDefaults());
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class MvcCors implements WebMvcConfigurer {

        @Override
        public void addCorsMappings(CorsRegistry registry) {
            registry.addMapping("/**").allowedOrigins(FRIEND);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class FluxCors implements WebFluxConfigurer {

        @Override
        public void addCorsMappings(org.springframework.web.reactive.config.CorsRegistry registry) {
            registry.addMapping("/**").allowedOrigins(FRIEND);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OtherServlet {

        @Bean
        ServletRegistrationBean<HttpServlet> other() {
            return new ServletRegistrationBean<>(
                    new HttpServlet() {
                        @Override
                        protected void doOptions(HttpServletRequest request, HttpServletResponse response) {
                            ANSWERED_BY_SERVLET.incrementAndGet();
                        }
                    },
                    "/other/*");
        }
    }
}
