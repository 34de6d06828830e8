package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.net.http.HttpResponse;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.webmvc.error.ErrorController;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.graphql.data.federation.EntityMapping;
import org.springframework.graphql.data.method.annotation.GraphQlExceptionHandler;
import org.springframework.graphql.data.method.annotation.SchemaMapping;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.stereotype.Controller;
import org.springframework.web.bind.WebDataBinder;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.InitBinder;
import org.springframework.web.bind.annotation.ModelAttribute;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.ResponseBody;
import org.springframework.web.server.ResponseStatusException;
import org.springframework.web.service.annotation.GetExchange;
import org.springframework.web.service.annotation.HttpExchange;

/** An annotation on the class of a controller charges a request once, whatever else Spring calls for it. */
@ExtendWith(OutputCaptureExtension.class)
class ControllerLimitTest {

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "REACTOR_NETTY"})
    void aRequestOfAFormIsChargedOnce(Kind kind, CapturedOutput output) {
        try (RunningServer server = kind.start(List.of(App.class, Owners.class, Visits.class))) {
            assertThat(cost(server, "GET", "/owners/find", 200)).isEqualTo(1);
            assertThat(cost(server, "POST", "/owners/1/edit?name=ann", 200)).isEqualTo(1);
            assertThat(cost(server, "GET", "/owners/broken", 409)).isEqualTo(1);
            assertThat(cost(server, "GET", "/visits", 200)).isEqualTo(1);

            long before = left(server);
            Owners owners = server.context.getBean(Owners.class);
            assertThat(owners.summary()).isEqualTo("all");
            assertThat(left(server)).isEqualTo(before);
            owners.find(List.of("cat"));
            assertThat(left(server)).as("a handler method that a bean calls").isEqualTo(before - 1);
            assertThat(output)
                    .contains("@RateLimited on " + Owners.class.getName()
                            + " limits the handler methods of the controller only, and not [summary]")
                    .doesNotContain("[allow");
        }
    }

    @Test
    void aRequestThatIsForwardedOrHasAnErrorPageIsChargedOnce() {
        try (RunningServer server =
                Kind.TOMCAT.start(List.of(App.class, Pages.class), "rate-limit.limits.all.rate=100/d")) {
            assertThat(cost(server, "GET", "/pages/forward", 200)).isEqualTo(1);
            assertThat(cost(server, "GET", "/pages/missing", 404)).isEqualTo(1);
        }
    }

    @Test
    void everyCallInFlightHasAPlaceAlsoAfterAForward() {
        try (RunningServer server = Kind.TOMCAT.start(
                List.of(App.class, Pages.class),
                "rate-limit.limits.all.algorithm=concurrency",
                "rate-limit.limits.all.max-concurrent=1")) {
            assertThat(cost(server, "GET", "/pages/forward", 200)).isZero();
            assertThat(server.get("/pages/end").body()).isEqualTo("0 left");
            assertThat(server.get("/pages/forward").body()).isEqualTo("0 left");
        }
    }

    /** One GraphQL request may ask for a field a thousand times. */
    @Test
    void everyFieldAndEntityOfAGraphQlRequestIsCharged(CapturedOutput output) {
        try (RunningServer server = Kind.TOMCAT.start(List.of(App.class, Fields.class, Query.class))) {
            assertThat(cost(server, "GET", "/query", 200)).isEqualTo(3);
            long before = left(server);
            assertThat(server.context.getBean(Fields.class).failed(new IllegalStateException("broken")))
                    .isEqualTo("broken");
            assertThat(left(server)).isEqualTo(before);
            assertThat(output).doesNotContain("RL-203");
        }
    }

    private static long cost(RunningServer server, String method, String path, int status) {
        long before = left(server);
        HttpResponse<String> response = server.send(method, path);
        assertThat(response.statusCode()).as(response.body()).isEqualTo(status);
        return before - left(server);
    }

    private static long left(RunningServer server) {
        return server.context.getBean(RateLimits.class).peek("all", null).remaining();
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class App {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }
    }

    @Controller
    @RequestMapping("/owners")
    @RateLimited(name = "all", rate = "100/d")
    public static class Owners {

        @InitBinder
        public void allow(WebDataBinder binder) {
            binder.setDisallowedFields("id");
        }

        @ModelAttribute("kinds")
        public List<String> kinds() {
            return List.of("cat", "dog");
        }

        @ModelAttribute("owner")
        public Owner owner() {
            return new Owner();
        }

        @GetMapping("/find")
        @ResponseBody
        String find(@ModelAttribute("kinds") List<String> kinds) {
            return String.valueOf(kinds);
        }

        @PostMapping("/{number}/edit")
        @ResponseBody
        protected String edit(@PathVariable int number, @ModelAttribute("owner") Owner owner) {
            return number + owner.name;
        }

        @GetMapping("/broken")
        public String broken() {
            throw new IllegalStateException("broken");
        }

        @ExceptionHandler
        public ResponseEntity<String> failed(IllegalStateException failure) {
            return ResponseEntity.status(HttpStatus.CONFLICT).body(failure.getMessage());
        }

        public String summary() {
            return "all";
        }
    }

    public static class Owner {

        private String name = "";

        public void setName(String name) {
            this.name = name;
        }
    }

    @HttpExchange("/visits")
    interface VisitApi {

        @GetExchange
        String visits();
    }

    @Controller
    @RateLimited("all")
    static class Visits implements VisitApi {

        @Override
        @ResponseBody
        public String visits() {
            return "visits";
        }
    }

    @Controller
    @RateLimited(name = "all")
    public static class Pages implements ErrorController {

        private final RateLimits limits;

        public Pages(RateLimits limits) {
            this.limits = limits;
        }

        @GetMapping("/pages/forward")
        public String forward() {
            return "forward:/pages/end";
        }

        @GetMapping("/pages/end")
        @ResponseBody
        public String end() {
            return limits.peek("all", null).remaining() + " left";
        }

        @GetMapping("/pages/missing")
        public String missing() {
            throw new ResponseStatusException(HttpStatus.NOT_FOUND);
        }

        @RequestMapping("/error")
        @ResponseBody
        public String error() {
            return "an error page";
        }
    }

    @Controller
    @RateLimited(name = "all", rate = "100/d")
    public static class Fields {

        @SchemaMapping
        public String name() {
            return "ann";
        }

        @EntityMapping
        public String person() {
            return "ann";
        }

        @GraphQlExceptionHandler
        public String failed(IllegalStateException failure) {
            return failure.getMessage();
        }
    }

    @Controller
    static class Query {

        private final Fields fields;

        Query(Fields fields) {
            this.fields = fields;
        }

        @GetMapping("/query")
        @ResponseBody
        public String query() {
            return fields.name() + fields.name() + fields.person();
        }
    }
}
