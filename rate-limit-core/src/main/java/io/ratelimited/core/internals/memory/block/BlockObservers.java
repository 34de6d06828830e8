package io.ratelimited.core.internals.memory.block;

import io.ratelimited.core.BlockedKey;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;

/** Those who hear of each block of a limit that begins. Whatever one of them throws, the others hear of it. Thread-safe. */
public final class BlockObservers {

    private final List<Consumer<BlockedKey>> observers = new CopyOnWriteArrayList<>();

    public void add(Consumer<BlockedKey> observer) {
        observers.add(observer);
    }

    public boolean isEmpty() {
        return observers.isEmpty();
    }

    /** Tells them in this thread, which holds no lock. */
    public void tell(BlockedKey begun) {
        for (Consumer<BlockedKey> observer : observers) {
            try {
                observer.accept(begun);
            } catch (RuntimeException ex) {
                // The call has been decided, whatever an observer makes of it.
            }
        }
    }
}
