package io.ratelimited.spring

import io.ratelimited.core.RateLimitExceededException
import java.util.concurrent.CompletableFuture
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.flowOf
import kotlinx.coroutines.flow.single
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

    @RateLimited(name = "charged", permits = "10", charge = Journal.CHARGE, fallback = "instead")
    @RateLimited(name = "watched", permits = "10", charge = "#count + 1")
    @RateLimited("wide")
    open suspend fun charged(id: String): String =
        when (id) {
            "bad" -> throw IllegalStateException(id)
            "fly" -> journal.fly(id).await()
            else -> body(id)
        }

    @RateLimited("flight")
    open suspend fun inFlight(id: String): String = journal.fly(id).await()

    private suspend fun body(id: String): String {
        yield()
        return journal.body(id)
    }
}

/** The service of the facts, in functions that return a Flow. */
internal open class FlowService(private val journal: Journal) {

    @RateLimited("rejecting")
    open fun rejecting(id: String): Flow<String> = body(id)

    @RateLimited("waiting")
    open fun waiting(id: String): Flow<String> = body(id)

    @RateLimited(name = "falling", fallback = "instead")
    open fun falling(id: String): Flow<String> = body(id)

    fun instead(id: String, refusal: RateLimitExceededException): Flow<String> = flowOf("instead of $id: ${refusal.limit()}")

    @RateLimited(name = "failing", fallback = "instead")
    open fun failing(id: String): Flow<String> = if (id == "bad") throw IllegalStateException(id) else body(id)

    @RateLimited("wide")
    @RateLimited("narrow")
    open fun both(id: String): Flow<String> = body(id)

    @RateLimited(name = "charged", permits = "10", charge = Journal.CHARGE, fallback = "instead")
    @RateLimited(name = "watched", permits = "10", charge = "#count + 1")
    @RateLimited("wide")
    open fun charged(id: String): Flow<String> =
        when (id) {
            "bad" -> flow { throw IllegalStateException(id) }
            "fly" -> flow { emit(journal.fly(id).await()) }
            else -> body(id)
        }

    @RateLimited("flight")
    open fun inFlight(id: String): Flow<String> = flow { emit(journal.fly(id).await()) }

    private fun body(id: String): Flow<String> = flowOf(journal.body(id))

    @RateLimited("waiting")
    open suspend fun suspended(id: String): Flow<String> {
        yield()
        return body(id)
    }

    @RateLimited(name = "keyed", rate = "1/s", key = "{#id, #plan.length()}")
    open fun keyed(id: String, plan: String): Flow<String> = flowOf("$id of $plan")

    @RateLimited(name = "keyed", key = "{#id, #plan.length()}")
    open suspend fun keyedSuspended(id: String, plan: String): String {
        yield()
        return "$id of $plan"
    }
}

internal fun call(service: SuspendService, method: String, id: String): CompletableFuture<String> =
    CoroutineScope(Dispatchers.Unconfined).future {
        when (method) {
            "rejecting" -> service.rejecting(id)
            "waiting" -> service.waiting(id)
            "falling" -> service.falling(id)
            "failing" -> service.failing(id)
            "both" -> service.both(id)
            "charged" -> service.charged(id)
            else -> service.inFlight(id)
        }
    }

internal fun callFlow(service: FlowService, method: String, id: String): CompletableFuture<String> =
    CoroutineScope(Dispatchers.Unconfined).future {
        when (method) {
            "rejecting" -> service.rejecting(id).single()
            "waiting" -> service.waiting(id).single()
            "falling" -> service.falling(id).single()
            "failing" -> service.failing(id).single()
            "both" -> service.both(id).single()
            "charged" -> service.charged(id).single()
            "suspended" -> service.suspended(id).single()
            else -> service.inFlight(id).single()
        }
    }

internal fun callKeyed(service: FlowService, suspended: Boolean, id: String, plan: String): CompletableFuture<String> =
    CoroutineScope(Dispatchers.Unconfined).future {
        if (suspended) service.keyedSuspended(id, plan) else service.keyed(id, plan).single()
    }
