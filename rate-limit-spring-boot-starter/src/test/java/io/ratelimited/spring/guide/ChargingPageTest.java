package io.ratelimited.spring.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.RateLimitCharge;
import io.ratelimited.spring.RateLimitDecision;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.ReservedPermits;
import io.ratelimited.spring.internals.web.RunningServer;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.Principal;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.prompt.ChatOptions;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.io.ClassPathResource;
import org.springframework.core.io.buffer.DataBuffer;
import org.springframework.core.io.buffer.DataBufferUtils;
import org.springframework.core.io.buffer.DefaultDataBufferFactory;
import org.springframework.test.util.ReflectionTestUtils;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The pages on charging, and the login without Spring Security: their snippets, in applications that run. */
@Tag("proof")
class ChargingPageTest {

    private static final String PAGE = "charging.md";
    private static final String RECIPES = "charging-recipes.md";
    private static final String ATTRIBUTE = "The attribute";
    private static final String BY_HAND = "By hand";
    private static final String TOKENS = "Tokens of a language model";
    private static final String LOOPS = "Tool loops, and a price per model";
    private static final String DOWNLOADS = "Bytes of downloads";
    private static final String LOGINS = "Without Spring Security";

    private static final Map<String, String> PAGES = Map.of(
            ATTRIBUTE,
            PAGE,
            BY_HAND,
            PAGE,
            TOKENS,
            RECIPES,
            LOOPS,
            RECIPES,
            DOWNLOADS,
            RECIPES,
            LOGINS,
            "stop-guessing-passwords.md");

    /** Each section is compiled once. */
    private static final Map<String, Map<String, Class<?>>> COMPILED = new HashMap<>();

    /** By section and kind. What a test has spent is back in the next. */
    private static final Map<String, Running> STARTED = new HashMap<>();

    @TempDir
    private static Path directory;

    @AfterAll
    static void stop() {
        STARTED.values().forEach(Running::close);
        STARTED.clear();
    }

    @Test
    void everySectionWithCodeIsRunHere() throws Exception {
        assertThat(sectionsWithCode(PAGE)).containsExactlyInAnyOrder(ATTRIBUTE, BY_HAND);
        assertThat(sectionsWithCode(RECIPES)).containsExactlyInAnyOrder(TOKENS, LOOPS, DOWNLOADS);
    }

    /** Only the build compiles Kotlin. */
    @Test
    void theSnippetInKotlinIsTheOneThatCoroutineImportsTestRuns() throws Exception {
        Path tested = Path.of("src/test/kotlin/io/ratelimited/spring/guide/CoroutineImports.kt");
        assertThat(DocPage.section(PAGE, BY_HAND).blocks("kotlin"))
                .containsExactly(Files.readString(tested).replaceFirst("package .*\n\n", ""));
    }

    private static List<String> sectionsWithCode(String page) throws Exception {
        return DocPage.sections(page).entrySet().stream()
                .filter(section -> !section.getValue().blocks("java").isEmpty())
                .map(Map.Entry::getKey)
                .toList();
    }

    @Test
    void whatAQueryDidNotUseComesBackAndWhatItUsedBeyondIsTaken() throws Exception {
        Running running = start(ATTRIBUTE, Kind.TOMCAT, "Queries");
        running.call("Queries", "run", "acme", "x".repeat(3_000));
        assertThat(running.left("rows", "acme")).isEqualTo(997_000);
        running.call("Queries", "run", "acme", "x".repeat(50_000));
        assertThat(running.left("rows", "acme")).isEqualTo(947_000);
    }

