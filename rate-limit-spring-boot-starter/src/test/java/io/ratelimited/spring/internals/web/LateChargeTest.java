package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Calls that end after their request, whose object the server has used for another request since. */
@ParameterizedClass
@EnumSource(value = Kind.class, mode = EnumSource.Mode.EXCLUDE, names = "REACTOR_NETTY")
@Tag("slow")
class LateChargeTest {

    private static RunningServer server;

    @BeforeParameterizedClassInvocation
    static void start(Kind kind) {
        server = kind.start(List.of(Application.class));
    }

    @AfterParameterizedClassInvocation
    static void stop() {
        server.close();
    }

    @Parameter
    Kind kind;

    private static long remainingAfter(String path, String limit) {
        Work.end = new CompletableFuture<>();
        assertThat(server.get(path, "X-Cost", "12345").body()).isEqualTo("begun");
        for (int i = 0; i < 5; i++) {
            assertThat(server.get("/other", "X-Cost", "1").body()).isEqualTo("other");
        }
        Work.end.complete("done");
        return server.context.getBean(RateLimits.class).peek(limit, null).remaining();
    }

    @Test
    void aFutureIsChargedByTheHeaderThatItsRequestHad() {
        assertThat(remainingAfter("/future", "future")).isEqualTo(95);
    }

    @Test
    void aFluxIsChargedByTheHeaderThatItsRequestHad() {
        assertThat(remainingAfter("/flux", "flux")).isEqualTo(95);
    }

    /** The header could not be read when the call began, since only the result names it. */
    @Test
    void aHeaderThatIsNotKnownAnyMoreLeavesTheReservation() {
        assertThat(remainingAfter("/named", "named")).isEqualTo(90);
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({Api.class, Work.class})
    static class Application {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }
    }

    /** Answers before its work is done. */
    @RestController
    static class Api {

        private final Work work;

        Api(Work work) {
            this.work = work;
        }

        @GetMapping("/future")
        public String future() {
            work.future();
            return "begun";
        }

        @GetMapping("/flux")
        public String flux() {
            work.flux().subscribe();
            return "begun";
        }

        @GetMapping("/named")
        public String named() {
            work.named();
            return "begun";
        }

        @GetMapping("/other")
        public String other() {
            return "other";
        }
    }

    static class Work {

        /** Static, because what the test has is a proxy of the bean. */
        private static volatile CompletableFuture<String> end = new CompletableFuture<>();

        @RateLimited(name = "future", rate = "100/h", permits = "10", charge = "header('X-Cost').length()")
        public CompletableFuture<String> future() {
            return end;
        }

        @RateLimited(name = "flux", rate = "100/h", permits = "10", charge = "header('X-Cost').length()")
        public Flux<String> flux() {
            return Flux.from(Mono.fromFuture(end));
        }

        @RateLimited(
                name = "named",
                rate = "100/h",
                permits = "10",
                charge = "header(#result == null ? '' : 'X-Cost').length()")
        public CompletableFuture<String> named() {
            return end;
        }
    }
}
