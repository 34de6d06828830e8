package io.ratelimited.redis;

import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A question about one key that is sent in one command with the same question about other keys. */
final class Shared extends CompletableFuture<List<Object>> implements LettuceLink.Unsent {

    private final Script script;
    private final String key;
    private final Words args;
    /** The command, and all who share it. */
    private volatile @Nullable Together sent;

    Shared(Script script, String key, Words args) {
        this.script = script;
        this.key = key;
        this.args = args;
    }

    /**
     * Tells each what is answered about its key, or why the command failed.
     *
     * @param again asks about one key for which the script has done nothing, as it does only when asked about several
     */
    static void ask(List<Shared> all, CompletableFuture<List<Object>> command, Consumer<Shared> again) {
        Together together = new Together(all, command);
        all.forEach(one -> one.sent = together);
        together.giveUpIfAllHave();
        command.whenComplete((reply, failure) -> {
            for (int i = 0; i < all.size(); i++) {
                Shared one = all.get(i);
                try {
                    if (failure != null) {
                        one.completeExceptionally(failure);
                    } else if (all.size() == 1) {
                        one.complete(reply);
                    } else if ((Long) reply.get(4 * i + 4) < 0) {
                        again.accept(one);
                    } else {
                        one.complete(List.of(
                                reply.get(0),
                                reply.get(4 * i + 1),
                                reply.get(4 * i + 2),
                                reply.get(4 * i + 3),
                                reply.get(4 * i + 4)));
                    }
                } catch (RuntimeException ex) {
                    // Not a reply of the script: whoever waits must hear of it.
                    one.completeExceptionally(ex);
                }
            }
        });
    }

    Script script() {
        return script;
    }

    String key() {
        return key;
    }

    Words args() {
        return args;
    }

    Object question() {
        return Objects.requireNonNull(args.question());
    }

    @Override
    public CompletableFuture<?> future() {
        return this;
    }

    /** Takes the command back, if it has not been sent, once nobody wants it any more. */
    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        boolean cancelled = super.cancel(mayInterruptIfRunning);
        Together together = sent;
        if (together != null) {
            together.giveUpIfAllHave();
        }
        return cancelled;
    }

    private record Together(List<Shared> all, CompletableFuture<List<Object>> command) {

        private void giveUpIfAllHave() {
            if (all.stream().allMatch(Shared::isDone)) {
                command.cancel(false);
            }
        }
    }
}
