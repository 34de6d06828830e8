package io.ratelimited.benchmarks;

import com.sun.management.ThreadMXBean;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import java.lang.management.ManagementFactory;
import java.security.Principal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.connector.Request;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;

/**
 * Processor time of a call through Spring, above that of an {@code @Around} that only proceeds: {@code CallCost ROW CALLS WARM_UP ROUNDS}. That of
 * a caller with its own numbers is above that of a caller in a tier. The
 * two take turns in one process, and only the time that the thread has run counts, so that a machine may do other work
 * meanwhile. A process has one row, so that no other has decided what the compiler does.
 */
public final class CallCost {

    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private static volatile Object last = "";

    private final int calls;
    private final int warmUp;
    private final int rounds;

    private CallCost(int calls, int warmUp, int rounds) {
        this.calls = calls;
        this.warmUp = warmUp;
        this.rounds = rounds;
    }

    /** Takes the name of a row, the calls of a round, and the numbers of rounds before and within the measurement. */
    public static void main(String[] args) {
        CallCost cost = new CallCost(Integer.parseInt(args[1]), Integer.parseInt(args[2]), Integer.parseInt(args[3]));
        if (args[0].startsWith("request-")) {
            cost.inRequest(args[0]);
            return;
        }
        if (args[0].equals(args[0].toUpperCase(Locale.ROOT))) {
            cost.deciding(Algorithm.valueOf(args[0]));
            return;
        }
        SpringBenchmark spring = new SpringBenchmark();
        spring.setUp();
        Supplier<Object> row = switch (args[0]) {
            case "plain" -> spring::ours;
            case "id" -> spring::oursByParameter;
            case "bean" -> spring::oursByBean;
            case "charge" -> spring::oursReservedAndCharged;
            case "numbers" -> spring::oursByNumbers;
            case "two" -> spring::oursTwice;
            case "two-keys" -> spring::oursTwiceByKeys;
            case "three" -> spring::oursThreeTimes;
            default -> throw new IllegalArgumentException("unknown row: " + args[0]);
        };
        cost.measure(args[0], row, args[0].equals("numbers") ? spring::oursByTier : spring::floorAround);
        spring.tearDown();
    }

    /** A decision alone, without Spring, above a reading of the clock and one compare-and-set. */
    private void deciding(Algorithm algorithm) {
        String plenty = switch (algorithm) {
            case FIXED_WINDOW -> "400000000/s";
            case SLIDING_LOG -> "1000/us";
            default -> "1000000000/s";
        };
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(Peers.limit(algorithm, plenty));
        AtomicLong floor = new AtomicLong();
        measure(
                algorithm.name(),
                () -> limiter.tryAcquire(null, 1),
                () -> floor.compareAndSet(floor.get(), System.nanoTime()));
    }

    /** A call in a request of Tomcat, which no connection has brought, above one with {@code key = "#id"}. */
    private void inRequest(String name) {
        SpringApplication application = new SpringApplication(InRequest.class);
        application.setDefaultProperties(Map.of(
                "bucket4j.enabled",
                "false",
                "spring.cloud.gateway.server.webflux.enabled",
                "false",
                "server.port",
                "0"));
        try (ConfigurableApplicationContext context = application.run()) {
            org.apache.coyote.Request received = new org.apache.coyote.Request();
            received.getMimeHeaders().addValue("Host").setString("localhost");
            received.getMimeHeaders().addValue("X-Api-Key").setString("caller-7");
            received.remoteAddr().setString("192.0.2.7");
            Request request = new Request(new Connector(), received);
            request.setUserPrincipal(new UserPrincipal("caller-7"));
            RequestContextHolder.setRequestAttributes(new ServletRequestAttributes(request));
            SpringBenchmark.Service service = context.getBean(SpringBenchmark.Service.class);
            Supplier<Object> row = switch (name) {
                case "request-header" -> () -> service.limitedByHeader("a");
                case "request-principal" -> () -> service.limitedByPrincipal("a");
                case "request-client" -> () -> service.limitedByClient("a");
                default -> throw new IllegalArgumentException("unknown row: " + name);
            };
            measure(name, row, () -> service.limitedByParameter("caller-7"));
        }
    }

    /** The authenticated caller. */
    public record UserPrincipal(String getName) implements Principal {}

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class InRequest {

        @Bean
        SpringBenchmark.Service service() {
            return new SpringBenchmark.Service();
        }

        @Bean
        SpringBenchmark.Tenants tenants() {
            return new SpringBenchmark.Tenants();
        }
    }

    private void measure(String name, Supplier<Object> row, Supplier<Object> floor) {
        List<Round> measured = new ArrayList<>();
        List<Round> floors = new ArrayList<>();
        for (int i = 0; i < warmUp + rounds; i++) {
            Round one = round(floor);
            Round other = round(row);
            if (i >= warmUp) {
                floors.add(one);
                measured.add(other);
            }
        }
        if (last.equals("")) {
            throw new IllegalStateException("nothing was called");
        }
        System.out.printf(
                Locale.ROOT,
                "%s %.1f %.1f %.0f %.0f%n",
                name,
                nanos(floors),
                nanos(measured),
                bytes(floors),
                bytes(measured));
    }

    /** Processor time and bytes of a call. */
    private record Round(double nanos, double bytes) {}

    private Round round(Supplier<Object> call) {
        long bytes = THREADS.getCurrentThreadAllocatedBytes();
        long before = THREADS.getCurrentThreadCpuTime();
        for (int i = 0; i < calls; i++) {
            last = call.get();
        }
        long nanos = THREADS.getCurrentThreadCpuTime() - before;
        return new Round((double) nanos / calls, (double) (THREADS.getCurrentThreadAllocatedBytes() - bytes) / calls);
    }

    private static double nanos(List<Round> rounds) {
        return middle(rounds.stream().mapToDouble(Round::nanos).toArray());
    }

    private static double bytes(List<Round> rounds) {
        return middle(rounds.stream().mapToDouble(Round::bytes).toArray());
    }

    private static double middle(double[] values) {
        Arrays.sort(values);
        return values[values.length / 2];
    }
}
