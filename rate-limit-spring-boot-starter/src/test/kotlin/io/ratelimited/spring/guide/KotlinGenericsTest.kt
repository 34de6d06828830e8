package io.ratelimited.spring.guide

import io.ratelimited.core.RateLimitExceededException
import io.ratelimited.core.testing.ManualTicker
import io.ratelimited.spring.Contexts
import io.ratelimited.spring.RateLimitOperations
import io.ratelimited.spring.RateLimited
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CompletionException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.future.future
import kotlinx.coroutines.yield
import org.assertj.core.api.Assertions.assertThat
import org.assertj.core.api.Assertions.assertThatExceptionOfType
import org.assertj.core.api.Assertions.catchThrowable
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.ValueSource
import org.springframework.aop.AopInvocationException
import org.springframework.context.ApplicationContext

/** Kotlin compiles a function of a generic type to other parameters if the type argument is a number or a value class. */
internal class KotlinGenericsTest {

    private val ticker = ManualTicker()

    @ParameterizedTest
    @ValueSource(classes = [LongStore::class, IntStore::class, TextStore::class, UserStore::class, UIntStore::class,
        Inheriting::class, Overloading::class, LongBased::class, UserBased::class])
    fun aFunctionIsLimitedByItsClassAndByItsInterface(type: Class<out Store<*>>) = run(type) { context ->
        val store = context.getBean(type)
        @Suppress("UNCHECKED_CAST") val generic = store as Store<Any>
        assertThat(plain(store, 1)).isEqualTo("1")
        assertRefused { generic.plain(id(type, 1)) }
        assertThat(generic.plain(id(type, 2))).isEqualTo("2")
        assertRefused { plain(store, 2) }
        assertThat(names(context)).containsExactlyInAnyOrder("plain", "later")
    }

    @ParameterizedTest
    @ValueSource(classes = [LongStore::class, IntStore::class, TextStore::class, Inheriting::class, UserBased::class])
    fun aSuspendFunctionIsLimitedByItsClassAndByItsInterface(type: Class<out Store<*>>) = run(type) { context ->
        val store = context.getBean(type)
        @Suppress("UNCHECKED_CAST") val generic = store as Store<Any>
        assertThat(await { later(store, 1) }).isEqualTo("1")
        assertRefused { await { generic.later(id(type, 1)) } }
        assertThat(await { generic.later(id(type, 2)) }).isEqualTo("2")
        assertRefused { await { later(store, 2) } }
    }

    /** Spring's proxies find no function of Kotlin behind these bridges. */
    @ParameterizedTest
    @ValueSource(classes = [UserStore::class, UIntStore::class, Overloading::class, LongBased::class])
    fun aSuspendFunctionIsLimitedByItsClass(type: Class<out Store<*>>) = run(type) { context ->
        val store = context.getBean(type)
        @Suppress("UNCHECKED_CAST") val generic = store as Store<Any>
        assertThat(await { later(store, 1) }).isEqualTo("1")
        assertRefused { await { later(store, 1) } }
        assertRefused { await { generic.later(id(type, 1)) } }
        assertThatExceptionOfType(AopInvocationException::class.java)
            .isThrownBy { await { generic.later(id(type, 2)) } }
    }

    @Test
    fun aFinalFunctionIsLimitedByItsInterface() =
        run(Finals::class.java, "spring.aop.proxy-target-class=false") { context ->
            @Suppress("UNCHECKED_CAST") val store = context.getBean(Store::class.java) as Store<Long>
            assertThat(store.plain(1)).isEqualTo("1")
            assertRefused { store.plain(1) }
            assertThat(await { store.later(1) }).isEqualTo("1")
            assertRefused { await { store.later(1) } }
        }

    @Test
    fun anOverloadIsNotLimited() = run(UserOverloading::class.java) { context ->
        val store = context.getBean(UserOverloading::class.java)
        repeat(2) { assertThat(store.plain("x")).isEqualTo("overload x") }
        assertThat(store.plain(UserId("x"))).isEqualTo("x")
        assertRefused { store.plain(UserId("x")) }
        assertThat(names(context)).containsExactlyInAnyOrder("plain", "later")
    }

