package io.ratelimited.spring.way;

import static org.springframework.test.web.servlet.request.MockMvcRequestBuilders.get;
import static org.springframework.test.web.servlet.result.MockMvcResultMatchers.status;

import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.web.servlet.ServletRateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.web.servlet.ServletRequestAutoConfiguration;
import jakarta.servlet.Filter;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.webmvc.autoconfigure.DispatcherServletAutoConfiguration;
import org.springframework.boot.webmvc.autoconfigure.WebMvcAutoConfiguration;
import org.springframework.test.web.servlet.MockMvc;
import org.springframework.test.web.servlet.setup.DefaultMockMvcBuilder;
import org.springframework.test.web.servlet.setup.MockMvcBuilders;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Calls that users make, each recorded after the same call has been made before. */
public final class Ways implements Callable<Map<String, Map<String, Integer>>> {

    @Override
    public Map<String, Map<String, Integer>> call() {
        Map<String, Map<String, Integer>> ways = new LinkedHashMap<>();
        new WebApplicationContextRunner()
                .withClassLoader(Ways.class.getClassLoader())
                .withConfiguration(AutoConfigurations.of(
                        AopAutoConfiguration.class,
                        RateLimitAutoConfiguration.class,
                        ServletRateLimitAutoConfiguration.class,
                        ServletRequestAutoConfiguration.class,
                        DispatcherServletAutoConfiguration.class,
                        WebMvcAutoConfiguration.class))
                .withBean(Ticker.class, ManualTicker::new)
                .withBean(Service.class)
                .withBean(Controller.class)
                .run(context -> {
                    Service service = context.getBean(Service.class);
                    DefaultMockMvcBuilder builder = MockMvcBuilders.webAppContextSetup(context);
                    context.getBeanProvider(Filter.class).orderedStream().forEach(builder::addFilters);
                    MockMvc mvc = builder.build();
                    ways.put("plain", after(service::plain));
                    ways.put("two", after(service::two));
                    ways.put("GET", after(() -> request(mvc, "/open", 200)));
                    request(mvc, "/closed", 200);
                    ways.put("rejected GET", after(() -> request(mvc, "/closed", 429)));
                });
        return ways;
    }

    private static Map<String, Integer> after(Runnable way) {
        for (int i = 0; i < 3; i++) {
            way.run();
        }
        return Recorder.record(way);
    }

    private static void request(MockMvc mvc, String path, int expected) {
        try {
            mvc.perform(get(path)).andExpect(status().is(expected));
        } catch (Exception ex) {
            throw new IllegalStateException(ex);
        }
    }

    /** Methods with limits that nobody exhausts. */
    static class Service {

        @RateLimited(rate = "1000/s")
        void plain() {}

        @RateLimited(rate = "1000/s")
        @RateLimited(rate = "10000/m")
        void two() {}
    }

    /** One limit that admits, and one that admits once. */
    @RestController
    static class Controller {

        @GetMapping("/open")
        @RateLimited(rate = "1000/s")
        public String open() {
            return "open";
        }

        @GetMapping("/closed")
        @RateLimited(rate = "1/h", burst = 1)
        public String closed() {
            return "closed";
        }
    }
}
