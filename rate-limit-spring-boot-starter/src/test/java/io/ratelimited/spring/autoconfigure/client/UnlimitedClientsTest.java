package io.ratelimited.spring.autoconfigure.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.http.client.autoconfigure.HttpClientAutoConfiguration;
import org.springframework.boot.http.client.autoconfigure.imperative.ImperativeHttpClientAutoConfiguration;
import org.springframework.boot.http.client.autoconfigure.reactive.ReactiveHttpClientAutoConfiguration;
import org.springframework.boot.restclient.RestTemplateBuilder;
import org.springframework.boot.restclient.autoconfigure.RestClientAutoConfiguration;
import org.springframework.boot.restclient.autoconfigure.RestClientBuilderConfigurer;
import org.springframework.boot.restclient.autoconfigure.RestTemplateAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.webclient.WebClientCustomizer;
import org.springframework.boot.webclient.autoconfigure.WebClientAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.client.ReactorResourceFactory;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;
import org.springframework.web.reactive.function.client.WebClient;

/** Clients that the application builds itself, as for a load balancer. */
@ExtendWith(OutputCaptureExtension.class)
class UnlimitedClientsTest {

    private static List<String> warningsOf(Class<?> configuration, CapturedOutput output, String... properties) {
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration.class,
                        ClientRateLimitAutoConfiguration.class,
                        HttpClientAutoConfiguration.class,
                        ImperativeHttpClientAutoConfiguration.class,
                        ReactiveHttpClientAutoConfiguration.class,
                        RestClientAutoConfiguration.class,
                        RestTemplateAutoConfiguration.class,
                        WebClientAutoConfiguration.class))
                .withBean(io.ratelimited.core.Ticker.class, ManualTicker::new)
                .withBean(ReactorResourceFactory.class, Contexts::reactorResources)
                .withUserConfiguration(configuration)
                .withPropertyValues(properties)
                .run(context -> assertThat(context).hasNotFailed());
        return output.getAll().lines().filter(line -> line.contains("[RL-230]")).toList();
    }

    private static final String[] CLIENT = {
        "rate-limit.clients.partner.hosts=partner",
        "rate-limit.clients.partner.limits=calls",
        "rate-limit.limits.calls.rate=1/s"
    };

    @Test
    void eachClientIsNamedAtStartup(CapturedOutput output) {
        assertThat(warningsOf(OwnClients.class, output, CLIENT))
                .hasSize(2)
                .anyMatch(line -> line.contains("bean 'client'") && line.contains("this RestClient itself"))
                .anyMatch(line -> line.contains("bean 'reactive'") && line.contains("this WebClient itself"));
    }

    /** No post-processor sees them. */
    @Test
    void buildersThatAreRegisteredAsTheyAreAreNamed(CapturedOutput output) {
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration.class,
                        ClientRateLimitAutoConfiguration.class))
                .withInitializer(context -> {
                    context.getBeanFactory().registerSingleton("blocking", RestClient.builder());
                    context.getBeanFactory().registerSingleton("template", new RestTemplate());
                    context.getBeanFactory().registerSingleton("reactive", WebClient.builder());
                })
                .withPropertyValues(CLIENT)
                .run(context -> assertThat(context).hasNotFailed());
        assertThat(output.getAll().lines().filter(line -> line.contains("[RL-230]")))
                .hasSize(3)
                .anyMatch(line -> line.contains("bean 'blocking'") && line.contains("this RestClient.Builder itself"))
                .anyMatch(line -> line.contains("bean 'template'") && line.contains("this RestTemplate itself"))
                .anyMatch(line -> line.contains("bean 'reactive'") && line.contains("this WebClient.Builder itself"));
    }

    @Test
    void whatSpringBootHasConfiguredIsNotNamed(CapturedOutput output) {
        assertThat(warningsOf(BootsClients.class, output, CLIENT)).isEmpty();
    }

    @Test
    void withoutClientsNothingIsNamed(CapturedOutput output) {
        assertThat(warningsOf(OwnClients.class, output)).isEmpty();
    }

    @Configuration(proxyBeanMethods = false)
    static class OwnClients {

        @Bean
        RestClient.Builder balanced() {
            return RestClient.builder();
        }

        @Bean
        RestClient client() {
            return RestClient.create();
        }

        @Bean
        RestTemplate template() {
            return new RestTemplate();
        }

        @Bean
        WebClient.Builder reactiveBalanced() {
            return WebClient.builder();
        }

        @Bean
        WebClient reactive() {
            return WebClient.create();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class BootsClients {

        @Bean
        RestClient.Builder balanced(RestClientBuilderConfigurer configurer) {
            return configurer.configure(RestClient.builder());
        }

        @Bean
        RestClient client(RestClient.Builder balanced) {
            return balanced.build();
        }

        @Bean
        RestTemplate template(RestTemplateBuilder builder) {
            return builder.build();
        }

        @Bean
        WebClient.Builder reactiveBalanced(List<WebClientCustomizer> customizers) {
            WebClient.Builder builder = WebClient.builder();
            customizers.forEach(customizer -> customizer.customize(builder));
            return builder;
        }

        @Bean
        WebClient reactive(WebClient.Builder reactiveBalanced) {
            return reactiveBalanced.build();
        }
    }
}
