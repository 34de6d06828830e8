package io.ratelimited.redis.simulation;

import io.ratelimited.redis.internals.connection.GuardedConnection;
import io.ratelimited.redis.internals.connection.GuardedConnection.Charge;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** What mutants call instead of a method with the same parameters, its object first. Public for them. */
public final class Replacements {

    public static final Runnable NOTHING = () -> {};

    private static final System.Logger LOG = System.getLogger("io.ratelimited.redis.RedisBackend");

    private Replacements() {}

    /** Writes to the log and lets the handler throw. */
    public record UnguardedLine(
            System.Logger.Level level,
            Supplier<String> text,
            @Nullable Throwable failure) implements Runnable {

        @Override
        public void run() {
            LOG.log(level, text.get(), failure);
        }
    }

    public static boolean yes(Object object) {
        return true;
    }

    public static @Nullable Object admitUnlessUndecided(Function<Object, @Nullable Object> fallback, Object failure) {
        return fallback.apply(failure) == null ? null : Boolean.TRUE;
    }

    public static <T> CompletableFuture<T> withoutGiveBack(CompletableFuture<T> decided, Consumer<T> giveBack) {
        return decided;
    }

    public static boolean compareOnly(AtomicReference<?> reference, Object expected, Object next) {
        return reference.get() == expected;
    }

    public static void forgetCharge(GuardedConnection connection, String key, UnaryOperator<@Nullable Charge> change) {
        connection.changeCharge(key, owed -> null);
    }
}
