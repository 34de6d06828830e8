package io.ratelimited.sample.demo;

import io.ratelimited.spring.RateLimited;
import java.util.concurrent.ThreadLocalRandom;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** Stands for a language model: how many tokens an answer has used is known when it is there. */
@RestController
class ModelController {

    private final LastDecision last;

    ModelController(LastDecision last) {
        this.last = last;
    }

    /** Reserves the tokens that the caller asks for, and charges those that the answer has used. */
    @GetMapping("/demo/model")
    @RateLimited(
            name = "demo-model",
            rate = "100/s",
            key = "#user",
            permits = "#maxTokens",
            charge = "#result.usage.totalTokens")
    Answer ask(@RequestParam(defaultValue = "guest") String user, @RequestParam(defaultValue = "10") int maxTokens) {
        int used = ThreadLocalRandom.current().nextInt(1, 31);
        return new Answer(user, last.outcome(), last.waitedMillis(), maxTokens, new Usage(used));
    }

    /**
     * The answer to an admitted call.
     *
     * @param outcome admitted, delayed or shadowed
     * @param waitedMillis how long the limit made the call wait
     * @param reserved tokens that the limit took before the call
     */
    record Answer(String user, String outcome, long waitedMillis, int reserved, Usage usage) {}

    /** What an answer has used: its prompt, and its text. */
    record Usage(int totalTokens) {}
}
