package io.ratelimited.spring.guide

import io.ratelimited.core.RateLimitExceededException
import io.ratelimited.core.testing.ManualTicker
import io.ratelimited.spring.Contexts
import io.ratelimited.spring.InvalidRateLimitException
import io.ratelimited.spring.RateLimited
import io.ratelimited.spring.RateLimitOperations
import io.ratelimited.spring.RateLimits
import java.util.concurrent.CompletableFuture
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.future.future
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.yield
import org.aopalliance.intercept.MethodInterceptor
import org.assertj.core.api.Assertions.assertThat
import org.assertj.core.api.Assertions.assertThatExceptionOfType
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.ValueSource
import org.springframework.aop.framework.ProxyFactory
import org.springframework.boot.test.context.FilteredClassLoader
import org.springframework.context.ApplicationContext
import org.springframework.core.NestedExceptionUtils

/** Functions have the names that they have in Kotlin, whatever the compiler makes of them for the JVM. */
internal class KotlinNamesTest {

    private val ticker = ManualTicker()

    @Test
    fun limitsAreCalledAsFunctionsAre() = run(Plain::class.java) { context ->
        assertThat(context.getBean(RateLimitOperations::class.java).limits().map { it.name() })
            .containsExactlyInAnyOrder(
                "Plain.load", "Plain.hidden", "Plain.both", "Plain.later", "Plain.over(String)", "Plain.over(long)",
            )
        assertThat(limit(context, "Plain.load").place()).endsWith("Plain.load(String)")
    }

    @Test
    fun limitsOfAClientAreCalledAsItsFunctionsAre() {
        Contexts.runner(ticker)
            .withBean(Client::class.java, { ProxyFactory.getProxy(Client::class.java, MethodInterceptor { it.arguments[0] }) })
            .run { context ->
                assertThat(context.getBean(Client::class.java).load(UserId("ann"))).isEqualTo("ann")
                assertThat(context.getBean(RateLimitOperations::class.java).limits().map { it.name() })
                    .containsExactly("Client.load")
                assertThat(limit(context, "Client.load").place()).endsWith("Client.load(String)")
            }
    }

    @Test
    fun aLimitIsSetUnderTheNameOfItsFunction() =
        run(Plain::class.java, "rate-limit.limits[Plain.load].rate=7/d", "rate-limit.limits[Plain.hidden].rate=8/d") {
            assertThat(limit(it, "Plain.load").limit().rate()).hasToString("7/d")
            assertThat(limit(it, "Plain.hidden").limit().rate()).hasToString("8/d")
        }

    @Test
    fun aValueIsAKey() = run(Plain::class.java) { context ->
        val plain = context.getBean(Plain::class.java)
        assertThat(plain.load(UserId("ann"))).isEqualTo("loaded ann")
        assertThatExceptionOfType(RateLimitExceededException::class.java).isThrownBy { plain.load(UserId("ann")) }
        assertThat(plain.load(UserId("bob"))).isEqualTo("loaded bob")
    }

    @Test
    fun aFallbackIsFoundByItsNameInKotlin() = run(Falling::class.java) { context ->
        val falling = context.getBean(Falling::class.java)
        falling.value(UserId("ann"))
        assertThat(falling.value(UserId("ann"))).isEqualTo("instead of ann")
        falling.hidden("ann")
        assertThat(falling.hidden("ann")).isEqualTo("inner of ann")
        falling.refused(UserId("ann"))
        assertThat(falling.refused(UserId("ann"))).isEqualTo("ann: refused")
        assertThat(send(falling)).isCompletedWithValue("sent to ann")
        assertThat(send(falling)).isCompletedWithValue("later of ann")
    }

    /** Kotlin passes the value itself. */
    @ParameterizedTest
    @ValueSource(booleans = [true, false])
    fun aPropertyOfAValueClassIsRefusedAtTheStart(reflection: Boolean) {
        val runner = Contexts.runner(ticker).withBean(Boxed::class.java)
        (if (reflection) runner else runner.withClassLoader(FilteredClassLoader("kotlin.reflect.full", "kotlin.reflect.jvm")))
            .run { context ->
                assertThat(context).hasFailed()
                val failure = context.startupFailure
                assertThat(failure)
                    .isInstanceOf(InvalidRateLimitException::class.java)
                    .hasMessageContaining("Boxed.read(String)")
                    .hasMessageContaining("value of java.lang.String")
                    .hasMessageContaining("#id.value")
                    .hasMessageContaining("value class")
            }
    }

    @Test
    fun aPropertyOfTheTypeOfAValueClassIsRefusedAtTheStart() {
        Contexts.runner(ticker).withBean(Sold::class.java).run { context ->
            assertThat(context.startupFailure)
                .isInstanceOf(InvalidRateLimitException::class.java)
                .hasMessageContaining("reads id of " + Order::class.java.name)
                .hasMessageContaining("returns a value class: declare a property of another type that returns its value")
        }
    }

    @Test
    fun anObjectOfAValueClassHasItsProperty() = run(Objects::class.java) { context ->
        val objects = context.getBean(Objects::class.java)
        val limits = context.getBean(RateLimits::class.java)
        objects.orNone(Number(1))
        assertThat(limits.peek("or-none", 1).remaining()).isZero()
        assertThat(runBlocking { objects.suspended() }).isEqualTo(Number(3))
        assertThat(limits.peek("suspended", null).remaining()).isEqualTo(7)
        assertThat(objects.plain()).isEqualTo(Number(3))
        assertThat(limits.peek("plain", null).remaining()).isEqualTo(7)
        objects.declared(Order(UserId("ann")))
        assertThat(limits.peek("declared", "ann").remaining()).isZero()
    }

