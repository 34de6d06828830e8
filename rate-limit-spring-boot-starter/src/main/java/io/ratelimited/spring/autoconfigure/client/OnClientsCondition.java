package io.ratelimited.spring.autoconfigure.client;

import org.springframework.boot.autoconfigure.condition.ConditionMessage;
import org.springframework.boot.autoconfigure.condition.ConditionOutcome;
import org.springframework.boot.autoconfigure.condition.SpringBootCondition;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.core.type.AnnotatedTypeMetadata;

/** Matches if properties name a client. Only properties can, so without one nothing of outgoing calls is made. */
final class OnClientsCondition extends SpringBootCondition {

    @Override
    public ConditionOutcome getMatchOutcome(ConditionContext context, AnnotatedTypeMetadata metadata) {
        boolean clients = Binder.get(context.getEnvironment())
                .bind("rate-limit.clients", Bindable.mapOf(String.class, Object.class))
                .map(named -> !named.isEmpty())
                .orElse(false);
        return new ConditionOutcome(
                clients,
                ConditionMessage.forCondition("rate-limit.clients")
                        .because(clients ? "properties name a client" : "no property names a client"));
    }
}
