package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import org.junit.jupiter.api.Test;
import org.springframework.ai.tool.ToolCallback;
import org.springframework.ai.tool.annotation.Tool;
import org.springframework.ai.tool.definition.ToolDefinition;
import org.springframework.ai.tool.execution.DefaultToolExecutionExceptionProcessor;
import org.springframework.ai.tool.execution.ToolExecutionException;
import org.springframework.ai.tool.method.MethodToolCallback;
import org.springframework.util.ReflectionUtils;

/** Tools that a model calls. */
class ToolsTest {

    public static class Weather {

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
            ToolCallback tool = MethodToolCallback.builder()
                    .toolDefinition(ToolDefinition.builder()
                            .name("weather")
                            .description("the weather of a city")
                            .inputSchema("{}")
                            .build())
                    .toolMethod(ReflectionUtils.findMethod(Weather.class, "of", String.class))
                    .toolObject(context.getBean(Weather.class))
                    .build();
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
