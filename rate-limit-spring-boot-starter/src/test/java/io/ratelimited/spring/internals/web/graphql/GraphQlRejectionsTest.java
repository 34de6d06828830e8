package io.ratelimited.spring.internals.web.graphql;

import static org.assertj.core.api.Assertions.assertThat;

import graphql.GraphQLError;
import io.ratelimited.core.Decision;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.web.graphql.GraphQlRateLimitAutoConfiguration;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.reactivestreams.Publisher;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.io.ByteArrayResource;
import org.springframework.graphql.ExecutionGraphQlResponse;
import org.springframework.graphql.ExecutionGraphQlService;
import org.springframework.graphql.data.method.annotation.Argument;
import org.springframework.graphql.data.method.annotation.BatchMapping;
import org.springframework.graphql.data.method.annotation.GraphQlExceptionHandler;
import org.springframework.graphql.data.method.annotation.QueryMapping;
import org.springframework.graphql.data.method.annotation.SubscriptionMapping;
import org.springframework.graphql.data.method.annotation.support.AnnotatedControllerConfigurer;
import org.springframework.graphql.execution.DataFetcherExceptionResolver;
import org.springframework.graphql.execution.DefaultBatchLoaderRegistry;
import org.springframework.graphql.execution.DefaultExecutionGraphQlService;
import org.springframework.graphql.execution.GraphQlSource;
import org.springframework.graphql.execution.SubscriptionExceptionResolver;
import org.springframework.graphql.execution.SubscriptionPublisherException;
import org.springframework.graphql.support.DefaultExecutionGraphQlRequest;
import org.springframework.stereotype.Controller;
import reactor.core.publisher.Flux;
import reactor.test.StepVerifier;

