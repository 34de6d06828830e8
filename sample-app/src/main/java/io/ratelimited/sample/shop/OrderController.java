package io.ratelimited.sample.shop;

import static io.ratelimited.core.Algorithm.CONCURRENCY;
import static io.ratelimited.core.Algorithm.FIXED_WINDOW;

import io.ratelimited.spring.RateLimitExempt;
import io.ratelimited.spring.RateLimited;
import java.util.List;
import java.util.Map;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

/**
 * Takes and lists orders.
 *
 * <p>The annotation on the class is one limit for all its public methods together: whatever a client does here, it does
 * at most 20 calls a second of it. A method with annotations of its own has those instead.
 */
@RestController
@RequestMapping("/orders")
@RateLimited(name = "orders", rate = "20/s", key = "clientIp")
class OrderController {

    private final Stock stock;
    private final PaymentService payments;
    private final OrderBook book;

    OrderController(Stock stock, PaymentService payments, OrderBook book) {
        this.stock = stock;
        this.payments = payments;
        this.book = book;
    }

    /** Under the limit of the class. */
    @GetMapping
    public List<Order> all() {
        return book.all();
    }

    /** Costs nothing, so it is not counted. */
    @GetMapping("/countries")
    @RateLimitExempt
    public List<String> countries() {
        return List.of("AT", "CH", "DE");
    }

    /**
     * Two limits, and both must agree: ten orders back to back from one address, and five hundred a day from one customer. A
     * refusal by one takes nothing from the other. The day begins at midnight in the zone that application.yml names.
     */
    @PostMapping
    @ResponseStatus(HttpStatus.CREATED)
    @RateLimited(name = "order-pace", rate = "5/s", burst = 10, key = "clientIp")
    @RateLimited(name = "order-quota", algorithm = FIXED_WINDOW, rate = "500/d", key = "#order.customer")
    public Map<String, Object> place(@RequestBody Order order) {
        stock.reserve(order);
        String receipt = payments.charge(order);
        return Map.of("number", book.add(order), "receipt", receipt);
    }

    /** Slow and heavy: not how often but how many at once matters, so at most two run, for all callers together. */
    @GetMapping("/export")
    @RateLimited(name = "export", algorithm = CONCURRENCY, maxConcurrent = 2)
    public String export() {
        StringBuilder csv = new StringBuilder("customer,items\n");
        book.all()
                .forEach(order -> csv.append(order.customer())
                        .append(',')
                        .append(order.items().size())
                        .append('\n'));
        return csv.toString();
    }
}
