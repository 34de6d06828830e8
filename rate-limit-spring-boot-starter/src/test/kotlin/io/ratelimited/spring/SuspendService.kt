package io.ratelimited.spring

import io.ratelimited.core.RateLimitExceededException
import java.util.concurrent.CompletableFuture
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.future.await
import kotlinx.coroutines.future.future
import kotlinx.coroutines.yield

/** The service of the facts, in suspend functions. */
internal open class SuspendService(private val journal: Journal) {

    @RateLimited("rejecting")
    open suspend fun rejecting(id: String): String = body(id)

    @RateLimited("waiting")
    open suspend fun waiting(id: String): String = body(id)

    @RateLimited(name = "falling", fallback = "instead")
    open suspend fun falling(id: String): String = body(id)

    suspend fun instead(id: String, refusal: RateLimitExceededException): String {
        yield()
        return "instead of $id: ${refusal.limit()}"
    }

    @RateLimited(name = "failing", fallback = "instead")
    open suspend fun failing(id: String): String = if (id == "bad") throw IllegalStateException(id) else body(id)

    @RateLimited("wide")
    @RateLimited("narrow")
    open suspend fun both(id: String): String = body(id)

    @RateLimited("flight")
    open suspend fun inFlight(id: String): String = journal.fly(id).await()

    private suspend fun body(id: String): String {
        yield()
        return journal.body(id)
    }
}

/** Functions that return a Flow, suspended and not. */
internal open class FlowService(private val journal: Journal) {

    @RateLimited("rejecting")
    open fun rejecting(id: String): Flow<String> = flow { emit(journal.body(id)) }

    @RateLimited("waiting")
    open suspend fun waiting(id: String): Flow<String> {
        val body = journal.body(id)
        return flow { emit(body) }
    }

    @RateLimited("falling")
    open suspend fun keyed(id: String): String = journal.body(id)
}

internal fun call(service: SuspendService, method: String, id: String): CompletableFuture<String> =
    CoroutineScope(Dispatchers.Unconfined).future {
        when (method) {
            "rejecting" -> service.rejecting(id)
            "waiting" -> service.waiting(id)
            "falling" -> service.falling(id)
            "failing" -> service.failing(id)
            "both" -> service.both(id)
            else -> service.inFlight(id)
        }
    }

internal fun callFlow(service: FlowService, method: String, id: String): CompletableFuture<List<String>> =
    CoroutineScope(Dispatchers.Unconfined).future {
        when (method) {
            "rejecting" -> service.rejecting(id).toList()
            "waiting" -> service.waiting(id).toList()
            else -> listOf(service.keyed(id))
        }
    }
