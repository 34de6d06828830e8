package com.example.apikeys;

import io.ratelimited.spring.RateLimited;
import org.springframework.stereotype.Service;

@Service
class Orders {
    record Order(String customer, int items) {}

    @RateLimited(rate = "10/s", key = "#order.customer")
    void ofACustomer(Order order) {}

    @RateLimited(rate = "10/s", key = "{#customer, #product}")
    void ofACustomerAndProduct(String customer, String product) {}

    @RateLimited(rate = "10/s", key = "clientIp")
    void ofAnAddress() {}

    @RateLimited(rate = "50/s", key = "clientIp")
    @RateLimited(rate = "10/s", key = "@keys.owner(header('X-Api-Key'))")
    void ofTheOwnerOfAnApiKey() {}

    @RateLimited(rate = "10/s", key = "principal")
    void ofAUser() {}
}
