package com.example.charging;

import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.ReservedPermits;
import java.util.concurrent.atomic.AtomicLong;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.prompt.ChatOptions;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.stereotype.Component;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@Component
class TenantModels {
    private final ChatModel model;
    private final RateLimits limits;
    private final ModelPrices prices;

    TenantModels(ChatModel model, RateLimits limits, ModelPrices prices) {
        this.model = model;
        this.limits = limits;
        this.prices = prices;
    }

    ChatModel of(String tenant) {
        return new TenantModel(tenant);
    }

    private final class TenantModel implements ChatModel {
        private final String tenant;

        private TenantModel(String tenant) {
            this.tenant = tenant;
        }

        @Override
        public ChatResponse call(Prompt prompt) {
            try (ReservedPermits tokens = limits.reserve("model-tokens", tenant, most(prompt))) {
                ChatResponse response = model.call(prompt);
                long used = used(response, prompt);
                if (used > 0) {
                    tokens.settle(used);
                }
                return response;
            }
        }

        @Override
        public Flux<ChatResponse> stream(Prompt prompt) {
            AtomicLong used = new AtomicLong();
            return Flux.usingWhen(
                            Mono.fromFuture(() -> limits.reserveAsync("model-tokens", tenant, most(prompt))),
                            tokens -> model.stream(prompt)
                                    .doOnNext(response -> used.accumulateAndGet(used(response, prompt), Math::max)),
                            tokens -> end(tokens, used.get()),
                            (tokens, failure) -> end(tokens, Math.max(used.get(), most(prompt))),
                            tokens -> end(tokens, Math.max(used.get(), most(prompt))))
                    .doOnDiscard(ReservedPermits.class, ReservedPermits::cancel);
        }

        private Mono<Void> end(ReservedPermits tokens, long used) {
            return Mono.fromRunnable(() -> {
                if (used > 0) {
                    tokens.settle(used);
                }
                tokens.close();
            });
        }

        @Override
        public ChatOptions getOptions() {
            return model.getOptions();
        }

        private long most(Prompt prompt) {
            return prompt.getOptions().getMaxTokens() * prices.of(prompt);
        }

        private long used(ChatResponse response, Prompt prompt) {
            return response.getMetadata().getUsage().getTotalTokens() * prices.of(prompt);
        }
    }
}