    @Test
    void anImportIsChargedByHand() throws Exception {
        Running running = start(BY_HAND, Kind.TOMCAT, "Imports", "ReactiveImports");
        running.call("Imports", "load", "acme", new String[] {"one", "two", "three"});
        assertThat(running.left("import-rows", "acme")).isEqualTo(997);
        Mono<?> loading = (Mono<?>) running.call("ReactiveImports", "load", "acme", Mono.just(297));
        assertThat(loading.block()).isEqualTo(297);
        assertThat(running.left("import-rows", "acme")).isEqualTo(700);
        Mono<?> failing =
                (Mono<?>) running.call("ReactiveImports", "load", "acme", Mono.error(new IllegalStateException()));
        assertThatThrownBy(failing::block).isInstanceOf(IllegalStateException.class);
        assertThat(running.left("import-rows", "acme")).isEqualTo(600);
    }

    @Test
    void anAnswerCostsTheTokensThatTheModelReports() throws Exception {
        Running running = start(TOKENS, Kind.TOMCAT, "Assistant");
        running.call("Assistant", "ask", "acme", "uses 1234", 5_000);
        assertThat(running.left("tokens", "acme")).isEqualTo(98_766);
        List<?> elements = ((Flux<?>) running.call("Assistant", "stream", "acme", "uses 766", 5_000))
                .collectList()
                .block();
        assertThat(elements).hasSize(3).hasOnlyElementsOfType(ChatResponse.class);
        assertThat(running.left("tokens", "acme")).isEqualTo(98_000);
    }

    @Test
    void anAnswerWithoutUsageCostsWhatItReserved() throws Exception {
        Running running = start(TOKENS, Kind.TOMCAT, "Assistant");
        running.call("Assistant", "ask", "acme", "tells nothing", 1_000);
        assertThat(running.left("tokens", "acme")).isEqualTo(99_000);
        assertThatThrownBy(() -> running.call("Assistant", "ask", "acme", "breaks", 1_000))
                .hasMessageContaining("500");
        assertThat(running.left("tokens", "acme")).isEqualTo(98_000);
        Flux<?> hanging = (Flux<?>) running.call("Assistant", "stream", "acme", "hangs", 1_000);
        assertThat(hanging.blockFirst()).isInstanceOf(ChatResponse.class);
        assertThat(running.left("tokens", "acme")).isEqualTo(97_000);
    }

    @Test
    void aTenantInDebtWaitsUntilItIsPaid() throws Exception {
        Running running = start(TOKENS, Kind.TOMCAT, "Assistant");
        running.call("Assistant", "ask", "acme", "uses 130000", 10_000);
        assertThat(running.left("tokens", "acme")).isZero();
        assertThatExceptionOfType(RateLimitExceededException.class)
                .isThrownBy(() -> running.call("Assistant", "ask", "acme", "uses 1", 10_000))
                .satisfies(
                        refusal -> assertThat(refusal.decision().retryAfter()).isEqualTo(Duration.ofSeconds(24)));
        running.server.ticker().advance(Duration.ofSeconds(24));
        running.call("Assistant", "ask", "acme", "uses 10000", 10_000);
        assertThat(running.left("tokens", "acme")).isZero();
    }

    @Test
    void aChatIsChargedByItsLastEvent() throws Exception {
        Running running = start(TOKENS, Kind.TOMCAT, "Assistant");
        assertThat(running.server.get("/chat?tenant=acme&question=uses%20777").body())
                .contains("data:Good", "data:bye");
        assertThat(running.left("tokens", "acme")).isEqualTo(99_223);
    }

    private static Prompt prompt(String question, String model, int maxTokens) {
        return new Prompt(
                question,
                ChatOptions.builder().model(model).maxTokens(maxTokens).build());
    }

