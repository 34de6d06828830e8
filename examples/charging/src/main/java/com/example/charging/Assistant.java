package com.example.charging;

import io.ratelimited.spring.RateLimited;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.prompt.ChatOptions;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.stereotype.Service;
import reactor.core.publisher.Flux;

@Service
class Assistant {
    private final ChatModel model;

    Assistant(ChatModel model) {
        this.model = model;
    }

    @RateLimited("tokens")
    public ChatResponse ask(String tenant, String question, int maxTokens) {
        return model.call(prompt(question, maxTokens));
    }

    @RateLimited("tokens")
    public Flux<ChatResponse> stream(String tenant, String question, int maxTokens) {
        return model.stream(prompt(question, maxTokens));
    }

    private static Prompt prompt(String question, int maxTokens) {
        return new Prompt(question, ChatOptions.builder().maxTokens(maxTokens).build());
    }
}
