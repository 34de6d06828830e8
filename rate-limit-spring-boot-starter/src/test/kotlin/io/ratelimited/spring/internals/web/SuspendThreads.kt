package io.ratelimited.spring.internals.web

import io.ratelimited.spring.RateLimited
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import org.springframework.stereotype.Service
import org.springframework.web.bind.annotation.GetMapping
import org.springframework.web.bind.annotation.RestController

/** Handlers in Kotlin that answer with the thread on which their body runs. */
@RestController
open class SuspendThreads(private val service: SuspendThreadsService) {

    @GetMapping("/suspend") @RateLimited("often") open suspend fun suspended(): String = thread()

    @GetMapping("/suspend/service") open suspend fun ofService(): String = service.suspended()

    @GetMapping("/flow") @RateLimited("often") open fun flowing(): Flow<String> = flow { emit(thread()) }
}

@Service
open class SuspendThreadsService {

    @RateLimited("often") open suspend fun suspended(): String = thread()
}

private fun thread(): String = Thread.currentThread().name