    @Test
    fun aPropertyThatIsNotPublicIsRefusedAtTheStart() {
        Contexts.runner(ticker).withBean(Internal::class.java).run { context ->
            assertThat(context).hasFailed()
            assertThat(context.startupFailure)
                .isInstanceOf(InvalidRateLimitException::class.java)
                .hasMessageContaining("secret of " + Account::class.java.name)
        }
    }

    @Test
    fun aMissingFallbackIsToldByItsName() {
        Contexts.runner(ticker).withBean(Lost::class.java).run { context ->
            assertThat(NestedExceptionUtils.getMostSpecificCause(context.startupFailure!!))
                .hasMessageContaining("Lost.load(String)")
                .hasMessageContaining("no fallback method nowhere(java.lang.String)")
                .satisfies({ assertThat((it as InvalidRateLimitException).remedy()).contains("parameters of load,") })
        }
    }

    @Test
    fun functionsWithTheSameDefaultNameAreRefusedAtTheStart() {
        Contexts.runner(ticker).withBean(Finder::class.java).run { context ->
            assertThat(NestedExceptionUtils.getMostSpecificCause(context.startupFailure!!))
                .isInstanceOf(InvalidRateLimitException::class.java)
                .hasMessageContaining("'Finder.find(String)'")
                .hasMessageContaining("its default name is also that of")
                .hasMessageMatching("(?s).*Finder\\.(find-[\\w-]{7}\\(java.lang.String\\)).*Finder\\.(?!\\1)find-.*")
        }
    }

    private fun run(bean: Class<*>, vararg properties: String, test: (ApplicationContext) -> Unit) {
        Contexts.runner(ticker).withBean(bean).withPropertyValues(*properties).run {
            assertThat(it).hasNotFailed()
            test(it)
        }
    }

    private fun limit(context: ApplicationContext, name: String) = context.getBean(RateLimitOperations::class.java).limit(name)

    private fun send(falling: Falling): CompletableFuture<String> =
        CoroutineScope(Dispatchers.Unconfined).future { falling.send(UserId("ann")) }

    @JvmInline
    value class UserId(val value: String)

    @JvmInline
    value class Number(val n: Int)

    data class Order(val id: UserId) {
        val idText get() = id.value
    }

    class Account(val name: String, internal val secret: String)

    interface Client {

        @RateLimited(rate = "1/d")
        fun load(id: UserId): String
    }

    open class Plain {

        @RateLimited(rate = "1/d", key = "#id")
        open fun load(id: UserId) = "loaded ${id.value}"

        @RateLimited(rate = "1/d")
        internal open fun hidden() = "hidden"

        @RateLimited(rate = "1/d")
        internal open fun both(id: UserId) = "both $id"

        @RateLimited(rate = "1/d", key = "#id")
        open suspend fun later(id: UserId) = "later $id"

        @RateLimited(rate = "1/d")
        open fun over(id: UserId) = "over $id"

        @RateLimited(rate = "1/d")
        open fun over(id: Long) = "over $id"
    }

    open class Falling {

        @RateLimited(rate = "1/d", fallback = "instead")
        open fun value(id: UserId) = "loaded ${id.value}"

        fun instead(id: UserId) = "instead of ${id.value}"

        @RateLimited(rate = "1/d", fallback = "inner")
        open fun hidden(id: String) = "loaded $id"

        internal fun inner(id: String) = "inner of $id"

        @RateLimited(rate = "1/d", fallback = "told")
        open fun refused(id: UserId) = "loaded ${id.value}"

        @Suppress("UNUSED_PARAMETER")
        fun told(id: UserId, refusal: RateLimitExceededException) = "${id.value}: refused"

        @RateLimited(rate = "1/d", fallback = "later")
        open suspend fun send(id: UserId) = "sent to ${id.value}"

        suspend fun later(id: UserId) = "later of ${id.value}"
    }

    open class Boxed {

        @RateLimited(rate = "1/d", key = "#id.value")
        open fun read(id: UserId) = id.value
    }

    open class Sold {

        @RateLimited(rate = "1/d", key = "#order.id")
        open fun sell(order: Order) = order.idText
    }

    open class Objects {

        @RateLimited(name = "or-none", rate = "1/d", key = "#number?.n")
        open fun orNone(number: Number?) = number

        @RateLimited(name = "suspended", rate = "10/d", charge = "#result.n")
        open suspend fun suspended(): Number {
            yield()
            return Number(3)
        }

        @RateLimited(name = "plain", rate = "10/d", charge = "#result")
        open fun plain() = Number(3)

        @RateLimited(name = "declared", rate = "1/d", key = "#order.idText")
        open fun declared(order: Order) = order.idText
    }

    open class Internal {

        @RateLimited(rate = "1/d", key = "#account.secret")
        open fun read(account: Account) = account.name
    }

    @JvmInline
    value class OrderId(val value: String)

    open class Finder {

        @RateLimited(rate = "1/d")
        open fun find(id: UserId) = "user ${id.value}"

        @RateLimited(rate = "1/d")
        open fun find(id: OrderId) = "order ${id.value}"
    }

    open class Lost {

        @RateLimited(rate = "1/d", fallback = "nowhere")
        open fun load(id: UserId) = id.value
    }
}
