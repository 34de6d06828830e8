package io.ratelimited.redis.connection;

import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A script call for one key that shares a command with equal calls for other keys. */
final class KeyGroup extends CompletableFuture<List<Object>> implements LettuceLink.Unsent {

    private final Script script;
    private final String key;
    private final ScriptArguments args;
    /** The command, and all calls that share it. */
    private volatile @Nullable Together sent;

    KeyGroup(Script script, String key, ScriptArguments args) {
        this.script = script;
        this.key = key;
        this.args = args;
    }

    /**
     * Completes each call with the reply about its key, or with the failure of the command.
     *
     * @param again sends a command for a key that the script has left alone, as it does only among several
     */
    static void ask(List<KeyGroup> all, CompletableFuture<List<Object>> command, Consumer<KeyGroup> again) {
        Together together = new Together(all, command);
        all.forEach(one -> one.sent = together);
        together.giveUpIfAllHave();
        command.whenComplete((reply, failure) -> {
            for (int i = 0; i < all.size(); i++) {
                KeyGroup one = all.get(i);
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
                    // Not a reply of the script: the caller must not wait for ever.
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

    ScriptArguments args() {
        return args;
    }

    Object question() {
        return Objects.requireNonNull(args.question());
    }

    @Override
    public CompletableFuture<?> future() {
        return this;
    }

    /** Takes the command back, if it has not been sent, once all calls have been given up. */
    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        boolean cancelled = super.cancel(mayInterruptIfRunning);
        Together together = sent;
        if (together != null) {
            together.giveUpIfAllHave();
        }
        return cancelled;
    }

    private record Together(List<KeyGroup> all, CompletableFuture<List<Object>> command) {

        private void giveUpIfAllHave() {
            if (all.stream().allMatch(KeyGroup::isDone)) {
                command.cancel(false);
            }
        }
    }
}
