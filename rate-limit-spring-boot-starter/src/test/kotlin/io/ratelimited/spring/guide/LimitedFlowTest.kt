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
import org.aopalliance.intercept.MethodInterceptor
import org.assertj.core.api.Assertions.assertThat
import org.junit.jupiter.api.Test
import org.springframework.aop.framework.ProxyFactory
import org.springframework.context.annotation.Bean
import org.springframework.context.annotation.Configuration
import reactor.core.publisher.Flux

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

    @Test
    fun ofASuspendedClientAllElementsAreRead() {
        Contexts.runner(ManualTicker()).withUserConfiguration(Clients::class.java).run {
            val elements = runBlocking { it.getBean(Client::class.java).rows().toList() }
            assertThat(elements).containsExactly("a", "b", "c")
            assertThat(it.getBean(RateLimits::class.java).peek("client", null).remaining()).isEqualTo(97)
        }
    }

    private fun run(test: suspend (Flows, RateLimits) -> Unit) {
        Contexts.runner(ManualTicker()).withBean(Flows::class.java).run {
            runBlocking(CoroutineName("collector")) { test(it.getBean(Flows::class.java), it.getBean(RateLimits::class.java)) }
        }
    }

    interface Client {

        @RateLimited(name = "client", rate = "100/d", charge = "#count")
        suspend fun rows(): Flow<String>
    }

    @Configuration(proxyBeanMethods = false)
    open class Clients {

        /** As HTTP interfaces are made. */
        @Bean
        open fun client(): Client = ProxyFactory.getProxy(Client::class.java, MethodInterceptor { Flux.just("a", "b", "c") })
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
