package io.ratelimited.spring.guide

import io.ratelimited.core.RateLimitExceededException
import io.ratelimited.spring.Contexts
import io.ratelimited.spring.InvalidRateLimitException
import io.ratelimited.spring.RateLimited
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flowOf
import org.assertj.core.api.Assertions.assertThat
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.ValueSource
import org.springframework.boot.test.context.assertj.AssertableApplicationContext
import org.springframework.core.NestedExceptionUtils
import reactor.core.publisher.Mono

/** A suspend function may fall back on functions whose result is one of its own. */
internal class KotlinFallbacksTest {

    @ParameterizedTest
    @ValueSource(classes = [Number::class, Plain::class, Nothing::class, Elements::class, Bare::class])
    fun anotherResultFailsStartup(type: Class<*>) = run(type) { context ->
        assertThat(context).hasFailed()
        assertThat(NestedExceptionUtils.getMostSpecificCause(context.startupFailure!!))
            .isInstanceOf(InvalidRateLimitException::class.java)
            .hasMessageContaining("fallback method fb returns")
            .hasMessageContaining("not java.")
    }

    @ParameterizedTest
    @ValueSource(classes = [Same::class, Narrower::class, OfPrimitive::class, Later::class, Throwing::class,
        ThrowingPlain::class, Values::class, Units::class, UnitOfPlain::class, Streams::class, Open::class])
    fun theSameResultStarts(type: Class<*>) = run(type) { context -> assertThat(context).hasNotFailed() }

    private fun run(type: Class<*>, test: (AssertableApplicationContext) -> Unit) {
        Contexts.with(Contexts.runner(), type).run { test(it) }
    }

    open class Number {
        @RateLimited(rate = "1/h", fallback = "fb")
        open suspend fun x(a: String) = a
        suspend fun fb(a: String) = a.length
    }

    open class Plain {
        @RateLimited(rate = "1/h", fallback = "fb")
        open suspend fun x(a: String) = a
        fun fb(a: String) = a.length
    }

    open class Nothing {
        @RateLimited(rate = "1/h", fallback = "fb")
        open suspend fun x(a: String) = a
        @Suppress("UNUSED_PARAMETER")
        fun fb(a: String) = Unit
    }

    open class Elements {
        @RateLimited(rate = "1/h", fallback = "fb")
        open suspend fun x(a: String) = listOf(a)
        suspend fun fb(a: String) = listOf(a.length)
    }

    open class Bare {
        @RateLimited(rate = "1/h", fallback = "fb")
        open suspend fun x(a: String) = a
        suspend fun fb(a: String): Mono<String> = Mono.just(a)
    }

    open class Same {
        @RateLimited(rate = "1/h", fallback = "fb")
        open suspend fun x(a: String): String? = a
        suspend fun fb(a: String, refusal: RateLimitExceededException) = a + refusal
    }

    open class Narrower {
        @RateLimited(rate = "1/h", fallback = "fb")
        open suspend fun x(a: String): CharSequence = a
        suspend fun fb(a: String) = a
    }

    open class OfPrimitive {
        @RateLimited(rate = "1/h", fallback = "fb")
        open suspend fun x(a: String) = a.length
        fun fb(a: String) = a.length
    }

    open class Later {
        @RateLimited(rate = "1/h", fallback = "fb")
        open suspend fun x(a: String) = a
        fun fb(a: String): Mono<String> = Mono.just(a)
    }

    open class Throwing {
        @RateLimited(rate = "1/h", fallback = "fb")
        open suspend fun x(a: String) = a
        suspend fun fb(a: String): kotlin.Nothing = throw IllegalStateException(a)
    }

    open class ThrowingPlain {
        @RateLimited(rate = "1/h", fallback = "fb")
        open suspend fun x(a: String) = a
        fun fb(a: String): kotlin.Nothing = throw IllegalStateException(a)
    }

    @JvmInline
    value class UserId(val value: String)

    open class Values {
        @RateLimited(rate = "1/h", fallback = "fb")
        open suspend fun x(a: String) = UserId(a)
        suspend fun fb(a: String) = UserId(a)
    }

    open class Units {
        @RateLimited(rate = "1/h", fallback = "fb")
        open suspend fun x(a: String) = println(a)
        suspend fun fb(a: String) = println(a)
    }

    open class UnitOfPlain {
        @RateLimited(rate = "1/h", fallback = "fb")
        open suspend fun x(a: String) = println(a)
        fun fb(a: String) = println(a)
    }

    open class Streams {
        @RateLimited(rate = "1/h", fallback = "fb")
        open suspend fun x(a: String): Flow<String> = flowOf(a)
        suspend fun fb(a: String): Flow<String> = flowOf(a)
    }

    open class Open {
        @RateLimited(rate = "1/h", fallback = "fb")
        open suspend fun <T : Any> x(a: T): T = a
        suspend fun <T : Any> fb(a: T): T = a
    }
}