    @Test
    fun aResultOfAValueClassIsThatOfTheFunction() = run(Users::class.java) { context ->
        val source: Source<UserId> = context.getBean(Users::class.java)
        assertThat(source.next()).isEqualTo(UserId("ann"))
        assertRefused { context.getBean(Users::class.java).next() }
    }

    /** The function of the class has the annotation itself. */
    @Test
    fun anAnnotatedFunctionIsLimitedByItsInterface() = run(Annotated::class.java) { context ->
        val bean = context.getBean(Annotated::class.java)
        val open: Open<UserId> = bean
        assertThat(open.load(UserId("ann"), "x")).isEqualTo("ann x")
        assertRefused { bean.load(UserId("ann"), "x") }
        assertThat(bean.load(UserId("bob"), "x")).isEqualTo("bob x")
        assertRefused { open.load(UserId("bob"), "x") }
        assertThat(names(context)).containsExactly("Annotated.load")
    }

    @Test
    fun aFallbackTakesTheArgumentsOfTheFunction() = run(Falling::class.java) { context ->
        val bean = context.getBean(Falling::class.java)
        val falling: Fallback<UserId> = bean
        assertThat(falling.load(UserId("ann"))).isEqualTo("loaded ann")
        assertThat(falling.load(UserId("bob"))).isEqualTo("instead of bob")
        assertThat(bean.load(UserId("bob"))).isEqualTo("instead of bob")
    }

    /** The function of the generic class itself has the object, which has no text that identifies it. */
    @Test
    fun anObjectThatIsNoKeyFailsStartup() {
        Contexts.with(Contexts.runner(ticker), Inherits::class.java).run {
            assertThat(it).hasFailed()
            assertThat(it.startupFailure).hasMessageContaining("is not a key, but an object of class " + UserId::class.java.name)
        }
    }

    /** A function with another parameter overrides nothing. */
    @Test
    fun anotherFunctionIsNotLimited() = run(Other::class.java) { context ->
        val bean = context.getBean(Other::class.java)
        repeat(3) {
            assertThat(bean.find(1)).isEqualTo("long")
            assertThat(bean.load("x")).isEqualTo("text")
        }
        bean.find(null)
        assertRefused { bean.find(null) }
        bean.load(UserId("x"))
        assertRefused { bean.load(UserId("x")) }
    }

    private fun run(bean: Class<*>, vararg properties: String, test: (ApplicationContext) -> Unit) {
        Contexts.with(Contexts.runner(ticker), bean).withPropertyValues(*properties).run {
            assertThat(it).hasNotFailed()
            test(it)
        }
    }

    private fun assertRefused(call: () -> Any?) {
        assertThatExceptionOfType(RateLimitExceededException::class.java).isThrownBy { call() }
    }

    private fun names(context: ApplicationContext) =
        context.getBean(RateLimitOperations::class.java).limits().map { it.name() }

    private fun id(type: Class<*>, id: Int): Any = when {
        type == TextStore::class.java -> id.toString()
        type == IntStore::class.java -> id
        type == UIntStore::class.java -> id.toUInt()
        type.simpleName.startsWith("User") -> UserId(id.toString())
        else -> id.toLong()
    }

    private fun plain(store: Store<*>, id: Int) = when (store) {
        is LongStore -> store.plain(id.toLong())
        is IntStore -> store.plain(id)
        is TextStore -> store.plain(id.toString())
        is UIntStore -> store.plain(id.toUInt())
        is UserStore -> store.plain(UserId(id.toString()))
        is Overloading -> store.plain(id.toLong())
        is LongBased -> store.plain(id.toLong())
        is UserBased -> store.plain(UserId(id.toString()))
        else -> throw IllegalArgumentException(store.toString())
    }

    private suspend fun later(store: Store<*>, id: Int) = when (store) {
        is LongStore -> store.later(id.toLong())
        is IntStore -> store.later(id)
        is TextStore -> store.later(id.toString())
        is UIntStore -> store.later(id.toUInt())
        is UserStore -> store.later(UserId(id.toString()))
        is Overloading -> store.later(id.toLong())
        is LongBased -> store.later(id.toLong())
        is UserBased -> store.later(UserId(id.toString()))
        else -> throw IllegalArgumentException(store.toString())
    }

