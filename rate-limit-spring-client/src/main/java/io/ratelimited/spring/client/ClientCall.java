package io.ratelimited.spring.client;

import io.ratelimited.spring.call.Admission;
import io.ratelimited.spring.client.ClientPace.Pass;
import io.ratelimited.spring.client.LimitedClient.KeyedGate;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** A call that may go. It is told once what becomes of it, and once that it has ended; later tellings are ignored. Thread-safe. */
final class ClientCall {

    private final LimitedClient client;
    private final KeyedGate keyed;
    private final Pass pass;
    private final @Nullable Admission admission;
    private final AtomicBoolean answered = new AtomicBoolean();

    ClientCall(LimitedClient client, KeyedGate keyed, Pass pass, @Nullable Admission admission) {
        this.client = client;
        this.keyed = keyed;
        this.pass = pass;
        this.admission = admission;
    }

    /** The call is not made: everything is given back. */
    void giveBack() {
        if (answered.compareAndSet(false, true)) {
            keyed.gate().giveBack(pass);
            if (admission != null) {
                admission.cancel();
            }
        }
    }

    /**
     * Status and header fields have come.
     *
     * @param fields the values of a field by its name
     */
    void answered(int status, Function<String, @Nullable List<String>> fields) {
        if (answered.compareAndSet(false, true)) {
            client.answered(keyed, pass, status, fields);
        }
    }

    /** The call has ended, with its answer read to the end or without an answer: it is no longer in flight. */
    void end() {
        if (answered.compareAndSet(false, true)) {
            keyed.gate().failed(pass);
        }
        if (admission != null) {
            admission.end();
        }
    }
}
