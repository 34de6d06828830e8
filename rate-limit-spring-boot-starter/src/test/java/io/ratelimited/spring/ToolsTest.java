package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.ai.tool.ToolCallback;
import org.springframework.ai.tool.annotation.Tool;
import org.springframework.ai.tool.definition.ToolDefinition;
import org.springframework.ai.tool.execution.DefaultToolExecutionExceptionProcessor;
import org.springframework.ai.tool.execution.ToolExecutionException;
import org.springframework.ai.tool.method.MethodToolCallback;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.util.ReflectionUtils;

/** Tools that a model calls. */
@ExtendWith(OutputCaptureExtension.class)
class ToolsTest {

    public static class Weather {

        @Tool
        @RateLimited(name = "weather", rate = "2/m")
        public String of(String city) {
            return "rain in " + city;
        }
    }

    static class Hidden {

        @Tool
        @RateLimited(name = "hidden", rate = "2/m")
        public String of(String city) {
            return "rain in " + city;
        }

        @Tool
        @RateLimited(name = "inner", rate = "2/m")
        String inner(String city) {
            return "rain in " + city;
        }
    }

    private static ToolCallback tool(Object weather, Class<?> type, String method) {
        return MethodToolCallback.builder()
                .toolDefinition(ToolDefinition.builder()
                        .name("weather")
                        .description("the weather of a city")
                        .inputSchema("{}")
                        .build())
                .toolMethod(ReflectionUtils.findMethod(type, method, String.class))
                .toolObject(weather)
                .build();
    }

    /** The model gets the rejection as the result of its call. */
    @Test
    void aToolIsLimitedAndTheModelHearsOfIt() {
        Contexts.runner(new ManualTicker()).withBean(Weather.class).run(context -> {
            ToolCallback tool = tool(context.getBean(Weather.class), Weather.class, "of");
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

    /** It would make the method accessible, but it looks for that at the class of the proxy, which is public. */
    @Test
    void startupWarnsOfAToolThatSpringAiCannotCall(CapturedOutput output) {
        Contexts.runner(new ManualTicker())
                .withBean(Hidden.class)
                .withBean(Weather.class)
                .run(context -> {
                    Hidden hidden = context.getBean(Hidden.class);
                    assertThatThrownBy(() -> tool(hidden, Hidden.class, "of").call("{\"city\": \"Bergen\"}"))
                            .hasRootCauseInstanceOf(IllegalAccessException.class);
                    assertThat(tool(hidden, Hidden.class, "inner").call("{\"city\": \"Bergen\"}"))
                            .contains("rain in Bergen");
                });
        assertThat(output.getAll().lines().filter(line -> line.contains("[RL-220]")))
                .singleElement()
                .asString()
                .contains("WARN")
                .contains("Spring AI cannot call " + Hidden.class.getName() + ".of, which has the limit 'hidden':"
                        + " its class is not public. Make the class public, or weave (rate-limit.aspect.mode: woven).");
    }
}
