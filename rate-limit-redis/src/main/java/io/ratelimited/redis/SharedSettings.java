package io.ratelimited.redis;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.redis.internals.connection.GuardedConnection;
import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import io.ratelimited.redis.internals.limiter.LimiterContext;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Settings that instances with the same key prefix can have differently, as during a rollout. Each instance publishes the
 * digest of its settings every five seconds, and reads the text of a digest only once: instances with the same settings
 * exchange one short command. Settings expire 10 to 20 s after the last report of an instance with them. Without Redis, an
 * instance keeps the settings that it knows. Thread-safe.
 */
public final class SharedSettings {

    private static final long EXCHANGE_MILLIS = 5_000;
    private static final long SILENT_MICROS = 10_000_000;

    /**
     * Settings that no reply has had for so long are gone: a Redis that has restarted without its data knows them when their
     * instances have come by.
     */
    private static final long MISSED_NANOS = TimeUnit.MILLISECONDS.toNanos(EXCHANGE_MILLIS + 1_000);

    private final LimiterContext context;
    private final GuardedConnection connection;
    private final String[] keys;
    private @Nullable Supplier<String> own;
    private Consumer<List<String>> listener = others -> {};
    /** By their digests. Guarded by this, like all above that is not final. */
    private final Map<String, Other> others = new LinkedHashMap<>();

    /**
     * Settings of other instances.
     *
     * @param text empty while it is not known
     * @param heardAt when a reply last had them, in nanoseconds of the ticker
     */
    private record Other(String text, long heardAt) {}

    SharedSettings(LimiterContext context, String heardKey, String textsKey) {
        this.context = context;
        this.connection = context.connection();
        this.keys = new String[] {heardKey, textsKey};
    }

    /**
     * Shares the settings of this instance from now on. Only the first call has an effect.
     *
     * @param settings returns their current text; runs on a thread of the connection, and must not block
     * @param listener receives the different texts of other instances after each exchange, on threads for callbacks
     */
    public void share(Supplier<String> settings, Consumer<List<String>> listener) {
        synchronized (this) {
            if (own != null) {
                return;
            }
            this.own = settings;
            this.listener = listener;
        }
        connection.every(EXCHANGE_MILLIS, this::exchange);
    }

    /**
     * Exchanges settings now. Does not block.
     *
     * @return completes when this instance knows the settings of the others; fails if Redis is unavailable
     */
    public CompletableFuture<?> exchange() {
        Supplier<String> settings;
        synchronized (this) {
            settings = own;
        }
        // Before there is a connection nobody can answer.
        if (settings == null || !connection.isConnected()) {
            return CompletableFuture.completedFuture(null);
        }
        String text;
        try {
            text = settings.get();
        } catch (RuntimeException ex) {
            return CompletableFuture.failedFuture(ex);
        }
        String digest = CanonicalKey.digest(text);
        return send(digest, "", List.of()).thenCompose(reply -> {
            boolean isKnown = reply.get(0).equals(1L);
            List<String> wanted = take(reply);
            if (isKnown && wanted.isEmpty()) {
                tell();
                return CompletableFuture.completedFuture(reply);
            }
            return send(digest, isKnown ? "" : text, wanted).thenApply(texts -> {
                addTexts(texts);
                tell();
                return texts;
            });
        });
    }

    private CompletableFuture<List<Object>> send(String digest, String text, List<String> wanted) {
        ScriptArguments args = new ScriptArguments()
                .add(connection.time())
                .add(digest)
                .add(SILENT_MICROS)
                .add(text);
        wanted.forEach(args::add);
        return connection.evalInBackground(Script.SETTINGS, keys, args);
    }

    /** Takes over the digests of a reply, and returns those whose texts are not known. */
    private synchronized List<String> take(List<Object> reply) {
        Map<String, Other> before = new HashMap<>(others);
        others.clear();
        List<String> wanted = new ArrayList<>();
        long now = context.ticker().nanos();
        for (int i = 1; i < reply.size(); i += 2) {
            String digest = (String) reply.get(i);
            Other known = before.remove(digest);
            String text = known == null ? "" : known.text;
            if (text.isEmpty()) {
                wanted.add(digest);
            }
            others.put(digest, new Other(text, now));
        }
        before.forEach((digest, other) -> {
            if (now - other.heardAt < MISSED_NANOS) {
                others.put(digest, other);
            }
        });
        return wanted;
    }

    private synchronized void addTexts(List<Object> reply) {
        for (int i = 1; i < reply.size(); i += 2) {
            String text = (String) reply.get(i + 1);
            if (!text.isEmpty()) {
                others.put(
                        (String) reply.get(i), new Other(text, context.ticker().nanos()));
            }
        }
    }

    /** What the listener gets is read where it runs: two exchanges may be told in any order. */
    private void tell() {
        context.callers().execute(() -> {
            List<String> texts;
            Consumer<List<String>> listening;
            synchronized (this) {
                listening = listener;
                texts = others.values().stream()
                        .map(Other::text)
                        .filter(text -> !text.isEmpty())
                        .toList();
            }
            listening.accept(texts);
        });
    }
}
