package io.ratelimited.spring.internals.check;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Limit;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.internals.limit.KeyMemory;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpSession;
import java.lang.reflect.Method;
import java.security.Principal;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.event.ContextRefreshedEvent;
import org.springframework.graphql.data.method.annotation.Argument;
import org.springframework.http.codec.multipart.FilePart;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.jms.annotation.JmsListener;
import org.springframework.messaging.Message;
import org.springframework.messaging.handler.annotation.DestinationVariable;
import org.springframework.messaging.handler.annotation.Header;
import org.springframework.messaging.handler.annotation.MessageMapping;
import org.springframework.messaging.handler.annotation.Payload;
import org.springframework.messaging.simp.SimpMessageHeaderAccessor;
import org.springframework.messaging.simp.annotation.SubscribeMapping;
import org.springframework.security.authentication.UsernamePasswordAuthenticationToken;
import org.springframework.security.core.annotation.AuthenticationPrincipal;
import org.springframework.validation.annotation.Validated;
import org.springframework.web.bind.annotation.CookieValue;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.MatrixVariable;
import org.springframework.web.bind.annotation.ModelAttribute;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestAttribute;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestHeader;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RequestPart;
import org.springframework.web.context.request.WebRequest;
import org.springframework.web.multipart.MultipartFile;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.service.annotation.GetExchange;
import org.springframework.web.servlet.function.ServerRequest;

/** What the start says of limits that callers can get around with keys of their own, or that fill memory with them. */
@ExtendWith(CapturedLog.Capture.class)
@Tag("slow")
class KeyAttacksTest {

    private static final String INVENTED = "clients control the key";

    private final ContextRunner runner =
            ContextRunner.limited(new ManualTicker()).withBean("keys", Keys.class);

    static class Keys {

        public @Nullable String owner(@Nullable String apiKey) {
            return apiKey;
        }
    }

    static class Prices {

        @RateLimited(name = "prices", rate = "5/m")
        public void all() {}
    }

