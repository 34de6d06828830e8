package io.ratelimited.spring.internals.web.servlet;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import org.jspecify.annotations.Nullable;

/** Recognizes virtual threads, of which an executor has as many as needed. */
final class VirtualThreads {

    /** {@code Thread.isVirtual}; null before Java 21. */
    private static final @Nullable MethodHandle IS_VIRTUAL = isVirtual();

    private VirtualThreads() {}

    private static @Nullable MethodHandle isVirtual() {
        try {
            return MethodHandles.publicLookup()
                    .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (ReflectiveOperationException ex) {
            return null;
        }
    }

    /** Returns whether the calling thread is one. */
    static boolean isCurrent() {
        if (IS_VIRTUAL == null) {
            return false;
        }
        try {
            return (boolean) IS_VIRTUAL.invokeExact(Thread.currentThread());
        } catch (Throwable ex) {
            throw new IllegalStateException(ex);
        }
    }
}