    @Test
    void eachCallOfAToolLoopIsChargedByThePriceOfItsModel() throws Exception {
        Running running = start(LOOPS, Kind.TOMCAT, "TenantModels", "ModelPrices");
        ChatModel model = (ChatModel) running.call("TenantModels", "of", "acme");
        model.call(prompt("uses 1000", "small", 5_000));
        model.call(prompt("uses 2000", "large", 5_000));
        model.call(prompt("tells nothing", "small", 5_000));
        assertThat(running.left("model-tokens", "acme")).isEqualTo(1_000_000 - 1_000 - 15 * 2_000 - 5_000);
        assertThat(model.stream(prompt("uses 4000", "large", 100)).collectList().block())
                .hasSize(3);
        assertThat(running.left("model-tokens", "acme")).isEqualTo(904_000);
        assertThat(model.stream(prompt("hangs", "large", 200)).blockFirst()).isNotNull();
        assertThat(running.left("model-tokens", "acme")).isEqualTo(901_000);
        assertThatThrownBy(() -> model.call(prompt("uses 1", "unknown", 1))).isInstanceOf(RuntimeException.class);
        assertThat(running.left("model-tokens", "acme")).isEqualTo(901_000);
        assertThat(running.left("model-tokens", "other")).isEqualTo(1_000_000);
        running.server.context.getBean(Priced.class).ask(prompt("uses 40", "large", 100));
        assertThat(running.left("priced", null)).isEqualTo(10_000 - 15 * 40);
    }

    /** A call uses up to twice its reservation, and a stream that is canceled up to the whole of it. */
    @Test
    void aTenantSpendsTheLimitAndWhatCallsUsedBeyondTheirReservation() throws Exception {
        Running running = start(LOOPS, Kind.TOMCAT, "TenantModels", "ModelPrices");
        ModelServer server = running.server.context.getBean(ModelServer.class);
        Random random = new Random(60);
        AtomicLong spent = new AtomicLong();
        long beyond = 0;
        double allowed = 1_000_000;
        int rejected = 0;
        for (int call = 0; call < 2_000; call++) {
            long reserved = 1_000L * (1 + random.nextInt(20));
            int uses = random.nextInt((int) (2 * reserved));
            boolean cancelled = random.nextInt(3) == 0;
            long costs = cancelled ? Math.min(uses, reserved) : uses;
            // The last of three elements reports the usage.
            server.streamsYield(Flux.just(ModelServer.used(0), ModelServer.used(0), ModelServer.used(uses)));
            ChatModel model = (ChatModel) running.call("TenantModels", "of", "acme");
            try {
                model.stream(prompt("", "small", (int) reserved))
                        .take(cancelled ? 1 + random.nextInt(2) : 3)
                        .then()
                        .block();
                spent.addAndGet(costs);
                beyond += Math.max(0, costs - reserved);
            } catch (RateLimitExceededException ex) {
                rejected++;
            }
            assertThat((double) spent.get()).isLessThanOrEqualTo(allowed + beyond + 1);
            Duration pause = Duration.ofMillis(random.nextInt(800));
            running.server.ticker().advance(pause);
            allowed += 1_000_000 * pause.toMillis() / 60_000.0;
        }
        server.streamsYield(null);
        assertThat(rejected).isBetween(50, 1_500);
    }

    @Test
    void ofTwoHundredGuessesAtOnceFiveAreChecked() throws Exception {
        Running running = start(LOGINS, Kind.TOMCAT, "LoginController");
        List<Integer> answers = PasswordGuessingTest.atOnce(200, i -> running.login("ann", "wrong" + i));
        assertThat(answers).filteredOn(status -> status == 401).hasSize(5);
        assertThat(answers).filteredOn(status -> status == 429).hasSize(195);
        assertThat(running.left("failed-logins-of-address", "127.0.0.1")).isEqualTo(15);
    }

