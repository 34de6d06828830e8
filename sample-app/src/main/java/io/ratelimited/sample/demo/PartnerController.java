package io.ratelimited.sample.demo;

import io.micrometer.core.instrument.MeterRegistry;
import io.ratelimited.core.Algorithm;
import io.ratelimited.spring.RateLimited;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.springframework.core.env.Environment;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestClient;

/** Both ends of the wire: the API of a partner that is limited, and calls to it that keep to its limit. */
@RestController
@RequestMapping("/partner")
class PartnerController {

    private static final int CALLS = 40;
    private static final int THREADS = 8;

    private final RestClient.Builder clients;
    private final Environment environment;
    private final MeterRegistry meters;

    PartnerController(RestClient.Builder clients, Environment environment, MeterRegistry meters) {
        this.clients = clients;
        this.environment = environment;
        this.meters = meters;
    }

    /** The partner. Its answers have the fields RateLimit and RateLimit-Policy. */
    @GetMapping
    @RateLimited(name = "partner-api", algorithm = Algorithm.TOKEN_BUCKET, rate = "10/s")
    String order() {
        return "ordered";
    }

    /** Eight threads call the partner as fast as they may. Nothing here knows of the limit: the client of the properties does. */
    @PostMapping("/run")
    Run run() throws InterruptedException, ExecutionException {
        RestClient partner = clients.clone()
                .baseUrl("http://127.0.0.1:" + environment.getRequiredProperty("local.server.port"))
                .build();
        double delayed = counted("delayed");
        double refused = counted("refused_there");
        long begin = System.nanoTime();
        Callable<Long> call = () -> {
            // A refusal is counted, not thrown: the run shows it.
            partner.get().uri("/partner").exchange((request, response) -> response.getStatusCode());
            return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin);
        };
        List<Long> answeredAt = new ArrayList<>();
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        try {
            for (Future<Long> answer : threads.invokeAll(Collections.nCopies(CALLS, call))) {
                answeredAt.add(answer.get());
            }
        } finally {
            threads.shutdown();
        }
        return new Run(
                CALLS, (long) (counted("delayed") - delayed), (long) (counted("refused_there") - refused), answeredAt);
    }

    private double counted(String outcome) {
        return meters.get("rate.limit.client.calls")
                .tags("client", "partner", "outcome", outcome)
                .functionCounter()
                .count();
    }

    /**
     * What became of a run.
     *
     * @param refused calls that the partner has answered with 429
     * @param answeredAt when each call was answered, in milliseconds since the run began
     */
    record Run(int sent, long delayed, long refused, List<Long> answeredAt) {}
}
