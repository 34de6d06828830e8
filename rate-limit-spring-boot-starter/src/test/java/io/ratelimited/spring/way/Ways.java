package io.ratelimited.spring.way;

import static org.springframework.test.web.servlet.request.MockMvcRequestBuilders.get;
import static org.springframework.test.web.servlet.result.MockMvcResultMatchers.status;

import com.sun.management.ThreadMXBean;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.web.servlet.ServletRateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.web.servlet.ServletRequestAutoConfiguration;
import io.ratelimited.spring.internals.web.servlet.RateLimitFilter;
import java.lang.management.ManagementFactory;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.webmvc.autoconfigure.DispatcherServletAutoConfiguration;
import org.springframework.boot.webmvc.autoconfigure.WebMvcAutoConfiguration;
import org.springframework.test.web.servlet.MockMvc;
import org.springframework.test.web.servlet.setup.DefaultMockMvcBuilder;
import org.springframework.test.web.servlet.setup.MockMvcBuilders;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Calls that users make, each recorded after the same call has been made before; and the bytes that some of them allocate. */
public final class Ways implements Callable<Map<String, Map<String, Integer>>> {

    /** The entry of the bytes. */
    static final String BYTES = "bytes";

    private static final int ROUNDS = 10;
    private static final int CALLS = 40;
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

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
                    context.getBeanProvider(FilterRegistrationBean.class)
                            .orderedStream()
                            .filter(registered -> registered.isEnabled())
                            .map(registered -> registered.getFilter())
                            .filter(RateLimitFilter.class::isInstance)
                            .forEach(builder::addFilters);
                    MockMvc mvc = builder.build();
                    ways.put("plain", after(service::plain));
                    ways.put("two", after(service::two));
                    ways.put("GET", after(() -> request(mvc, "/open", 200)));
                    request(mvc, "/closed", 200);
                    ways.put("rejected GET", after(() -> request(mvc, "/closed", 429)));
                    int call = bytes(service::free);
                    int get = bytes(() -> request(mvc, "/free", 200));
                    Map<String, Integer> bytes = new LinkedHashMap<>();
                    bytes.put("plain", bytes(service::plain) - call);
                    bytes.put("two", bytes(service::two) - call);
                    bytes.put("GET", bytes(() -> request(mvc, "/open", 200)) - get);
                    bytes.put("rejected GET", bytes(() -> request(mvc, "/closed", 429)) - get);
                    ways.put(BYTES, bytes);
                });
        return ways;
    }

    private static Map<String, Integer> after(Runnable way) {
        for (int i = 0; i < 3; i++) {
            way.run();
        }
        return Recorder.record(way);
    }

    /** Of a call: the fewest of several rounds, so that what is allocated once does not count. */
    private static int bytes(Runnable way) {
        long fewest = Long.MAX_VALUE;
        for (int round = 0; round < ROUNDS; round++) {
            long before = THREADS.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < CALLS; i++) {
                way.run();
            }
            fewest = Math.min(fewest, THREADS.getCurrentThreadAllocatedBytes() - before);
        }
        return (int) (fewest / CALLS);
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

        void free() {}

        @RateLimited(rate = "1000/s")
        void plain() {}

        @RateLimited(rate = "1000/s")
        @RateLimited(rate = "10000/m")
        void two() {}
    }

    /** One limit that admits, and one that admits once. */
    @RestController
    static class Controller {

        @GetMapping("/free")
        public String free() {
            return "open";
        }

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
