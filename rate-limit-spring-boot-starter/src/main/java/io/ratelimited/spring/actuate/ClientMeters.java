package io.ratelimited.spring.actuate;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.ratelimited.spring.internals.client.LimitedClient;
import io.ratelimited.spring.internals.client.LimitedClients;
import java.util.function.ToDoubleFunction;
import org.springframework.beans.factory.ObjectProvider;

/** The meters of the clients that call others. Immutable. */
record ClientMeters(ObjectProvider<LimitedClients> clients) implements MeterBinder {

    @Override
    public void bindTo(MeterRegistry registry) {
        clients.forEach(known -> known.all().forEach(client -> {
            count(registry, client, "delayed", LimitedClient::delayed);
            count(registry, client, "refused_here", LimitedClient::refusedHere);
            count(registry, client, "refused_there", LimitedClient::refusedThere);
            Gauge.builder("rate.limit.client.paused", client, LimitedClient::pausedKeys)
                    .description("Keys of a client that pause because of a response")
                    .tag("client", client.name())
                    .register(registry);
        }));
    }

    private static void count(
            MeterRegistry registry, LimitedClient client, String outcome, ToDoubleFunction<LimitedClient> count) {
        FunctionCounter.builder("rate.limit.client.calls", client, count)
                .description(
                        "Outgoing calls that were delayed, rejected by this application, or rejected by the remote service")
                .tag("client", client.name())
                .tag("outcome", outcome)
                .register(registry);
    }
}
