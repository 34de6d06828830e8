package io.ratelimited.spring.guide

import io.ratelimited.core.Algorithm
import io.ratelimited.core.Policy
import io.ratelimited.spring.RateLimited
import org.springframework.stereotype.Service

@Service
open class Newsletters {

    @RateLimited(algorithm = Algorithm.SLIDING_LOG, rate = "2/m", key = "#address")
    open fun subscribe(address: String) = "subscribed $address"

    @RateLimited(rate = "1/s", policy = Policy.WAIT, maxWait = "2s")
    open suspend fun send(address: String) = "sent to $address"
}
