package io.ratelimited.sample.shop;

import java.util.List;
import java.util.Locale;
import org.springframework.stereotype.Component;

/** All products. */
@Component
class Catalogue {

    private final List<Product> products = List.of(
            new Product("tea", "Green tea", 590),
            new Product("kettle", "Tea kettle", 3990),
            new Product("cup", "Cup", 850),
            new Product("pot", "Cast iron pot", 5400));

    List<Product> find(String words) {
        String wanted = words.toLowerCase(Locale.ROOT);
        return products.stream()
                .filter(product -> product.name().toLowerCase(Locale.ROOT).contains(wanted))
                .toList();
    }

    List<Product> bestsellers() {
        return products.subList(0, 2);
    }
}