    private fun await(call: suspend () -> String): String {
        val future: CompletableFuture<String> = CoroutineScope(Dispatchers.Unconfined).future { call() }
        val failure = catchThrowable { future.join() }
        if (failure != null) {
            throw if (failure is CompletionException) failure.cause!! else failure
        }
        return future.join()
    }

    @JvmInline
    value class UserId(val value: String)

    interface Store<ID : Any> {

        @RateLimited(name = "plain", rate = "1/d", key = "#id")
        fun plain(id: ID): String

        @RateLimited(name = "later", rate = "1/d", key = "#id")
        suspend fun later(id: ID): String
    }

    open class LongStore : Store<Long> {
        override fun plain(id: Long) = "$id"
        override suspend fun later(id: Long): String {
            yield()
            return "$id"
        }
    }

    open class IntStore : Store<Int> {
        override fun plain(id: Int) = "$id"
        override suspend fun later(id: Int) = "$id"
    }

    open class TextStore : Store<String> {
        override fun plain(id: String) = id
        override suspend fun later(id: String) = id
    }

    open class UserStore : Store<UserId> {
        override fun plain(id: UserId) = id.value
        override suspend fun later(id: UserId): String {
            yield()
            return id.value
        }
    }

    open class UIntStore : Store<UInt> {
        override fun plain(id: UInt) = "$id"
        override suspend fun later(id: UInt) = "$id"
    }

    open class Inheriting : LongStore()

    class Finals : Store<Long> {
        override fun plain(id: Long) = "$id"
        override suspend fun later(id: Long) = "$id"
    }

    open class Overloading : Store<Long> {
        override fun plain(id: Long) = "$id"
        open fun plain(id: String) = id
        override suspend fun later(id: Long) = "$id"
        open suspend fun later(id: String) = id
    }

    open class UserOverloading : Store<UserId> {
        override fun plain(id: UserId) = id.value
        open fun plain(id: String) = "overload $id"
        override suspend fun later(id: UserId) = id.value
    }

    abstract class Base<ID : Any> : Store<ID> {

        @RateLimited(name = "plain", rate = "1/d", key = "#id")
        abstract override fun plain(id: ID): String

        @RateLimited(name = "later", rate = "1/d", key = "#id")
        override suspend fun later(id: ID) = "$id"
    }

    open class LongBased : Base<Long>() {
        override fun plain(id: Long) = "$id"
        override suspend fun later(id: Long) = super.later(id)
    }

    open class UserBased : Base<UserId>() {
        override fun plain(id: UserId) = id.value
        override suspend fun later(id: UserId) = id.value
    }

    open class Inherits : Base<UserId>() {
        override fun plain(id: UserId) = id.value
    }

    interface Source<T> {

        @RateLimited(name = "source", rate = "1/d")
        fun next(): T
    }

    open class Users : Source<UserId> {
        override fun next() = UserId("ann")
    }

    interface Open<ID> {
        fun load(id: ID, suffix: String): String
    }

    open class Annotated : Open<UserId> {

        @RateLimited(rate = "1/d", key = "#id")
        override fun load(id: UserId, suffix: String) = "${id.value} $suffix"
    }

    interface Fallback<ID> {

        @RateLimited(name = "falling", rate = "1/d", fallback = "instead")
        fun load(id: ID): String
    }

    open class Falling : Fallback<UserId> {
        override fun load(id: UserId) = "loaded ${id.value}"
        fun instead(id: UserId) = "instead of ${id.value}"
    }

    open class Named {

        @RateLimited(name = "find", rate = "1/d")
        open fun find(id: Long?) = "boxed"

        @RateLimited(name = "load", rate = "1/d")
        open fun load(id: UserId) = "user"
    }

    open class Other : Named() {
        open fun find(id: Long) = "long"
        open fun load(id: String) = "text"
    }
}
