package io.ratelimited.spring.aot;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.springframework.aot.agent.RecordedInvocation;
import org.springframework.aot.agent.RecordedInvocationsListener;
import org.springframework.aot.agent.RecordedInvocationsPublisher;
import org.springframework.aot.hint.RuntimeHints;

/** Reflection that was used and not hinted. Spring's agent is deprecated since GraalVM says more; on a JVM there is no other. */
@SuppressWarnings({"deprecation", "removal"})
final class Recorded {

    private Recorded() {}

    /** Fails if a use lacks its hint; prints whether any was recorded. */
    static void run(RuntimeHints hints, Runnable application) {
        Queue<RecordedInvocation> uses = new ConcurrentLinkedQueue<>();
        RecordedInvocationsListener listener = uses::add;
        RecordedInvocationsPublisher.addListener(listener);
        application.run();
        RecordedInvocationsPublisher.removeListener(listener);
        List<RecordedInvocation> ours =
                uses.stream().filter(Recorded::concernsLimits).toList();
        List<RecordedInvocation> missing =
                ours.stream().filter(use -> !isHinted(use, hints)).toList();
        assertThat(missing).isEmpty();
        System.out.println("enough " + (ours.size() > 20 ? 1 : 0));
    }

    /** Looked up by this project, or by others on its types and those of the application. */
    private static boolean concernsLimits(RecordedInvocation use) {
        String text = use.toString();
        boolean byLimits = use.getStackFrames()
                .findFirst()
                .map(caller -> caller.getClassName())
                .filter(caller -> caller.startsWith("io.ratelimited"))
                .filter(caller -> !caller.startsWith(Recorded.class.getPackageName())) // this test and its proxies
                .isPresent();
        return (byLimits || text.contains("io.ratelimited"))
                // A native image has no class files; the checks at start-up do without.
                && !text.contains(".class]")
                && !text.contains("__ApplicationContextInitializer");
    }

    private static boolean isHinted(RecordedInvocation use, RuntimeHints hints) {
        try {
            return use.matches(hints);
        } catch (IllegalArgumentException ex) {
            return true; // a class without a name, such as a lambda's: no hint can name it
        }
    }
}
