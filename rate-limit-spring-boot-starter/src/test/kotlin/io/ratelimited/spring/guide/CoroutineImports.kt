package io.ratelimited.spring.guide

import io.ratelimited.spring.RateLimits
import io.ratelimited.spring.ReservedPermits
import kotlinx.coroutines.future.await
import org.springframework.stereotype.Service

@Service
class CoroutineImports(private val limits: RateLimits) {

    suspend fun load(tenant: String, loading: suspend () -> Long): Long {
        val reserving = limits.reserveAsync("import-rows", tenant, 100)
        try {
            val rows = reserving.await()
            return loading().also(rows::settle)
        } finally {
            reserving.thenAccept(ReservedPermits::close)
        }
    }
}
