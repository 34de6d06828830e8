package io.ratelimited.sample.demo;

import io.ratelimited.core.Decision;
import io.ratelimited.spring.RateLimits;
import java.util.List;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** Shows callers what they have left. Asking takes nothing. */
@RestController
class QuotaController {

    private final RateLimits limits;

    QuotaController(RateLimits limits) {
        this.limits = limits;
    }

    /**
     * Callers of the demo say who they are. Take the authenticated caller instead, so that nobody reads what others have
     * left. The limits of the shop are left out: they count by address, customer and API key.
     */
    @GetMapping("/quota")
    List<Left> quota(@RequestParam(defaultValue = "guest") String user) {
        return limits.remaining(user).stream()
                .filter(decision -> decision.limit().startsWith("demo-"))
                .map(Left::of)
                .toList();
    }

    /**
     * The rest of a budget.
     *
     * @param remaining calls of one permit that would go now
     * @param reset seconds until that is as much as it ever is
     */
    record Left(String limit, long remaining, long reset) {

        private static Left of(Decision decision) {
            return new Left(
                    decision.limit(),
                    decision.remaining(),
                    decision.reset().plusNanos(999_999_999).toSeconds());
        }
    }
}
