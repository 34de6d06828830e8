package com.example.charging;

import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.stereotype.Component;

@Component
@ConfigurationProperties("models")
class ModelPrices {
    private final Map<String, Integer> price = new HashMap<>();

    public Map<String, Integer> getPrice() {
        return price;
    }

    public long of(Prompt prompt) {
        String model = prompt.getOptions().getModel();
        return Objects.requireNonNull(price.get(model), () -> "No price of model " + model);
    }
}