    private ContextRunner withKey(String key) {
        return runner.withBean(Prices.class).withPropertyValues("rate-limit.limits.prices.key=" + key);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "header('X-Api-Key')",
                "header('X-Api-Key') ?: clientIp",
                "header('X-Api-Key')?.toLowerCase()",
                "#root.header('X-Api-Key')",
                "{clientIp, header('X-Api-Key')}",
                "'key ' + header('X-Api-Key')",
                "@keys.owner('ann') ?: header('X-Api-Key')",
                "T(java.lang.String).valueOf(header('X-Api-Key'))",
                "session",
                "session ?: clientIp",
                "#root.session"
            })
    void aKeyThatCallersInventIsReported(String key, CapturedLog output) {
        withKey(key).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output)
                    .containsOnlyOnce(" " + Prices.class.getName() + ".all: " + INVENTED
                            + " of rate limit 'prices' \"" + key
                            + "\", and each new key gets a fresh limit. Add a limit"
                            + " with the key clientIp (in WebSocket messages: principal) to the same call, or look the key up in a bean, as in"
                            + " @keys.owner(header('X-Api-Key')).");
        });
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "@keys.owner(header('X-Api-Key'))",
                "@keys.owner(header('X-Api-Key')) ?: clientIp",
                "@keys.owner(session).length()",
                "{clientIp, @keys.owner(header('X-Api-Key'))}",
                "clientIp",
                "principal",
                "'session'",
                "'header'"
            })
    void aKeyThatABeanLooksUpIsNotReported(String key, CapturedLog output) {
        withKey(key).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output).doesNotContain(INVENTED);
        });
    }

    static class Bounded {

        @RateLimited(name = "address", rate = "50/s", key = "clientIp")
        @RateLimited(name = "caller", rate = "5/s", key = "header('X-Api-Key')")
        public void byAddress() {}

        @RateLimited(name = "all", rate = "50/s")
        @RateLimited(name = "other", rate = "5/s", key = "session")
        public void byAll() {}
    }

    @Test
    void aLimitBesideItBoundsAnInventedKey(CapturedLog output) {
        runner.withBean(Bounded.class).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output).doesNotContain(INVENTED);
        });
    }

    static class Unbounded {

        @RateLimited(name = "header", rate = "50/s", key = "header('X-Api-Key')")
        @RateLimited(name = "session", rate = "5/s", key = "session")
        public void both() {}

        @RateLimited(name = "watched", rate = "50/s", key = "clientIp")
        @RateLimited(name = "third", rate = "5/s", key = "header('X-Api-Key')")
        public void shadowed() {}

        @RateLimited(name = "sometimes", rate = "50/s", key = "clientIp", when = "#wanted")
        @RateLimited(name = "fourth", rate = "5/s", key = "header('X-Api-Key')")
        public void conditional(boolean wanted) {}
    }

    @Test
    void aLimitThatDoesNotRefuseBoundsNothing(CapturedLog output) {
        runner.withBean(Unbounded.class)
                .withPropertyValues("rate-limit.limits.watched.policy=shadow")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(output)
                            .containsOnlyOnce(INVENTED + " of rate limit 'header'")
                            .containsOnlyOnce(INVENTED + " of rate limit 'session'")
                            .containsOnlyOnce(INVENTED + " of rate limit 'third'")
                            .containsOnlyOnce(INVENTED + " of rate limit 'fourth'");
                });
    }

    interface Declared {

        void declared(@RequestHeader("X-Api-Key") String key);
    }

    static class Handlers implements Declared {

        @RateLimited(name = "of-header", rate = "5/s", key = "#k")
        public void header(@RequestHeader("X-Api-Key") String k) {}

        @RateLimited(name = "of-parameter", rate = "5/s", key = "#p0.toLowerCase()")
        public void parameter(@RequestParam String k) {}

        @RateLimited(name = "of-cookie", rate = "5/s", key = "{clientIp, #k}")
        public void cookie(@CookieValue String k) {}

        @Override
        @RateLimited(name = "of-interface", rate = "5/s", key = "#key")
        public void declared(String key) {}

        @GetMapping("/unannotated")
        @RateLimited(name = "of-name", rate = "5/s", key = "#k")
        public void unannotated(String k) {}

        @RateLimited(name = "of-request", rate = "5/s", key = "#request.getHeader('X-Api-Key')")
        public void request(HttpServletRequest request) {}

        @RateLimited(name = "of-web-request", rate = "5/s", key = "#request.getParameter('key')")
        public void webRequest(WebRequest request) {}

        @RateLimited(name = "of-server-request", rate = "5/s", key = "#request.headers.getFirst('X-Api-Key')")
        public void serverRequest(ServerHttpRequest request) {}

        @RateLimited(name = "of-exchange", rate = "5/s", key = "#exchange.request.queryParams.getFirst('key')")
        public void exchange(ServerWebExchange exchange) {}

        @RateLimited(name = "of-function", rate = "5/s", key = "#request.headers().firstHeader('X-Api-Key')")
        public void function(ServerRequest request) {}

        @RateLimited(name = "of-session", rate = "5/s", key = "#session.id")
        public void session(HttpSession session) {}
    }

    @Test
    void aKeyThatAHandlerBindsFromTheRequestIsReported(CapturedLog output) {
        runner.withBean(Handlers.class).run(context -> {
            assertThat(context).hasNotFailed();
            for (String from : List.of(
                    "header",
                    "parameter",
                    "cookie",
                    "interface",
                    "name",
                    "request",
                    "web-request",
                    "server-request",
                    "exchange",
                    "function",
                    "session")) {
                assertThat(output).containsOnlyOnce(INVENTED + " of rate limit 'of-" + from + "'");
            }
        });
    }

    record Form(String name, String plan, boolean debug, int number, List<String> items) {}

    /** What Spring binds, in every way that it does. */
    static class Bound {

        @RateLimited(name = "of-path", rate = "5/s", key = "#k")
        @GetMapping("/{k}")
        public void path(@PathVariable String k) {}

        @RateLimited(name = "of-matrix", rate = "5/s", key = "#k")
        public void matrix(@MatrixVariable String k) {}

        @RateLimited(name = "of-body", rate = "5/s", key = "#form.name")
        public void body(@RequestBody Form form) {}

        @RateLimited(name = "of-part", rate = "5/s", key = "#form.name()")
        public void part(@RequestPart Form form) {}

        @RateLimited(name = "of-attribute", rate = "5/s", key = "#form.name.toLowerCase()")
        public void attribute(@ModelAttribute Form form) {}

        @RateLimited(name = "of-form", rate = "5/s", key = "#form.name")
        @PostMapping("/form")
        public void form(Form form) {}

        @RateLimited(name = "of-valid-form", rate = "5/s", key = "#form.name")
        @PostMapping("/valid")
        public void valid(@Validated @Nullable Form form) {}

        @RateLimited(name = "of-file", rate = "5/s", key = "#file.originalFilename")
        @PostMapping("/file")
        public void file(MultipartFile file) {}

        @RateLimited(name = "of-file-part", rate = "5/s", key = "#file.filename()")
        public void filePart(FilePart file) {}

        @RateLimited(name = "of-host", rate = "5/s", key = "#request.serverName")
        public void host(HttpServletRequest request) {}

        @RateLimited(name = "of-uri", rate = "5/s", key = "#request.requestURI")
        public void uri(HttpServletRequest request) {}

        @RateLimited(name = "of-exchange-host", rate = "5/s", key = "#exchange.request.URI.host")
        public void exchangeHost(ServerWebExchange exchange) {}

        @RateLimited(name = "of-args", rate = "5/s", key = "args[1]")
        public void args(int other, @RequestParam String k) {}

        @RateLimited(name = "of-root-args", rate = "5/s", key = "#root.args[0].name")
        public void rootArgs(@RequestBody Form form) {}

        @RateLimited(name = "of-request-args", rate = "5/s", key = "args[0].getHeader('X-Api-Key')")
        public void requestArgs(HttpServletRequest request) {}

        @RateLimited(name = "of-all-args", rate = "5/s", key = "args")
        public void allArgs(@RequestParam String k) {}

        @RateLimited(name = "of-exchange", rate = "5/s", key = "#k")
        @GetExchange("/exchange")
        public void exchange(String k) {}

        @RateLimited(name = "of-stomp-header", rate = "5/s", key = "#k")
        @MessageMapping("/header")
        public void stompHeader(@Header String k) {}

        @RateLimited(name = "of-stomp-variable", rate = "5/s", key = "#k")
        @SubscribeMapping("/{k}")
        public void stompVariable(@DestinationVariable String k) {}

        @RateLimited(name = "of-stomp-map", rate = "5/s", key = "#form['name']")
        @MessageMapping("/map")
        public void stompMap(Map<String, String> form) {}

        @RateLimited(name = "of-stomp-text", rate = "5/s", key = "#bytes")
        @MessageMapping("/text")
        public void stompText(byte[] bytes) {}

        @RateLimited(name = "of-stomp-message", rate = "5/s", key = "#message.payload.name")
        @MessageMapping("/message")
        public void stompMessage(Message<Form> message) {}

        @RateLimited(name = "of-stomp-argument", rate = "5/s", key = "args[0].payload.name")
        @MessageMapping("/argument")
        public void stompArgument(Message<Form> message) {}

        @RateLimited(name = "of-stomp-accessor", rate = "5/s", key = "#headers.getFirstNativeHeader('tenant')")
        @MessageMapping("/accessor")
        public void stompAccessor(SimpMessageHeaderAccessor headers) {}

        @RateLimited(name = "of-stomp-payload", rate = "5/s", key = "#form.name")
        @MessageMapping("/form")
        public void stompPayload(Form form) {}

        @RateLimited(name = "of-graphql", rate = "5/s", key = "#id")
        public void graphQl(@Argument String id) {}
    }

    @Test
    void aKeyOfAnythingThatSpringBindsIsReported(CapturedLog output) {
        runner.withBean(Bound.class).run(context -> {
            assertThat(context).hasNotFailed();
            for (Method method : Bound.class.getDeclaredMethods()) {
                RateLimited limit = method.getAnnotation(RateLimited.class);
                if (limit != null) {
                    assertThat(output).containsOnlyOnce(INVENTED + " of rate limit '" + limit.name() + "'");
                }
            }
        });
    }

    static class ChosenByForms {

        @RateLimited(name = "tier-of-form", rate = "5/s", key = "clientIp", tier = "#form.plan")
        public void tier(@RequestBody Form form) {}

        @RateLimited(name = "when-of-form", rate = "5/s", key = "clientIp", when = "!#form.debug")
        @PostMapping("/when")
        public void when(Form form) {}

        @RateLimited(name = "when-of-args", rate = "5/s", key = "clientIp", when = "!args[0].debug")
        public void whenOfArgs(@ModelAttribute Form form) {}

        @RateLimited(name = "permits-of-form", rate = "5/s", key = "clientIp", permits = "#form.number")
        public void permits(@RequestBody Form form) {}

        @RateLimited(name = "permits-of-path", rate = "5/s", key = "clientIp", permits = "#n")
        public void permitsOfPath(@PathVariable int n) {}

        @RateLimited(
                name = "priority-of-path",
                algorithm = io.ratelimited.core.Algorithm.CONCURRENCY,
                maxConcurrent = 5,
                priority = "#rank")
        public void priority(@PathVariable String rank) {}
    }

    @Test
    void whatAFormOrPathChoosesIsReported(CapturedLog output) {
        runner.withBean(ChosenByForms.class)
                .withPropertyValues(
                        "rate-limit.limits.tier-of-form.tiers.gold.rate=1000/s",
                        "rate-limit.limits.priority-of-path.priorities=high,low")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(output)
                            .containsOnlyOnce("clients control the tier of rate limit 'tier-of-form'")
                            .containsOnlyOnce("clients control the when of rate limit 'when-of-form'")
                            .containsOnlyOnce("clients control the when of rate limit 'when-of-args'")
                            .containsOnlyOnce("clients control the permits of rate limit 'permits-of-form'")
                            .containsOnlyOnce("clients control the permits of rate limit 'permits-of-path'")
                            .containsOnlyOnce("clients control the priority of rate limit 'priority-of-path'");
                });
    }

    /** An HTTP client, whose methods the application calls. */
    interface Client {

        @RateLimited(name = "client", rate = "5/s", key = "#id")
        @GetExchange("/{id}")
        String get(@PathVariable String id);
    }

    static class NotChosen {

        @RateLimited(name = "bean", rate = "5/s", key = "@keys.owner(#form.name)")
        public void bean(@RequestBody Form form) {}

        @RateLimited(name = "user", rate = "5/s", key = "#user.name")
        @GetMapping("/user")
        public void user(Principal user) {}

        @RateLimited(name = "authentication", rate = "5/s", key = "#user.name")
        @GetMapping("/authentication")
        public void authentication(UsernamePasswordAuthenticationToken user) {}

        @RateLimited(name = "authenticated", rate = "5/s", key = "#form.name")
        @GetMapping("/authenticated")
        public void authenticated(@AuthenticationPrincipal Form form) {}

        @RateLimited(name = "of-server", rate = "5/s", key = "#form.name")
        public void attribute(@RequestAttribute Form form) {}

        @RateLimited(name = "stomp-user", rate = "5/s", key = "#user")
        @MessageMapping("/user")
        public void stompUser(@Header("simpUser") String user) {}

        @RateLimited(name = "stomp-principal", rate = "5/s", key = "#user")
        @MessageMapping("/principal")
        public void stompPrincipal(Principal user, Form form) {}

        @RateLimited(name = "stomp-message-user", rate = "5/s", key = "#message.headers['simpUser']")
        @MessageMapping("/message")
        public void stompMessage(Message<Form> message) {}

        @RateLimited(name = "stomp-accessor-user", rate = "5/s", key = "#headers.user")
        @MessageMapping("/accessor")
        public void stompAccessor(SimpMessageHeaderAccessor headers) {}

        @RateLimited(name = "queue", rate = "5/s", key = "{#form.name, #tenant}")
        @JmsListener(destination = "orders")
        public void queue(@Payload Form form, @Header String tenant) {}

        @RateLimited(name = "orders", rate = "5/s", key = "#order.name")
        @JmsListener(destination = "orders")
        public void orders(Form order) {}

        @RateLimited(name = "arg", rate = "5/s", key = "args[0]")
        public void arg(String own, @RequestParam String other) {}

        @RateLimited(name = "sizes", rate = "5/s", key = "clientIp", permits = "#form.items.size()")
        public void size(@RequestBody Form form) {}

        @RateLimited(name = "list", rate = "5/s", key = "clientIp", permits = "#items.size()")
        public void list(@RequestBody List<String> items) {}

        @RateLimited(
                name = "tokens",
                rate = "5/s",
                key = "clientIp",
                permits = "#form.number",
                charge = "#result == null ? 1 : #result")
        public @Nullable Integer tokens(@RequestBody Form form) {
            return null;
        }

        @RateLimited(name = "service-form", rate = "5/s", key = "#form.name", permits = "#form.number")
        public void service(Form form) {}

        @RateLimited(name = "within-address", rate = "5/s", key = "#form.name")
        @RateLimited(name = "address", rate = "50/s", key = "clientIp")
        public void bounded(@RequestBody Form form) {}
    }

    @Test
    void whatIsVerifiedOrChargedIsNotReported(CapturedLog output) {
        Client client = id -> id;
        runner.withBean(NotChosen.class).withBean(Client.class, () -> client).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output).doesNotContain("clients control");
        });
    }

    static class SkippingAddress {

        @RateLimited(name = "account", rate = "5/h", key = "#form.name")
        @RateLimited(name = "optional", rate = "50/h", key = "clientIp")
        public void login(@RequestBody Form form) {}
    }

    @Test
    void aLimitThatSkipsBoundsNobodyWhateverItsKey(CapturedLog output) {
        runner.withBean(SkippingAddress.class)
                .withPropertyValues("rate-limit.limits.optional.missing-key=skip")
                .run(context -> assertThat(output).containsOnlyOnce(INVENTED + " of rate limit 'account'"));
    }

    static class Verified {

        @RateLimited(name = "owner", rate = "5/s", key = "@keys.owner(#k)")
        public void owner(@RequestHeader("X-Api-Key") String k) {}

        @RateLimited(name = "address", rate = "5/s", key = "#request.remoteAddr")
        public void address(HttpServletRequest request) {}

        @RateLimited(name = "user", rate = "5/s", key = "#request.userPrincipal.name")
        public void user(HttpServletRequest request) {}

        @RateLimited(name = "peer", rate = "5/s", key = "#exchange.request.remoteAddress")
        public void peer(ServerWebExchange exchange) {}

        @RateLimited(name = "service", rate = "5/s", key = "#header")
        public void service(String header) {}
    }

    @Test
    void aKeyThatIsNoneOfTheRequestIsNotReported(CapturedLog output) {
        runner.withBean(Verified.class).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output).doesNotContain(INVENTED);
        });
    }

    static class Chosen {

        @RateLimited(name = "tiered", rate = "5/s", key = "clientIp", tier = "header('X-Plan')")
        public void tiered() {}

        @RateLimited(name = "waived", rate = "5/s", when = "header('X-Internal') == null")
        public void waived() {}

        @RateLimited(name = "bound", rate = "5/s", key = "clientIp", when = "!#debug")
        public void bound(@RequestParam boolean debug) {}

        @RateLimited(name = "inner", rate = "5/s", tier = "header('X-Plan')")
        @RateLimited(name = "outer", rate = "50/s", key = "clientIp")
        public void bounded() {}

        @RateLimited(name = "planned", rate = "5/s", tier = "@keys.owner(header('X-Plan'))", when = "#n > 3")
        public void planned(int n) {}
    }

    @Test
    void aTierOrAConditionThatCallersChooseIsReported(CapturedLog output) {
        runner.withBean(Chosen.class)
                .withPropertyValues("rate-limit.limits.tiered.tiers.gold.rate=1000/s")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(output)
                            .containsOnlyOnce("clients control the tier of rate limit 'tiered' \"header('X-Plan')\","
                                    + " and with it their limit.")
                            .containsOnlyOnce("clients control the when of rate limit 'waived'"
                                    + " \"header('X-Internal') == null\", so they can avoid the limit.")
                            .containsOnlyOnce("clients control the when of rate limit 'bound'")
                            .doesNotContain("'inner'\"", "'planned' \"");
                });
    }

    static class Skipping {

        @RateLimited(name = "invented", rate = "5/s", key = "header('X-Api-Key')")
        @RateLimited(name = "known", rate = "50/s", key = "principal")
        public void anonymous() {}
    }

    @Test
    void aLimitThatSkipsCallersWithoutAKeyBoundsNothing(CapturedLog output) {
        runner.withBean(Skipping.class)
                .withPropertyValues("rate-limit.limits.known.missing-key=skip")
                .run(context -> assertThat(output).containsOnlyOnce(INVENTED + " of rate limit 'invented'"));
    }

    @RateLimited(name = "class", rate = "5/s", key = "header('X-Api-Key')")
    static class OfAClass {

        public void one() {}
    }

    @Test
    void theLimitOfAClassIsLookedAt(CapturedLog output) {
        runner.withBean(OfAClass.class)
                .run(context -> assertThat(output).containsOnlyOnce(INVENTED + " of rate limit 'class'"));
    }

    static class Keyed {

        @RateLimited(name = "users", rate = "5/m", key = "#user")
        public void users(String user) {}

        @RateLimited(
                name = "log",
                rate = "5000/d",
                key = "#user",
                algorithm = io.ratelimited.core.Algorithm.SLIDING_LOG)
        public void log(String user) {}

        @RateLimited(name = "everybody", rate = "5/m")
        public void everybody() {}
    }

    private void startWithHeap(ContextRunner application, @Nullable Long maximumKeys, long megabytes) {
        application.withPropertyValues("rate-limit.memory.maximum-keys=10").run(context -> {
            assertThat(context).hasNotFailed();
            TestLimits.of(context).limits();
            LimitLog log =
                    new LimitLog(context.getBean(LimitRegistry.class), new KeyMemory(maximumKeys, megabytes << 20));
            log.onApplicationEvent(new ContextRefreshedEvent(context));
            log.onApplicationEvent(new ContextRefreshedEvent(context));
        });
    }

    @Test
    void keysThatDoNotFitInMemoryAreReported(CapturedLog output) {
        startWithHeap(runner.withBean(Keyed.class), 1_000_000L, 128);
        assertThat(output)
                .containsOnlyOnce(
                        "Many keys can fill the memory: those of all limits may take 229,637 MB, more than half of"
                                + " the heap of 128 MB. Most of it is for log (1,000,000 keys of 240,492 bytes), users (1,000,000"
                                + " keys of 300 bytes). Set rate-limit.memory.maximum-keys of all limits to 278, or give the JVM a"
                                + " larger heap (-Xmx). For a sliding-log, you can also lower the rate, or use sliding-window."
                                + " [RL-210]");
    }

    @Test
    void theMaximumThatTheReportNamesFits(CapturedLog output) {
        startWithHeap(runner.withBean(Keyed.class), 278L, 128);
        startWithHeap(runner.withBean(Prices.class), 1_000_000L, 128);
        assertThat(output).doesNotContain("[RL-210]");
    }

    static class Ordinary {

        @RateLimited(name = "users", rate = "5/m", key = "#user")
        public void users(String user) {}

        @RateLimited(name = "log", rate = "5/h", key = "#user", algorithm = io.ratelimited.core.Algorithm.SLIDING_LOG)
        public void log(String user) {}
    }

    @Test
    void theDefaultFitsInASmallHeap(CapturedLog output) {
        startWithHeap(runner.withBean(Ordinary.class), null, 64);
        startWithHeap(runner.withBean(Ordinary.class), null, 256);
        assertThat(output).doesNotContain("[RL-210]");
    }

    @Test
    void aLimitWhoseFewestKeysTakeMoreThanItsPartIsReportedAlone(CapturedLog output) {
        startWithHeap(runner.withBean(Keyed.class), null, 128);
        assertThat(output)
                .containsOnlyOnce("[RL-210]")
                .contains(
                        "Most of it is for log (10,000 keys of 240,492 bytes). Set rate-limit.memory.maximum-keys of all"
                                + " limits to 278,");
    }

    static class Guessed {

        @RateLimited(name = "guesses", rate = "5/m", key = "#user")
        public void guess(String user) {}
    }

    /** 200,000 keys fit into half of the heap, and with their blocks they do not. */
    @Test
    void blocksCountAmongWhatFillsTheMemory(CapturedLog output) {
        startWithHeap(runner.withBean(Guessed.class), 200_000L, 128);
        assertThat(output).doesNotContain("[RL-210]");
        startWithHeap(
                runner.withBean(Guessed.class).withPropertyValues("rate-limit.limits.guesses.block=1h"), 200_000L, 128);
        assertThat(output).containsOnlyOnce("[RL-210]").contains("may take 88 MB");
    }

    static class Contracts {

        @RateLimited(name = "invoices", rate = "5/m", key = "#tenant", tier = "@environment.getProperty(#tenant)")
        public void invoice(String tenant) {}
    }

    /** 100,000 keys of the limit and of its tier fit into half of the heap, and keys with a number for each do not. */
    @Test
    void callersOwnNumbersCountAmongWhatFillsTheMemory(CapturedLog output) {
        startWithHeap(
                runner.withBean(Contracts.class).withPropertyValues("rate-limit.limits.invoices.tiers.gold.rate=9/m"),
                100_000L,
                128);
        assertThat(output).doesNotContain("[RL-210]");
        startWithHeap(runner.withBean(Contracts.class), 100_000L, 128);
        assertThat(output).containsOnlyOnce("[RL-210]").contains("may take 189 MB");
    }

    static class Tiered {

        @RateLimited(name = "search", rate = "5/m", key = "#user", tier = "#plan")
        public void search(String user, String plan) {}

        @RateLimited(name = "everybody", rate = "5/m")
        public void everybody() {}
    }

    private ContextRunner tieredAndByHand() {
        return runner.withBean(Tiered.class)
                .withPropertyValues(
                        "rate-limit.limits.search.tiers.gold.rate=9/m",
                        "rate-limit.limits.search.tiers.silver.rate=7/m",
                        "rate-limit.limits.by-hand.rate=5/m",
                        "rate-limit.limits.in-flight.algorithm=concurrency",
                        "rate-limit.limits.in-flight.max-concurrent=5");
    }

    /** Each has a limiter: the limit, its two tiers, and the limit to which only code passes keys. */
    @Test
    void tiersAndLimitsOfCodeShareTheMemory() {
        tieredAndByHand().run(context -> {
            TestLimits.of(context).limits();
            LimitRegistry registry = context.getBean(LimitRegistry.class);
            KeyMemory memory = new KeyMemory(null, 256 << 20);
            List<Limit> limiters =
                    new ArrayList<>(registry.get("search").tiers().values());
            limiters.add(registry.get("search").limit());
            limiters.add(registry.get("by-hand").limit());
            assertThat(limiters)
                    .hasSize(4)
                    .allSatisfy(limit -> assertThat(memory.maximumKeys(limit, registry.rememberingKeys()))
                            .isEqualTo(111_848));
        });
    }

    @Test
    void tiersAndLimitsOfCodeCountAmongWhatFillsTheMemory(CapturedLog output) {
        startWithHeap(tieredAndByHand(), 50_000L, 128);
        assertThat(output).doesNotContain("[RL-210]");
        startWithHeap(tieredAndByHand(), 100_000L, 128);
        assertThat(output)
                .containsOnlyOnce(
                        "may take 114 MB, more than half of the heap of 128 MB. Most of it is for by-hand (100,000"
                                + " keys of 300 bytes), search and its tiers (100,000 keys of 300 bytes each). Set"
                                + " rate-limit.memory.maximum-keys of all limits to 55924, or give the JVM a larger heap (-Xmx)."
                                + " [RL-210]");
    }

    @Test
    void theDefaultFollowsFromTheHeapAndTheNumberOfLimits() {
        Limit limit = Limit.of("users", io.ratelimited.core.Algorithm.TOKEN_BUCKET)
                .rate("5/m")
                .build();
        KeyMemory small = new KeyMemory(null, 256 << 20);
        assertThat(small.maximumKeys(limit, false, 1)).isEqualTo(447_392);
        assertThat(small.maximumKeys(limit, false, 4)).isEqualTo(111_848);
        Limit blocks = limit.toBuilder().block(Duration.ofHours(1)).build();
        assertThat(small.maximumKeys(blocks, false, 1)).as("blocks count").isEqualTo(291777);
        assertThat(small.maximumKeys(blocks.toBuilder().charged(true).build(), false, 1))
                .isEqualTo(113743);
        assertThat(small.maximumKeys(limit, true, 1)).as("numbers count").isEqualTo(67_786);
        assertThat(small.maximumKeys(limit, false, 1_000)).isEqualTo(10_000);
        assertThat(new KeyMemory(null, 8L << 30).maximumKeys(limit, false, 4)).isEqualTo(1_000_000);
        assertThat(new KeyMemory(17L, 8L << 30).maximumKeys(limit, false, 4)).isEqualTo(17);
    }
}
