package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import org.junit.jupiter.api.Test;
import org.springframework.ai.tool.ToolCallback;
import org.springframework.ai.tool.annotation.Tool;
import org.springframework.ai.tool.execution.DefaultToolExecutionExceptionProcessor;
import org.springframework.ai.tool.execution.ToolExecutionException;
import org.springframework.ai.tool.method.MethodToolCallbackProvider;

/** Tools that a model calls. */
class ToolsTest {

    static class Weather {

        @Tool
        @RateLimited(name = "weather", rate = "2/m")
        public String of(String city) {
            return "rain in " + city;
        }
    }

    /** The model gets the rejection as the result of its call. */
    @Test
    void aToolIsLimitedAndTheModelHearsOfIt() {
        Contexts.runner(new ManualTicker()).withBean(Weather.class).run(context -> {
            ToolCallback tool = MethodToolCallbackProvider.builder()
                    .toolObjects(context.getBean(Weather.class))
                    .build()
                    .getToolCallbacks()[0];
            assertThat(tool.call("{\"city\": \"Bergen\"}")).contains("rain in Bergen");
            assertThat(tool.call("{\"city\": \"Cork\"}")).contains("rain in Cork");
            assertThatThrownBy(() -> tool.call("{\"city\": \"Bergen\"}"))
                    .isInstanceOfSatisfying(ToolExecutionException.class, failure -> {
                        assertThat(failure).hasCauseInstanceOf(RateLimitExceededException.class);
                        assertThat(DefaultToolExecutionExceptionProcessor.builder()
                                        .build()
                                        .process(failure))
                                .contains("weather");
                    });
        });
    }
}
