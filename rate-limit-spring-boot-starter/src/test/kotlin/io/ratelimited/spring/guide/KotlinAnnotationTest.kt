package io.ratelimited.spring.guide

import io.ratelimited.core.Algorithm
import io.ratelimited.core.Policy
import io.ratelimited.core.RateLimitExceededException
import io.ratelimited.core.testing.ManualTicker
import io.ratelimited.spring.Contexts
import io.ratelimited.spring.RateLimited
import io.ratelimited.spring.RateLimitOperations
import java.time.Duration
import java.util.concurrent.CompletableFuture
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.future.future
import org.assertj.core.api.Assertions.assertThat
import org.assertj.core.api.Assertions.assertThatExceptionOfType
import org.junit.jupiter.api.Test
import org.springframework.context.ApplicationContext
import org.springframework.core.annotation.AliasFor

/** An application in Kotlin states algorithm and policy as one in Java does. */
internal class KotlinAnnotationTest {

    private val ticker = ManualTicker()

    @Test
    fun theAlgorithmIsTheOneThatTheAnnotationStates() = run { context ->
        val newsletters = context.getBean(Newsletters::class.java)
        assertThat(limit(context, "Newsletters.subscribe").algorithm()).isEqualTo(Algorithm.SLIDING_LOG)
        newsletters.subscribe("ann")
        ticker.advance(Duration.ofSeconds(59))
        newsletters.subscribe("ann")
        // A token bucket would have been full again.
        assertThatExceptionOfType(RateLimitExceededException::class.java).isThrownBy { newsletters.subscribe("ann") }
        assertThat(newsletters.subscribe("bob")).isEqualTo("subscribed bob")
        ticker.advance(Duration.ofSeconds(2))
        newsletters.subscribe("ann")
        assertThatExceptionOfType(RateLimitExceededException::class.java).isThrownBy { newsletters.subscribe("ann") }
    }

    @Test
    fun thePolicyIsTheOneThatTheAnnotationStates() = run { context ->
        val newsletters = context.getBean(Newsletters::class.java)
        assertThat(send(newsletters)).isCompletedWithValue("sent to ann")
        val waiting = send(newsletters)
        val last = send(newsletters)
        assertThat(waiting).isNotDone()
        assertThat(send(newsletters)).isCompletedExceptionally()
        ticker.advance(Duration.ofSeconds(2))
        assertThat(waiting.join()).isEqualTo("sent to ann")
        assertThat(last.join()).isEqualTo("sent to ann")
    }

    @Test
    fun whatAnAnnotationOfOnesOwnLeavesOpenIsThatOfTheDefaults() =
        run("rate-limit.defaults.algorithm=gcra", "rate-limit.defaults.policy=shadow") { context ->
            assertThat(limit(context, "open").algorithm()).isEqualTo(Algorithm.GCRA)
            assertThat(policy(context, "open")).isEqualTo(Policy.SHADOW)
            assertThat(limit(context, "stated").algorithm()).isEqualTo(Algorithm.TOKEN_BUCKET)
            assertThat(policy(context, "stated")).isEqualTo(Policy.REJECT)
        }

    private fun run(vararg properties: String, test: (ApplicationContext) -> Unit) {
        Contexts.with(Contexts.runner(ticker), Newsletters::class.java, Composed::class.java)
            .withPropertyValues(*properties)
            .run { test(it) }
    }

    private fun limit(context: ApplicationContext, name: String) = context.getBean(RateLimitOperations::class.java).limit(name).limit()

    private fun policy(context: ApplicationContext, name: String) = context.getBean(RateLimitOperations::class.java).limit(name).policy()

    private fun send(newsletters: Newsletters): CompletableFuture<String> =
        CoroutineScope(Dispatchers.Unconfined).future { newsletters.send("ann") }

    @Retention(AnnotationRetention.RUNTIME)
    @RateLimited(rate = "5/s")
    annotation class Modest(
        @get:AliasFor(annotation = RateLimited::class, attribute = "name") val name: String,
        @get:AliasFor(annotation = RateLimited::class, attribute = "algorithm") val algorithm: Algorithm = Algorithm.DEFAULT,
        @get:AliasFor(annotation = RateLimited::class, attribute = "policy") val policy: Policy = Policy.DEFAULT,
    )

    internal open class Composed {

        @Modest(name = "open")
        open fun open() = "called"

        @Modest(name = "stated", algorithm = Algorithm.TOKEN_BUCKET, policy = Policy.REJECT)
        open fun stated() = "called"
    }
}
