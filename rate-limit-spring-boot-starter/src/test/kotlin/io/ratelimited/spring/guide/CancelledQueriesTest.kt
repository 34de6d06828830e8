package io.ratelimited.spring.guide

import io.ratelimited.core.Algorithm
import io.ratelimited.core.testing.ManualTicker
import io.ratelimited.spring.Contexts
import io.ratelimited.spring.RateLimited
import io.ratelimited.spring.RateLimits
import java.util.concurrent.CountDownLatch
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import org.assertj.core.api.Assertions.assertThat
import org.junit.jupiter.api.Test

/** What the pages say of blocking code that goes on after its call has been cancelled. */
internal class CancelledQueriesTest {

    private val started = CountDownLatch(1)
    private val responded = CountDownLatch(1)

    @Test
    fun aCancelledSuspendFunctionIsNoLongerInFlight() = cancel("suspended", remaining = 1) { it.suspended(started, responded) }

    @Test
    fun aBlockingMethodIsInFlightUntilItReturns() =
        cancel("blocking", remaining = 0) { withContext(Dispatchers.IO) { it.blocking(started, responded) } }

    private fun cancel(limit: String, remaining: Long, call: suspend (Queries) -> Unit) {
        Contexts.runner(ManualTicker()).withBean(Queries::class.java).run {
            val limits = it.getBean(RateLimits::class.java)
            val queries = it.getBean(Queries::class.java)
            val calling = CoroutineScope(Dispatchers.Unconfined).launch { call(queries) }
            started.await()
            assertThat(limits.peek(limit, null).remaining()).isZero()
            calling.cancel()
            assertThat(limits.peek(limit, null).remaining()).isEqualTo(remaining)
            responded.countDown()
            runBlocking { calling.join() }
            assertThat(limits.peek(limit, null).remaining()).isEqualTo(1)
        }
    }

    open class Queries {

        @RateLimited(name = "suspended", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        open suspend fun suspended(started: CountDownLatch, responded: CountDownLatch) =
            withContext(Dispatchers.IO) { query(started, responded) }

        @RateLimited(name = "blocking", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        open fun blocking(started: CountDownLatch, responded: CountDownLatch) = query(started, responded)

        private fun query(started: CountDownLatch, responded: CountDownLatch) {
            started.countDown()
            responded.await()
        }
    }
}
