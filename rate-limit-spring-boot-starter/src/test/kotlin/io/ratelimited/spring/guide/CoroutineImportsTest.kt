package io.ratelimited.spring.guide

import io.ratelimited.core.testing.ManualTicker
import io.ratelimited.spring.Contexts
import io.ratelimited.spring.RateLimits
import java.util.concurrent.Executor
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Job
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import org.assertj.core.api.Assertions.assertThat
import org.assertj.core.api.Assertions.assertThatExceptionOfType
import org.junit.jupiter.api.Test

/** A coroutine settles what it has reserved, and loses no permits, whenever it is cancelled. */
internal class CoroutineImportsTest {

    /** What the coroutine would run next. */
    private val tasks = LinkedBlockingQueue<Runnable>()

    @Test
    fun theCostIsSettled() = run("rate=1000/m") { imports, limits ->
        assertThat(runBlocking { imports.load("acme") { 297 } }).isEqualTo(297)
        assertThat(limits.peek("import-rows", "acme").remaining()).isEqualTo(703)
        assertThatExceptionOfType(IllegalStateException::class.java)
            .isThrownBy { runBlocking { imports.load("acme") { throw IllegalStateException() } } }
        assertThat(limits.peek("import-rows", "acme").remaining()).isEqualTo(603)
    }

    @Test
    fun aCancellationReturnsThePermits() = run(*IN_FLIGHT) { imports, limits ->
        val held = limits.reserve("import-rows", "acme", 100)
        val waiting = start(imports)
        next().run()
        waiting.cancel()
        next().run()
        held.close()
        assertThat(limits.peek("import-rows", "acme").remaining()).isEqualTo(100)
        val loading = start(imports)
        next().run()
        assertThat(limits.peek("import-rows", "acme").remaining()).isZero()
        loading.cancel()
        next().run()
        assertThat(limits.peek("import-rows", "acme").remaining()).isEqualTo(100)
    }

    @Test
    fun aCancellationBetweenTheGrantAndTheResumptionReturnsThePermits() = run(*IN_FLIGHT) { imports, limits ->
        val held = limits.reserve("import-rows", "acme", 100)
        val waiting = start(imports)
        next().run()
        held.close()
        val resumption = next()
        waiting.cancel()
        resumption.run()
        assertThat(limits.peek("import-rows", "acme").remaining()).isEqualTo(100)
    }

    private fun start(imports: CoroutineImports): Job =
        CoroutineScope(Executor { tasks.add(it) }.asCoroutineDispatcher())
            .launch { imports.load("acme") { awaitCancellation() } }

    private fun next(): Runnable = checkNotNull(tasks.poll(20, TimeUnit.SECONDS))

    private fun run(vararg limit: String, test: (CoroutineImports, RateLimits) -> Unit) {
        Contexts.runner(ManualTicker())
            .withBean(CoroutineImports::class.java)
            .withPropertyValues(*limit.map { "rate-limit.limits.import-rows.$it" }.toTypedArray())
            .run { test(it.getBean(CoroutineImports::class.java), it.getBean(RateLimits::class.java)) }
    }

    private companion object {
        val IN_FLIGHT = arrayOf("algorithm=concurrency", "max-concurrent=100", "policy=wait", "max-wait=1m")
    }
}
