package io.ratelimited.spring.guide

import io.ratelimited.core.Policy
import io.ratelimited.core.RateLimitExceededException
import io.ratelimited.core.testing.ManualTicker
import io.ratelimited.spring.Contexts
import io.ratelimited.spring.RateLimited
import io.ratelimited.spring.RateLimits
import io.ratelimited.spring.internals.call.EventLoops
import java.util.concurrent.CompletableFuture
import java.util.concurrent.TimeUnit
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.TimeoutCancellationException
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.delay
import kotlinx.coroutines.future.future
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeout
import org.assertj.core.api.Assertions.assertThat
import org.assertj.core.api.Assertions.assertThatThrownBy
import org.junit.jupiter.api.Test
import org.springframework.context.ApplicationContext

/** Calls in coroutines: who ends them, and the threads that they block. */
internal class KotlinCoroutinesTest {

    private val ticker = ManualTicker()

    @Test
    fun aTimeoutOfTheFunctionItselfIsNoCancellationByItsCaller() = run { context ->
        assertThatThrownBy { result(context) { it.ownTimeout() } }.hasCauseInstanceOf(TimeoutCancellationException::class.java)
        assertThat(remaining(context, "aware")).isEqualTo(99)
        assertThat(remaining(context, "unaware")).isEqualTo(100)
    }

    @Test
    fun aTimeoutOfTheCallerIsACancellation() = run { context ->
        assertThatThrownBy { result(context) { withTimeout(1) { it.endless() } } }
            .hasCauseInstanceOf(TimeoutCancellationException::class.java)
        assertThat(remaining(context, "aware")).isEqualTo(93)
        assertThat(remaining(context, "unaware")).isEqualTo(90)
    }

    @Test
    fun aFutureThatEndsByATimeoutOfItsMethodWasNotCancelledByItsCaller() = run { context ->
        assertThatThrownBy { context.getBean(Calls::class.java).future().get(20, TimeUnit.SECONDS) }
            .isInstanceOf(Exception::class.java)
        assertThat(remaining(context, "aware")).isEqualTo(99)
    }

    @Test
    fun aCallThatWouldBlockTheTimerOfCoroutinesIsRejected() = run { context ->
        assertThatThrownBy {
            result(context) {
                goToTimer()
                it.blocking()
                it.blocking()
            }
        }.hasCauseInstanceOf(RateLimitExceededException::class.java)
    }

    @Test
    fun theTimerOfCoroutinesMustNotSleepAndWorkersMay() {
        val (timer, io, worker) = CoroutineScope(Dispatchers.Unconfined).future {
            goToTimer()
            listOf(EventLoops.isCurrentThread()) +
                withContext(Dispatchers.IO) { EventLoops.isCurrentThread() } +
                withContext(Dispatchers.Default) { EventLoops.isCurrentThread() }
        }.get(20, TimeUnit.SECONDS)
        assertThat(timer).isTrue()
        assertThat(io).isFalse()
        assertThat(worker).isFalse()
    }

    /** A delay that is over before the coroutine suspends stays on its thread. */
    private suspend fun goToTimer() {
        while (!Thread.currentThread().name.startsWith(TIMER)) {
            delay(10)
        }
    }

    private fun run(test: (ApplicationContext) -> Unit) {
        Contexts.with(Contexts.runner(ticker), Calls::class.java).run { test(it) }
    }

    private fun result(context: ApplicationContext, call: suspend (Calls) -> String): String {
        val calls = context.getBean(Calls::class.java)
        val future: CompletableFuture<String> = CoroutineScope(Dispatchers.Unconfined).future { call(calls) }
        return future.get(20, TimeUnit.SECONDS)
    }

    private fun remaining(context: ApplicationContext, limit: String) =
        context.getBean(RateLimits::class.java).peek(limit, null).remaining()

    internal open class Calls {

        @RateLimited(name = "aware", rate = "100/h", permits = "10", charge = AWARE)
        @RateLimited(name = "unaware", rate = "100/h", permits = "10", charge = UNAWARE)
        open suspend fun ownTimeout(): String = withTimeout(1) { awaitCancellation() }

        @RateLimited(name = "aware", permits = "10", charge = AWARE)
        @RateLimited(name = "unaware", permits = "10", charge = UNAWARE)
        open suspend fun endless(): String = awaitCancellation()

        @RateLimited(name = "aware", permits = "10", charge = AWARE)
        open fun future(): CompletableFuture<String> =
            CoroutineScope(Dispatchers.Unconfined).future { withTimeout(1) { awaitCancellation() } }

        @RateLimited(rate = "1/h", policy = Policy.WAIT, maxWait = "2h")
        open fun blocking(): String = "called"
    }

    private companion object {
        const val TIMER = "kotlinx.coroutines.DefaultExecutor"
        const val AWARE = "#cancelled ? 7 : 1"
        const val UNAWARE = "#error == null ? 1 : 0"
    }
}
