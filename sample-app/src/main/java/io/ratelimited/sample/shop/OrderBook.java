package io.ratelimited.sample.shop;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import org.springframework.stereotype.Component;

/** The latest orders, in memory. Thread-safe. */
@Component
class OrderBook {

    private static final int MAX_ORDERS = 1_000;

    private final Deque<Order> latest = new ArrayDeque<>();
    private int number;

    synchronized int add(Order order) {
        if (latest.size() == MAX_ORDERS) {
            latest.removeFirst();
        }
        latest.addLast(order);
        return ++number;
    }

    synchronized List<Order> all() {
        return List.copyOf(latest);
    }
}
