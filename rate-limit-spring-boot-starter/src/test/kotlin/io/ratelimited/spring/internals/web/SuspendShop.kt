package io.ratelimited.spring.internals.web

import io.ratelimited.spring.RateLimited
import org.springframework.http.HttpStatus
import org.springframework.web.bind.annotation.GetMapping
import org.springframework.web.bind.annotation.RestController
import org.springframework.web.server.ResponseStatusException

/** Calls a limited suspend function that has a fallback. */
@RestController
open class SuspendShop(private val stock: SuspendStock) {

    @GetMapping("/shop/missing/suspend")
    open suspend fun missing(): String = throw ResponseStatusException(HttpStatus.NOT_FOUND, stock.item())
}

open class SuspendStock {

    @RateLimited(name = "stock", rate = "1/d", fallback = "unknown")
    open suspend fun item(): String = "item"

    suspend fun unknown(): String = "unknown"
}
