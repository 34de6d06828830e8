package io.ratelimited.spring.internals.overload

import io.ratelimited.spring.RateLimited
import java.util.concurrent.CompletableFuture
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.future.await
import kotlinx.coroutines.future.future
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.withTimeoutOrNull

/** Suspend functions and flows under a limit of calls in flight. */
internal open class SuspendedCalls {

    @RateLimited(name = "calls", priority = "#kind")
    open suspend fun call(kind: String?, body: CompletableFuture<String>): String = body.await()

    @RateLimited(name = "calls", priority = "#kind")
    open fun flow(kind: String?, body: CompletableFuture<String>): Flow<String> = flow {
        emit("first")
        emit(body.await())
    }

    @RateLimited(name = "calls", priority = "#kind")
    open suspend fun suspendedFlow(kind: String?, body: CompletableFuture<String>): Flow<String> {
        val first = CompletableFuture.completedFuture("first").await()
        return flow {
            emit(first)
            emit(body.await())
        }
    }

    @RateLimited("calls")
    open suspend fun hurried(body: CompletableFuture<String>): String = withTimeout(1.milliseconds) { body.await() }

    @RateLimited("calls")
    open suspend fun orNothing(body: CompletableFuture<String>): String? =
        withTimeoutOrNull(1.milliseconds) { body.await() }
}

/** Calls a function; cancelling the future cancels the coroutine. */
internal fun call(
    calls: SuspendedCalls,
    function: String,
    kind: String?,
    body: CompletableFuture<String>,
): CompletableFuture<String?> =
    CoroutineScope(Dispatchers.Unconfined).future {
        when (function) {
            "call" -> calls.call(kind, body)
            "flow" -> calls.flow(kind, body).toList().last()
            "suspendedFlow" -> calls.suspendedFlow(kind, body).toList().last()
            "hurried" -> calls.hurried(body)
            "orNothing" -> calls.orNothing(body)
            else -> throw IllegalArgumentException(function)
        }
    }
