package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.io.IOException;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.reactivestreams.Publisher;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.webmvc.autoconfigure.WebMvcAutoConfiguration;
import org.springframework.context.MessageSource;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.support.StaticMessageSource;
import org.springframework.core.ResolvableType;
import org.springframework.core.codec.AbstractEncoder;
import org.springframework.core.codec.CharSequenceEncoder;
import org.springframework.core.io.buffer.DataBuffer;
import org.springframework.core.io.buffer.DataBufferFactory;
import org.springframework.http.HttpInputMessage;
import org.springframework.http.HttpOutputMessage;
import org.springframework.http.MediaType;
import org.springframework.http.ProblemDetail;
import org.springframework.http.codec.ServerCodecConfigurer;
import org.springframework.http.converter.AbstractHttpMessageConverter;
import org.springframework.http.converter.HttpMessageConverters;
import org.springframework.http.converter.StringHttpMessageConverter;
import org.springframework.util.MimeType;
import org.springframework.web.ErrorResponse;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.reactive.config.WebFluxConfigurer;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;
import reactor.core.publisher.Flux;

/** A refusal is an error of the application as others are: its interceptors, messages and converters make the answer. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class ProblemTest {

    private static final String[] ROUTE = {
        "rate-limit.limits.routed.rate=1/m",
        "rate-limit.routes[0].path=/routed/**",
        "rate-limit.routes[0].limits=routed",
        "rate-limit.routes[1].path=//**",
        "rate-limit.routes[1].limits=routed"
    };

    @ParameterizedTest
    @EnumSource
    void theApplicationMakesTheProblemOfARefusalAsOfOtherErrors(Kind kind, CapturedOutput output) {
        try (RunningServer server = start(kind, Servlet.class, Reactive.class)) {
            for (String limit : List.of("method", "csv", "routed")) {
                assertThat(server.get("/" + limit).statusCode()).isEqualTo(200);

                for (String accept : limit.equals("csv")
                        ? List.of("text/csv")
                        : List.of("application/json", "image/png", "no list of types")) {
                    HttpResponse<String> json = server.get("/" + limit, "Accept-Language", "de", "Accept", accept);
                    assertThat(json.statusCode()).as(limit).isEqualTo(429);
                    assertThat(json.headers().allValues("Content-Type"))
                            .as(limit + " " + accept)
                            .containsExactly("application/problem+json");
                    assertThat(json.headers().allValues("Retry-After")).containsExactly("60");
                    assertThat(json.body())
                            .as(limit + " " + accept)
                            .contains(
                                    "\"detail\":\"Zu viele Aufrufe von " + limit + ", weiter in 60 s\"",
                                    "\"title\":\"Zu viel\"",
                                    "\"type\":\"urn:zu-viel\"",
                                    "\"instance\":\"/" + limit + "\"",
                                    "\"violated-policies\":[\"" + limit + "\"]",
                                    "\"trace\":\"7\"");
                }

                HttpResponse<String> xml = server.get("/" + limit, "Accept", "application/problem+xml,text/csv;q=0.5");
                assertThat(xml.statusCode()).as(limit).isEqualTo(429);
                assertThat(xml.headers().firstValue("Content-Type").orElse("")).startsWith("application/problem+xml");
                assertThat(xml.body()).isEqualTo("<problem>" + limit + " 7</problem>");
                assertThat(xml.headers().allValues("Retry-After")).containsExactly("60");
            }
            HttpResponse<String> head = server.send("HEAD", "/routed", "Accept", "application/json");
            assertThat(head.statusCode()).isEqualTo(429);
            assertThat(head.headers().firstValue("Content-Type")).hasValue("application/problem+json");
            assertThat(output).doesNotContain("could not create the response");
        }
    }

    @ParameterizedTest
    @EnumSource
    void anApplicationThatWritesNoJsonAnswersInJsonAllTheSame(Kind kind, CapturedOutput output) {
        try (RunningServer server = start(kind, TextOnlyServlet.class, TextOnlyReactive.class)) {
            for (String limit : List.of("method", "csv", "routed")) {
                assertThat(server.get("/" + limit).body()).isEqualTo(limit);
                HttpResponse<String> refused = server.get("/" + limit, "Accept-Language", "de");
                RejectionAttacksTest.requireProblem(refused, 429);
                assertThat(refused.body())
                        .contains(
                                "\"detail\":\"Zu viele Aufrufe von " + limit + ", weiter in 60 s\"", "\"trace\":\"7\"");
            }
            assertThat(output.getOut().split("could not create the response", -1))
                    .hasSize(2);
        }
    }

    @ParameterizedTest
    @EnumSource
    void anApplicationThatFailsToWordARefusalRefusesAllTheSame(Kind kind, CapturedOutput output) {
        try (RunningServer server = start(kind, FailingServlet.class, FailingReactive.class)) {
            for (String limit : List.of("method", "csv", "routed")) {
                assertThat(server.get("/" + limit).statusCode()).isEqualTo(200);
                for (String language : List.of("de", "fr")) {
                    HttpResponse<String> refused = server.get("/" + limit, "Accept-Language", language);
                    RejectionAttacksTest.requireProblem(refused, 429);
                    assertThat(refused.headers().allValues("Retry-After")).containsExactly("60");
                    assertThat(refused.body()).contains("\"violated-policies\":[\"" + limit + "\"]");
                }
            }
            assertThat(output.getOut().split("could not create the response", -1))
                    .hasSize(2);
        }
    }

    @Test
    void routesOfAnApplicationWithoutSpringMvcAnswerInJson() {
        try (RunningServer server = Kind.TOMCAT.start(List.of(WithoutMvc.class), ROUTE)) {
            assertThat(server.get("/routed").statusCode()).isNotEqualTo(429);
            RejectionAttacksTest.requireProblem(server.get("/routed"), 429);
            assertThat(server.get("/routed").body())
                    .contains("\"violated-policies\":[\"routed\"]", "\"instance\":\"/routed\"");
        }
    }

    @ParameterizedTest
    @EnumSource
    void aPathThatIsNoUriIsRefusedAsOthersAre(Kind kind, CapturedOutput output) throws IOException {
        try (RunningServer server = start(kind, Servlet.class, Reactive.class)) {
            server.get("/routed");
            for (String path : List.of("//", "/routed/a|b", "/routed/[")) {
                try (Socket socket = server.connect()) {
                    socket.setSoTimeout(20_000);
                    socket.getOutputStream()
                            .write(("GET " + path
                                            + " HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\nConnection: close\r\n\r\n")
                                    .getBytes(StandardCharsets.US_ASCII));
                    String answer = new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
                    assertThat(answer).as(path).containsPattern("HTTP/1.1 4(00|29) ");
                    if (answer.startsWith("HTTP/1.1 429")) {
                        assertThat(answer).as(path).contains("application/problem+json", "\"trace\":\"7\"");
                    }
                }
            }
            assertThat(output).doesNotContain("could not create the response").doesNotContain("ERROR");
        }
    }

    private static RunningServer start(Kind kind, Class<?> servlet, Class<?> reactive) {
        return kind.start(List.of(App.class, kind == Kind.REACTOR_NETTY ? reactive : servlet), ROUTE);
    }

    private static String xml(ProblemDetail problem) {
        Map<String, Object> members = problem.getProperties();
        return "<problem>" + ((List<?>) members.get("violated-policies")).get(0) + " " + members.get("trace")
                + "</problem>";
    }

    private static final ErrorResponse.Interceptor TRACE = (problem, error) -> {
        assertThat(error).isNotNull();
        problem.setProperty("trace", "7");
    };

    private static final ErrorResponse.Interceptor FAILING = (problem, error) -> {
        throw new IllegalStateException("of the application");
    };

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({SharedBeans.class, Controller.class})
    static class App {

        @Bean
        MessageSource messageSource() {
            StaticMessageSource messages = new StaticMessageSource();
            String refusal = RateLimitExceededException.class.getName();
            messages.addMessage("problemDetail.title." + refusal, Locale.GERMAN, "Zu viel");
            messages.addMessage("problemDetail.type." + refusal, Locale.GERMAN, "urn:zu-viel");
            messages.addMessage("problemDetail." + refusal, Locale.GERMAN, "Zu viele Aufrufe von {0}, weiter in {1} s");
            messages.addMessage("problemDetail.type." + refusal, Locale.FRENCH, "no URI");
            return messages;
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration(exclude = WebMvcAutoConfiguration.class)
    static class WithoutMvc {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }
    }

    @RestController
    static class Controller {

        @GetMapping("/method")
        @RateLimited(name = "method", rate = "1/m")
        String method() {
            return "method";
        }

        @GetMapping(path = "/csv", produces = "text/csv")
        @RateLimited(name = "csv", rate = "1/m")
        String csv() {
            return "csv";
        }

        @GetMapping("/routed")
        String routed() {
            return "routed";
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class FailingServlet implements WebMvcConfigurer {

        @Override
        public void addErrorResponseInterceptors(List<ErrorResponse.Interceptor> interceptors) {
            interceptors.add(FAILING);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class FailingReactive implements WebFluxConfigurer {

        @Override
        public void addErrorResponseInterceptors(List<ErrorResponse.Interceptor> interceptors) {
            interceptors.add(FAILING);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class TextOnlyServlet implements WebMvcConfigurer {

        @Override
        public void addErrorResponseInterceptors(List<ErrorResponse.Interceptor> interceptors) {
            interceptors.add(TRACE);
        }

        @Override
        public void configureMessageConverters(HttpMessageConverters.ServerBuilder converters) {
            converters.configureMessageConvertersList(all -> {
                all.clear();
                all.add(new StringHttpMessageConverter());
            });
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class TextOnlyReactive implements WebFluxConfigurer {

        @Override
        public void addErrorResponseInterceptors(List<ErrorResponse.Interceptor> interceptors) {
            interceptors.add(TRACE);
        }

        @Override
        public void configureHttpMessageCodecs(ServerCodecConfigurer codecs) {
            codecs.registerDefaults(false);
            codecs.customCodecs().register(CharSequenceEncoder.allMimeTypes());
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Servlet implements WebMvcConfigurer {

        @Override
        public void addErrorResponseInterceptors(List<ErrorResponse.Interceptor> interceptors) {
            interceptors.add(TRACE);
        }

        @Override
        public void configureMessageConverters(HttpMessageConverters.ServerBuilder converters) {
            converters.addCustomConverter(
                    new AbstractHttpMessageConverter<ProblemDetail>(MediaType.APPLICATION_PROBLEM_XML) {
                        @Override
                        protected boolean supports(Class<?> type) {
                            return type == ProblemDetail.class;
                        }

                        @Override
                        protected ProblemDetail readInternal(
                                Class<? extends ProblemDetail> type, HttpInputMessage input) {
                            throw new UnsupportedOperationException();
                        }

                        @Override
                        protected void writeInternal(ProblemDetail problem, HttpOutputMessage output)
                                throws IOException {
                            output.getBody().write(xml(problem).getBytes(StandardCharsets.UTF_8));
                        }
                    });
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Reactive implements WebFluxConfigurer {

        @Override
        public void addErrorResponseInterceptors(List<ErrorResponse.Interceptor> interceptors) {
            interceptors.add(TRACE);
        }

        @Override
        public void configureHttpMessageCodecs(ServerCodecConfigurer codecs) {
            codecs.customCodecs().register(new AbstractEncoder<ProblemDetail>(MediaType.APPLICATION_PROBLEM_XML) {
                @Override
                public boolean canEncode(ResolvableType type, MimeType mimeType) {
                    return type.toClass() == ProblemDetail.class && super.canEncode(type, mimeType);
                }

                @Override
                public Flux<DataBuffer> encode(
                        Publisher<? extends ProblemDetail> problems,
                        DataBufferFactory buffers,
                        ResolvableType type,
                        MimeType mimeType,
                        Map<String, Object> hints) {
                    return Flux.from(problems)
                            .map(problem -> buffers.wrap(xml(problem).getBytes(StandardCharsets.UTF_8)));
                }
            });
        }
    }
}
