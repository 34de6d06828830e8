package io.ratelimited.spring.internals.call;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.DefaultEventLoop;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/** Which threads must never sleep. */
final class EventLoopsTest {

    private static final Callable<Boolean> QUESTION = EventLoops::isCurrentThread;

    @Test
    void eventLoopsOfNettyAndTimersOfReactorMustNotSleep() throws Exception {
        DefaultEventLoop netty = new DefaultEventLoop();
        try {
            assertThat(netty.submit(QUESTION).get()).isTrue();
        } finally {
            netty.shutdownGracefully();
        }
        assertThat(on(Schedulers.parallel())).isTrue();
        assertThat(on(Schedulers.single())).isTrue();
    }

    @Test
    void otherThreadsMaySleep() throws Exception {
        assertThat(QUESTION.call()).isFalse();
        assertThat(on(Schedulers.boundedElastic())).isFalse();
        assertThat(on(Schedulers.fromExecutor(Executors.newCachedThreadPool(task -> {
                    Thread thread = new Thread(task);
                    thread.setDaemon(true);
                    return thread;
                }))))
                .isFalse();
    }

    private static Boolean on(Scheduler scheduler) throws Exception {
        return Mono.fromCallable(QUESTION).subscribeOn(scheduler).toFuture().get();
    }
}
