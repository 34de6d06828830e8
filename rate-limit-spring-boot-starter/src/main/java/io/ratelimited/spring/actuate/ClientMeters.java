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
                    .description("How many keys of a client pause because an answer told so")
                    .tag("client", client.name())
                    .register(registry);
        }));
    }

    private static void count(
            MeterRegistry registry, LimitedClient client, String outcome, ToDoubleFunction<LimitedClient> count) {
        FunctionCounter.builder("rate.limit.client.calls", client, count)
                .description("Calls to others that waited, were refused on this side, or were answered with 429")
                .tag("client", client.name())
                .tag("outcome", outcome)
                .register(registry);
    }
}
