package io.ratelimited.spring.guide

import io.ratelimited.core.testing.ManualTicker
import io.ratelimited.spring.Contexts
import io.ratelimited.spring.RateLimited
import io.ratelimited.spring.RateLimits
import kotlin.coroutines.ContinuationInterceptor
import kotlinx.coroutines.CoroutineName
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.buffer
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.flowOf
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.yield
import org.assertj.core.api.Assertions.assertThat
import org.junit.jupiter.api.Test

/** What the page on the annotation says of a limited Flow. */
internal class LimitedFlowTest {

    @Test
    fun aNullEndsIt() = run { flows, _ -> assertThat(flows.nulls().toList()).containsExactly("a") }

    @Test
    fun itHasNotTheContextOfItsCollector() = run { flows, _ ->
        assertThat(flows.contexts().toList()).containsExactly("none", Dispatchers.Unconfined)
        assertThat(flows.ofSuspended().toList()).containsExactly("collector", "none")
    }

    @Test
    fun itReadsAheadUnlessItHasNoBuffer() = run { flows, limits ->
        assertThat(flows.rows().take(2).toList()).hasSize(2)
        assertThat(limits.peek("rows", null).remaining()).isEqualTo(950)
        assertThat(flows.suspendedRows().take(2).toList()).hasSize(2)
        assertThat(limits.peek("rows", null).remaining()).isEqualTo(900)
        assertThat(flows.rows().buffer(0).take(2).toList()).hasSize(2)
        assertThat(limits.peek("rows", null).remaining()).isEqualTo(898)
        assertThat(flows.suspendedRows().buffer(0).take(2).toList()).hasSize(2)
        assertThat(limits.peek("rows", null).remaining()).isEqualTo(896)
    }

    private fun run(test: suspend (Flows, RateLimits) -> Unit) {
        Contexts.runner(ManualTicker()).withBean(Flows::class.java).run {
            runBlocking(CoroutineName("collector")) { test(it.getBean(Flows::class.java), it.getBean(RateLimits::class.java)) }
        }
    }

    open class Flows {

        @RateLimited(name = "nulls", rate = "1/d")
        open fun nulls(): Flow<String?> = flowOf("a", null, "b")

        @RateLimited(name = "contexts", rate = "1/d")
        open fun contexts(): Flow<Any?> = flow {
            emit(currentCoroutineContext()[CoroutineName]?.name ?: "none")
            emit(currentCoroutineContext()[ContinuationInterceptor])
        }

        @RateLimited(name = "suspended", rate = "1/d")
        open suspend fun ofSuspended(): Flow<String?> {
            val own = currentCoroutineContext()[CoroutineName]?.name
            yield()
            return flow {
                emit(own)
                emit(currentCoroutineContext()[CoroutineName]?.name ?: "none")
            }
        }

        @RateLimited(name = "rows", rate = "1000/d", charge = "#count")
        open fun rows(): Flow<Int> = elements()

        @RateLimited(name = "rows", charge = "#count")
        open suspend fun suspendedRows(): Flow<Int> {
            yield()
            return elements()
        }

        private fun elements() = flow { repeat(50) { emit(it) } }
    }
}