/** What a client of Spring for GraphQL learns of a refused field or subscription. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class GraphQlRejectionsTest {

    private static final String SCHEMA = """
        type Query { book(id: ID): String, batch: [Book], answered: String, weighed(n: Int): String }
        type Book { id: ID, pages: Int }
        type Subscription { ticks: Int }
        """;

    private final ApplicationContextRunner application = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(
                    AopAutoConfiguration.class,
                    RateLimitAutoConfiguration.class,
                    GraphQlRateLimitAutoConfiguration.class))
            .withUserConfiguration(Application.class, Books.class, Answering.class);

    @Test
    void aRefusedFieldSaysWhichLimitRefusesAndWhenToRetry(CapturedOutput output) {
        application.run(context -> {
            ExecutionGraphQlResponse response =
                    execute(context.getBean(ExecutionGraphQlService.class), "{a: book b: book}");
            assertThat(response.<Map<String, Object>>getData()).containsEntry("a", "book");
            assertThat(specifications(response))
                    .singleElement()
                    .satisfies(error -> assertThat(error)
                            .containsEntry("message", "Rate limit 'book' is exceeded; retry after 60 s.")
                            .containsEntry("path", List.of("b"))
                            .containsEntry(
                                    "extensions",
                                    Map.of("limit", "book", "retryAfter", 60L, "classification", "RATE_LIMITED")));
            assertThat(output).doesNotContain("Unresolved");
        });
    }

    @Test
    void aFieldThatTheServiceHasNoRoomForIsUnavailable() {
        application
                .withPropertyValues(
                        "rate-limit.limits.book.algorithm=adaptive", "rate-limit.limits.book.max-concurrent=1")
                .run(context -> context.getBean(RateLimits.class).execute("book", null, () -> {
                    assertThat(specifications(execute(context.getBean(ExecutionGraphQlService.class), "{book}")))
                            .singleElement()
                            .satisfies(error -> assertThat(error.get("extensions"))
                                    .asInstanceOf(InstanceOfAssertFactories.MAP)
                                    .containsEntry("classification", "UNAVAILABLE")
                                    .containsEntry("limit", "book")
                                    .extractingByKey("retryAfter")
                                    .isIn(1L, 2L, 3L));
                    return "done";
                }));
    }

    @Test
    void aBatchThatIsRefusedAsksOnceForAllItsFields() {
        application.run(context -> {
            ExecutionGraphQlService service = context.getBean(ExecutionGraphQlService.class);
            assertThat(execute(service, "{batch {pages}}").isValid()).isTrue();
            ExecutionGraphQlResponse refused = execute(service, "{batch {pages}}");
            assertThat(specifications(refused))
                    .hasSize(2)
                    .allSatisfy(error -> assertThat(error.toString()).contains("RATE_LIMITED"));
        });
    }

    @Test
    void aRefusedSubscriptionSaysItToo() {
        application.run(context -> {
            ExecutionGraphQlService service = context.getBean(ExecutionGraphQlService.class);
            StepVerifier.create(subscribe(service)).expectNextCount(1).verifyComplete();
            StepVerifier.create(subscribe(service)).verifyErrorSatisfies(failure -> {
                assertThat(failure).isInstanceOf(SubscriptionPublisherException.class);
                assertThat(((SubscriptionPublisherException) failure).getErrors())
                        .singleElement()
                        .satisfies(error -> assertThat(error.toSpecification())
                                .containsEntry("message", "Rate limit 'ticks' is exceeded; retry after 60 s."));
            });
        });
    }

    @Test
    void aNumberOfPermitsThatNoCallCanHaveIsABadRequest(CapturedOutput output) {
        application.run(context -> {
            ExecutionGraphQlResponse response =
                    execute(context.getBean(ExecutionGraphQlService.class), "{a: weighed(n: -1) b: weighed(n: -1)}");
            assertThat(specifications(response))
                    .hasSize(2)
                    .allSatisfy(error ->
                            assertThat(error).containsEntry("extensions", Map.of("classification", "BAD_REQUEST")));
            assertThat(output)
                    .doesNotContain("Unresolved")
                    .containsOnlyOnce("Further failures are logged once per minute");
        });
    }

    @Test
    void aFieldThatNobodyCanDecideIsUnavailable() {
        RateLimitExceededException undecided = new RateLimitExceededException(
                new Decision("away", false, Duration.ZERO, null, false, 0, Duration.ZERO, Decision.Source.UNAVAILABLE));
        application.run(context -> StepVerifier.create(
                        context.getBean(GraphQlRejections.class).resolveException(undecided))
                .assertNext(errors -> assertThat(errors)
                        .singleElement()
                        .satisfies(error -> assertThat(error.toSpecification())
                                .containsEntry("message", "Rate limit 'away' is unavailable; retry later.")
                                .containsEntry("extensions", Map.of("limit", "away", "classification", "UNAVAILABLE"))))
                .verifyComplete());
    }

    @Test
    void aBlockedCallerIsToldThatItIs() {
        RateLimitExceededException blocked = new RateLimitExceededException(
                new Decision("door", false, Duration.ZERO, null, false, 0, Duration.ZERO, Decision.Source.MEMORY)
                        .blockedFor(Duration.ofMinutes(2)));
        application.run(context -> StepVerifier.create(
                        context.getBean(GraphQlRejections.class).resolveException(blocked))
                .assertNext(errors -> assertThat(errors)
                        .singleElement()
                        .satisfies(error -> assertThat(error.toSpecification())
                                .containsEntry(
                                        "message", "Rate limit 'door' has blocked this caller; retry after 120 s.")
                                .containsEntry(
                                        "extensions",
                                        Map.of(
                                                "limit",
                                                "door",
                                                "retryAfter",
                                                120L,
                                                "blocked",
                                                true,
                                                "classification",
                                                "RATE_LIMITED"))))
                .verifyComplete());
    }

    @Test
    void aHandlerOfTheApplicationWins() {
        application.run(context -> assertThat(specifications(
                        execute(context.getBean(ExecutionGraphQlService.class), "{a: answered b: answered}")))
                .singleElement()
                .satisfies(error -> assertThat(error).containsEntry("message", "later")));
    }

    private static List<Map<String, Object>> specifications(ExecutionGraphQlResponse response) {
        return response.getExecutionResult().getErrors().stream()
                .map(GraphQLError::toSpecification)
                .collect(Collectors.toList());
    }

    private static Publisher<?> subscribe(ExecutionGraphQlService service) {
        return execute(service, "subscription {ticks}").getExecutionResult().getData();
    }

    private static ExecutionGraphQlResponse execute(ExecutionGraphQlService service, String document) {
        return service.execute(new DefaultExecutionGraphQlRequest(document, null, null, null, "1", null))
                .block();
    }

    @Configuration(proxyBeanMethods = false)
    static class Application {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean
        AnnotatedControllerConfigurer controllers() {
            return new AnnotatedControllerConfigurer();
        }

        @Bean
        DataFetcherExceptionResolver handlersOfControllers(AnnotatedControllerConfigurer controllers) {
            return controllers.getExceptionResolver();
        }

        @Bean
        DefaultBatchLoaderRegistry loaders() {
            return new DefaultBatchLoaderRegistry();
        }

        @Bean
        ExecutionGraphQlService service(
                AnnotatedControllerConfigurer controllers,
                DefaultBatchLoaderRegistry loaders,
                ObjectProvider<DataFetcherExceptionResolver> fields,
                ObjectProvider<SubscriptionExceptionResolver> subscriptions) {
            GraphQlSource source = GraphQlSource.schemaResourceBuilder()
                    .schemaResources(new ByteArrayResource(SCHEMA.getBytes(StandardCharsets.UTF_8)))
                    .configureRuntimeWiring(controllers)
                    .exceptionResolvers(fields.orderedStream().toList())
                    .subscriptionExceptionResolvers(
                            subscriptions.orderedStream().toList())
                    .build();
            DefaultExecutionGraphQlService service = new DefaultExecutionGraphQlService(source);
            service.addDataLoaderRegistrar(loaders);
            return service;
        }
    }

    record Book(int id) {}

    @Controller
    static class Books {

        @QueryMapping
        @RateLimited(name = "book", rate = "1/m")
        public String book() {
            return "book";
        }

        @QueryMapping
        public List<Book> batch() {
            return List.of(new Book(1), new Book(2));
        }

        @BatchMapping
        @RateLimited(name = "pages", rate = "1/m")
        public List<Integer> pages(List<Book> books) {
            return books.stream().map(Book::id).toList();
        }

        @QueryMapping
        @RateLimited(name = "weighed", rate = "1/m", permits = "#n")
        public String weighed(@Argument int n) {
            return "weighed";
        }

        @SubscriptionMapping
        @RateLimited(name = "ticks", rate = "1/m")
        public Flux<Integer> ticks() {
            return Flux.just(1);
        }
    }

    @Controller
    static class Answering {

        @QueryMapping
        @RateLimited(name = "answered", rate = "1/m")
        public String answered() {
            return "answer";
        }

        @GraphQlExceptionHandler
        public GraphQLError refused(RateLimitExceededException refusal) {
            return GraphQLError.newError().message("later").build();
        }
    }
}
