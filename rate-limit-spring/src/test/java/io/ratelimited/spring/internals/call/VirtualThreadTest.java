package io.ratelimited.spring.internals.call;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Ticker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.RateLimited;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;

/** Calls of virtual threads. */
@EnabledForJreRange(min = JRE.JAVA_21, disabledReason = "virtual threads are final from JDK 21")
final class VirtualThreadTest {

    private static final String EVENT = "jdk.VirtualThreadPinned";

    @Test
    void waitingPinsNoVirtualThread(@TempDir Path directory) throws Exception {
        try (AnnotationConfigApplicationContext context =
                        ContextRunner.start(Ticker.system(), new Class<?>[] {Service.class});
                Recording recording = new Recording()) {
            Service service = context.getBean(Service.class);
            service.call();
            service.call();
            recording.enable(EVENT).withoutThreshold().withStackTrace();
            recording.start();
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                threads.add(startVirtual(service::call));
            }
            for (Thread thread : threads) {
                thread.join();
            }
            startVirtual(Pinned::touch).join();
            recording.stop();
            Path file = directory.resolve("pinned.jfr");
            recording.dump(file);
            List<RecordedEvent> events = RecordingFile.readAllEvents(file).stream()
                    .filter(event -> event.getEventType().getName().equals(EVENT))
                    .toList();
            assertThat(service.calls()).isEqualTo(202);
            assertThat(events).as("the recording sees what pins").anyMatch(event -> mentions(event, "Pinned"));
            assertThat(events).noneMatch(event -> mentions(event, "LimitedMethod"));
        }
    }

    private static boolean mentions(RecordedEvent event, String type) {
        return event.getStackTrace() != null
                && event.getStackTrace().getFrames().stream()
                        .anyMatch(frame -> frame.getMethod().getType().getName().endsWith(type));
    }

    /** {@code Thread.startVirtualThread}, which the JDK this is compiled for does not have. */
    private static Thread startVirtual(Runnable task) throws ReflectiveOperationException {
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        return (Thread) start.invoke(null, task);
    }

    /** Parks while its class is initialised, which pins. */
    private static final class Pinned {

        static {
            LockSupport.parkNanos(1_000_000);
        }

        private static void touch() {}
    }

    static class Service {

        private final AtomicInteger calls = new AtomicInteger();

        int calls() {
            return calls.get();
        }

        @RateLimited(rate = "1000/s", burst = 1, policy = io.ratelimited.core.Policy.WAIT, maxWait = "1m")
        public void call() {
            calls.incrementAndGet();
        }
    }
}
