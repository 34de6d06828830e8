package io.ratelimited.spring.internals.client;

import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.DisposableBean;

/**
 * An HTTP library as the application has set it, and the same without redirects, which is made for the first limited call.
 * Thread-safe.
 *
 * @param <T> its type in Spring
 */
final class HttpLibrary<T> {

    private final T usual;
    private final Supplier<? extends T> maker;
    private volatile @Nullable T still;

    /** @param maker makes the library that follows no redirects */
    HttpLibrary(T usual, Supplier<? extends T> maker) {
        this.usual = usual;
        this.maker = maker;
    }

    T usual() {
        return usual;
    }

    /** The library that follows no redirects. */
    T still() {
        T made = still;
        if (made == null) {
            synchronized (this) {
                made = still;
                if (made == null) {
                    made = maker.get();
                    still = made;
                }
            }
        }
        return made;
    }

    void close() throws Exception {
        close(usual);
        close(still);
    }

    private static void close(@Nullable Object library) throws Exception {
        if (library instanceof DisposableBean bean) {
            bean.destroy();
        } else if (library instanceof AutoCloseable closeable) {
            closeable.close();
        }
    }
}
