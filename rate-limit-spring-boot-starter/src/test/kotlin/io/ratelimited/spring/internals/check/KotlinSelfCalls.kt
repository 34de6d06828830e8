package io.ratelimited.spring.internals.check

import io.ratelimited.spring.RateLimited
import java.util.concurrent.Executor
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import kotlinx.coroutines.yield

/** Calls its own limited function from all parts of functions that the compiler makes methods and classes of. */
internal open class KotlinSelfCalls {

    @RateLimited(rate = "1/h")
    open suspend fun send(): String {
        yield()
        return "sent"
    }

    open suspend fun directly(): String = send()

    open suspend fun resumed(): String {
        yield()
        return send()
    }

    open fun byLambda(executor: Executor) = executor.execute { runBlocking { send() } }

    open fun byObject(): Runnable =
        object : Runnable {
            override fun run() {
                runBlocking { send() }
            }
        }

    open fun byFlow(): Flow<String> = flow { emit(send()) }

    open suspend fun inContext(): String = withContext(Dispatchers.Default) { send() }

    open suspend fun nested(): String = coroutineScope { async { send() }.await() }

    open suspend fun other(proxy: KotlinSelfCalls): String = withContext(Dispatchers.Default) { proxy.send() }

    open suspend fun otherLater(proxy: KotlinSelfCalls): String {
        yield()
        return proxy.send()
    }
}
