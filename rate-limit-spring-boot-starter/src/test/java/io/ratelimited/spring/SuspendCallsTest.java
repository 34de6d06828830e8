package io.ratelimited.spring;

import java.util.concurrent.CompletableFuture;

/** The facts, for Kotlin's suspend functions. */
final class SuspendCallsTest extends CallFacts {

    @Override
    Class<?> service() {
        return SuspendService.class;
    }

    @Override
    CompletableFuture<String> call(String method, String id) {
        return SuspendServiceKt.call(context.getBean(SuspendService.class), method, id);
    }
}
