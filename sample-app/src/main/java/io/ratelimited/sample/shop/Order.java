package io.ratelimited.sample.shop;

import java.util.List;

/**
 * What a customer wants.
 *
 * @param items ids of products, at least one
 */
record Order(String customer, List<String> items) {

    private static final int MOST_ITEMS = 100;

    Order {
        if (items == null || items.isEmpty()) {
            throw new IllegalArgumentException("an order needs at least one item");
        }
        // Stock is reserved for as many permits as the order has items: one order must not use up those of everybody.
        if (items.size() > MOST_ITEMS) {
            throw new IllegalArgumentException("an order has at most " + MOST_ITEMS + " items");
        }
    }
}
