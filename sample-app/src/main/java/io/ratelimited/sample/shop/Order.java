package io.ratelimited.sample.shop;

import java.util.List;

/**
 * What a customer wants.
 *
 * @param items ids of products, at least one
 */
record Order(String customer, List<String> items) {

    Order {
        if (items == null || items.isEmpty()) {
            throw new IllegalArgumentException("an order needs at least one item");
        }
    }
}