    @Test
    void aRightPasswordCostsNothing() throws Exception {
        Running running = start(LOGINS, Kind.TOMCAT, "LoginController");
        for (int i = 0; i < 30; i++) {
            assertThat(running.login("Ann", "right")).isEqualTo(200);
        }
        assertThat(running.left("failed-logins-of-user", "ann")).isEqualTo(5);
        for (int i = 0; i < 20; i++) {
            assertThat(running.login("user" + i, "wrong")).isEqualTo(401);
        }
        assertThat(running.login("ann", "right")).isEqualTo(429);
    }

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "REACTOR_NETTY"})
    void aDownloadCostsTheBytesThatWereSent(Kind kind) throws Exception {
        report(1, 3_000);
        report(2, 2_500_000);
        report(4, 0);
        Running running = downloads(kind);
        assertThat(running.server.get("/reports/1").body()).hasSize(3_000);
        assertThat(running.settled()).isEqualTo(3_000);
        assertThat(running.server.get("/reports/2").body()).hasSize(2_500_000);
        assertThat(running.settled()).isEqualTo(2_500_000);
        assertThat(running.server.get("/reports/4").statusCode()).isEqualTo(200);
        assertThat(running.settled()).isZero();
        assertThat(running.left("download-bytes", null)).isEqualTo(7_497_000);
    }

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "REACTOR_NETTY"})
    void aDownloadThatItsClientLeavesCostsWhatWasSent(Kind kind) throws Exception {
        int size = 60_000_000;
        report(3, size);
        Running running = downloads(kind);
        try {
            try (Socket client = running.server.connect()) {
                client.setSoLinger(true, 0);
                client.getOutputStream()
                        .write("GET /reports/3 HTTP/1.1\r\nHost: localhost\r\n\r\n"
                                .getBytes(StandardCharsets.US_ASCII));
                InputStream response = client.getInputStream();
                assertThat(response.readNBytes(100_000)).hasSize(100_000);
            }
            assertThat(running.settled()).isBetween(50_000L, size - 1L);
        } finally {
            Files.delete(path(3));
        }
    }

    /** The servlet controller of the page, and the reactive one that the page describes. */
    private static Running downloads(Kind kind) throws Exception {
        return kind == Kind.TOMCAT ? start(DOWNLOADS, kind, "Downloads") : start(DOWNLOADS, kind);
    }

    private static void report(long id, int size) throws Exception {
        Files.createDirectories(path(id).getParent());
        Files.writeString(path(id), "r".repeat(size));
    }

    private static Path path(long id) throws Exception {
        return Path.of(ChargingPageTest.class
                        .getProtectionDomain()
                        .getCodeSource()
                        .getLocation()
                        .toURI())
                .resolve("reports/" + id);
    }

    private static Running start(String title, Kind kind, String... components) throws Exception {
        Running running = STARTED.get(title + kind);
        if (running == null) {
            running = startAnew(title, kind, components);
            STARTED.put(title + kind, running);
        }
        running.server.ticker().advance(Duration.ofDays(2));
        return running;
    }

    private static Running startAnew(String title, Kind kind, String... components) throws Exception {
        DocPage section = DocPage.section(PAGES.get(title), title);
        if (!COMPILED.containsKey(title)) {
            COMPILED.put(title, section.classes(Files.createTempDirectory(directory, "section")));
        }
        Map<String, Class<?>> classes = COMPILED.get(title);
        List<Class<?>> sources = new ArrayList<>();
        Stream.of(components).map(classes::get).forEach(sources::add);
        if (title.equals(TOKENS)) {
            sources.add(Chat.class);
        } else if (title.equals(LOOPS)) {
            sources.add(Priced.class);
        } else if (title.equals(DOWNLOADS) && kind == Kind.REACTOR_NETTY) {
            sources.add(ReactiveDownloads.class);
        }
        sources.add(Application.class);
        return new Running(kind.start(sources, section.properties()), classes);
    }

    /** An application of snippets. */
    private record Running(RunningServer server, Map<String, Class<?>> classes) {

        private @Nullable Object call(String component, String method, Object... arguments) {
            return ReflectionTestUtils.invokeMethod(server.context.getBean(classes.get(component)), method, arguments);
        }

        private long left(String limit, @Nullable String key) {
            return server.context.getBean(RateLimits.class).peek(limit, key).remaining();
        }

        private int login(String user, String password) {
            return server.send("POST", "/login?user=" + user + "&password=" + password)
                    .statusCode();
        }

        /** What the next call was charged with, that ended or will end. */
        private long settled() throws InterruptedException {
            Long charged = server.context.getBean(Charges.class).charged.poll(20, TimeUnit.SECONDS);
            assertThat(charged).isNotNull();
            return charged;
        }

        private void close() {
            server.close();
        }
    }

    /** What calls have been charged with. */
    private static final class Charges implements DecisionObserver {

        private final BlockingQueue<Long> charged = new LinkedBlockingQueue<>();

        @Override
        public void onDecision(RateLimitDecision decision) {}

        @Override
        public void onCharge(RateLimitCharge charge) {
            charged.add(charge.charged());
        }
    }

    /** What the page says of a method whose permits have a price. */
    static class Priced {

        private final ChatModel model;

        Priced(ChatModel model) {
            this.model = model;
        }

        @RateLimited(
                name = "priced",
                rate = "10000/m",
                permits = "#prompt.options.maxTokens * @modelPrices.of(#prompt)",
                charge = "#result.metadata.usage.totalTokens * @modelPrices.of(#prompt)")
        ChatResponse ask(Prompt prompt) {
            return model.call(prompt);
        }
    }

    /** What the page says of events: the answer is charged by hand as they are sent. */
    @RestController
    static class Chat {

        private final RateLimits limits;
        private final ChatModel model;

        Chat(RateLimits limits, ChatModel model) {
            this.limits = limits;
            this.model = model;
        }

        @GetMapping("/chat")
        SseEmitter chat(@RequestParam String tenant, @RequestParam String question) {
            ReservedPermits tokens = limits.reserve("tokens", tenant, 1_000);
            SseEmitter events = new SseEmitter();
            events.onCompletion(tokens::close);
            model.stream(new Prompt(question))
                    .doOnNext(answer -> charge(answer, tokens))
                    .subscribe(answer -> send(answer, events), events::completeWithError, events::complete);
            return events;
        }

        private static void charge(ChatResponse answer, ReservedPermits tokens) {
            int used = answer.getMetadata().getUsage().getTotalTokens();
            if (used > 0) {
                tokens.settle(used);
            }
        }

        private static void send(ChatResponse answer, SseEmitter events) {
            try {
                if (answer.getResult() != null) {
                    events.send(answer.getResult().getOutput().getText());
                }
            } catch (IOException ex) {
                throw new UncheckedIOException(ex);
            }
        }
    }

    /** What the page says of WebFlux: the bytes are counted as they pass, and settled however the response ends. */
    @RestController
    static class ReactiveDownloads {

        private final RateLimits limits;

        ReactiveDownloads(RateLimits limits) {
            this.limits = limits;
        }

        @GetMapping("/reports/{id}")
        Flux<DataBuffer> report(@PathVariable long id, @Nullable Principal customer) {
            return Flux.usingWhen(
                            Mono.fromFuture(() -> limits.reserveAsync("download-bytes", customer, 100_000))
                                    .map(Sent::new),
                            sent -> DataBufferUtils.read(
                                            new ClassPathResource("/reports/" + id, ReactiveDownloads.class),
                                            DefaultDataBufferFactory.sharedInstance,
                                            8192)
                                    .doOnNext(buffer -> sent.bytes.addAndGet(buffer.readableByteCount())),
                            Sent::settle)
                    .doOnDiscard(ReservedPermits.class, ReservedPermits::cancel);
        }

        private static final class Sent {

            private final ReservedPermits reserved;
            private final AtomicLong bytes = new AtomicLong();

            private Sent(ReservedPermits reserved) {
                this.reserved = reserved;
            }

            private Mono<Void> settle() {
                return Mono.fromRunnable(() -> {
                    reserved.settle(bytes.get());
                    reserved.close();
                });
            }
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean
        ModelServer model() throws IOException {
            return new ModelServer();
        }

        @Bean
        DecisionObserver charges() {
            return new Charges();
        }
    }
}
