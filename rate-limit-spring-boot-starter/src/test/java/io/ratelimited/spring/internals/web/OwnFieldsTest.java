package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Decision;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.autoconfigure.client.ClientRateLimitAutoConfiguration;
import io.ratelimited.spring.fields.RateLimitHeaderReader;
import io.ratelimited.spring.fields.RateLimitHeaderWriter;
import io.ratelimited.spring.fields.ResponseLimits;
import io.ratelimited.spring.internals.client.LimitedClients;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.http.client.autoconfigure.HttpClientAutoConfiguration;
import org.springframework.boot.http.client.autoconfigure.imperative.ImperativeHttpClientAutoConfiguration;
import org.springframework.boot.restclient.autoconfigure.RestClientAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.client.RestClient;

/** A later draft by two beans: one writes its fields, one reads them. Here it has one field, {@code Quota: one=0;60}. */
@Tag("slow")
class OwnFieldsTest {

    @Configuration(proxyBeanMethods = false)
    static class LaterDraft {

        @Bean
        RateLimitHeaderWriter writer() {
            return new RateLimitHeaderWriter() {

                @Override
                public void write(List<AppliedLimit> limits, BiConsumer<String, String> setter) {
                    setter.accept(
                            "Quota",
                            limits.stream()
                                    .filter(told -> told.decision() != null)
                                    .map(told -> told.limit().name() + "="
                                            + told.decision().remaining() + ";"
                                            + told.decision().reset().toSeconds())
                                    .collect(Collectors.joining(",")));
                }

                @Override
                public List<String> names() {
                    return List.of("Quota");
                }
            };
        }

        @Bean
        RateLimitHeaderReader reader() {
            return (status, fields, epochMillis) -> {
                List<String> quotas = fields.apply("Quota");
                if (quotas == null || quotas.isEmpty()) {
                    throw new IllegalStateException("no field Quota");
                }
                String[] parts = quotas.get(0).split("[=;]", -1);
                long reset = TimeUnit.SECONDS.toNanos(Math.max(1, Long.parseLong(parts[2])));
                return new ResponseLimits(
                        0,
                        List.of(new ResponseLimits.Quota(
                                parts[0],
                                ResponseLimits.Quota.UNKNOWN,
                                Long.parseLong(parts[1]),
                                ResponseLimits.Quota.UNKNOWN,
                                reset)));
            };
        }
    }

    private static Class<?> app(Kind kind) {
        return kind == Kind.REACTOR_NETTY ? ReactiveApp.class : ServletApp.class;
    }

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "REACTOR_NETTY"})
    void beansWriteAndReadOtherFields(Kind kind) {
        Class<?> cors = kind == Kind.REACTOR_NETTY
                ? RejectionAttacksTest.ReactiveCorsOfTheApplication.class
                : RejectionAttacksTest.CorsOfTheApplication.class;
        try (RunningServer server = kind.start(List.of(app(kind), cors, LaterDraft.class))) {
            HttpResponse<String> response = server.get("/one");
            assertThat(response.headers().firstValue("Quota").orElseThrow()).matches("\\w+=0;(59|60)");
            assertThat(response.headers().map()).doesNotContainKeys("ratelimit", "ratelimit-policy");
            HttpResponse<String> refused = server.get("/one", "Origin", "http://friend.example");
            assertThat(refused.headers().allValues("Access-Control-Expose-Headers"))
                    .containsExactly("Quota, Retry-After");
            client().withUserConfiguration(LaterDraft.class).run(context -> {
                RestClient client = context.getBean(RestClient.Builder.class).build();
                // The refusal tells when one may go again.
                client.get().uri(server.uri("/one")).exchange((request, answer) -> answer.getStatusCode());
                assertThatThrownBy(() ->
                                client.get().uri(server.uri("/one")).retrieve().toBodilessEntity())
                        .isInstanceOfSatisfying(
                                RateLimitExceededException.class,
                                refusal -> assertThat(refusal.limit()).isEqualTo("clients.partner"));
            });
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class SelectiveWriter {

        @Bean
        RateLimitHeaderWriter writer() {
            return (limits, setter) -> {
                Decision decision = Objects.requireNonNull(limits.get(0).decision());
                setter.accept("Quota-Left", String.valueOf(decision.remaining()));
                if (!decision.reset().isZero()) {
                    setter.accept("Quota-Reset", String.valueOf(decision.reset().toSeconds()));
                }
            };
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "REACTOR_NETTY"})
    void aFieldThatTheLastDecisionDoesNotHaveIsRemoved(Kind kind) {
        try (RunningServer server =
                kind.start(List.of(app(kind), HttpSettingsTest.SeveralDecisions.class, SelectiveWriter.class))) {
            HttpResponse<String> response = server.get("/free");
            assertThat(response.headers().allValues("Quota-Left")).containsExactly("5");
            assertThat(response.headers().allValues("Quota-Reset")).isEmpty();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class FailingWriter {

        @Bean
        RateLimitHeaderWriter writer() {
            return (limits, setter) -> {
                throw new IllegalStateException("no field");
            };
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "REACTOR_NETTY"})
    void aWriterThatFailsLeavesTheResponseAsItIs(Kind kind) {
        try (RunningServer server = kind.start(List.of(app(kind), FailingWriter.class))) {
            assertThat(server.get("/one").statusCode()).isEqualTo(200);
            HttpResponse<String> refused = server.get("/one");
            assertThat(refused.statusCode()).isEqualTo(429);
            assertThat(refused.headers().firstValue("Retry-After")).isPresent();
        }
    }

    @Test
    void aReaderThatFailsSaysNothingAndLosesNothing() {
        try (RunningServer server = Kind.TOMCAT.start(List.of(ServletApp.class))) {
            client().withUserConfiguration(LaterDraft.class)
                    .withPropertyValues(
                            "rate-limit.clients.partner.limits=places",
                            "rate-limit.limits.places.algorithm=concurrency",
                            "rate-limit.limits.places.max-concurrent=1")
                    .run(context -> {
                        RestClient client =
                                context.getBean(RestClient.Builder.class).build();
                        for (int i = 0; i < 3; i++) {
                            client.get().uri(server.uri("/one")).exchange((request, answer) -> answer.getStatusCode());
                        }
                        assertThat(context.getBean(LimitedClients.class)
                                        .all()
                                        .iterator()
                                        .next()
                                        .refusedHere())
                                .isZero();
                    });
        }
    }

    private static ApplicationContextRunner client() {
        return Contexts.runner()
                .withConfiguration(AutoConfigurations.of(
                        ClientRateLimitAutoConfiguration.class,
                        HttpClientAutoConfiguration.class,
                        ImperativeHttpClientAutoConfiguration.class,
                        RestClientAutoConfiguration.class))
                .withPropertyValues(
                        "rate-limit.clients.partner.hosts=localhost,127.0.0.1",
                        "rate-limit.clients.partner.policy=reject");
    }
}
