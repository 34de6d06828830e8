package io.ratelimited.redis.internals.connection;

import io.lettuce.core.RedisException;
import java.io.IOException;
import java.io.Serial;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** The reasons why there are no replies. */
public final class Replies {

    /**
     * A script has failed at a value of another type, at a number of which it makes one that Redis does not take, or in a function of
     * Lua, whose messages begin in lower case. Other errors of Redis within a script, such as OOM and READONLY, begin in upper case.
     */
    private static final Pattern CORRUPT_KEY =
            Pattern.compile("^(WRONGTYPE|ERR (value is not|invalid expire)) .*user_script"
                    + "|user_script: ?\\d+: (WRONGTYPE|ERR (value is not|invalid expire)|user_script|[a-z])");

    /**
     * Before the words for a server that takes no writes: nothing; in Redis 6.2 the place in the script; {@code ERR} where a script
     * hands on a caught error.
     */
    private static final String BEFORE_WRITES = "(^(ERR )?|user_script: ?\\d+: -)";

    /** A replica, or a primary that is cut off from its own. */
    private static final Pattern NO_PRIMARY = Pattern.compile(BEFORE_WRITES + "(READONLY|MASTERDOWN|NOREPLICAS) ");

    private static final String NO_WRITES = BEFORE_WRITES + "(READONLY|MASTERDOWN|NOREPLICAS|MISCONF|OOM) "
            + "|Script attempted to execute a write command while the cluster is down";

    private static final Pattern TAKES_NO_WRITES = Pattern.compile(NO_WRITES);

    /**
     * A server that takes no writes, or does not begin the script. Redis checks that it takes writes at the first write of a
     * script, and a script that has written goes on. Other errors of a script can come after a write, such as a missing permission
     * for one of its commands.
     */
    private static final Pattern UNCHANGED =
            Pattern.compile(NO_WRITES + "|^(LOADING|BUSY|CLUSTERDOWN|MOVED|ASK|TRYAGAIN|CROSSSLOT|NOTIME) ");

    private static final Pattern KEYS_APART = Pattern.compile("^(TRYAGAIN|CROSSSLOT) ");

    private static final Pattern UNSAFE = Pattern.compile("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]");

    private Replies() {}

    /** Returns the result of a task; failed if the task throws. */
    static <T> CompletableFuture<T> of(Supplier<? extends CompletionStage<T>> task) {
        try {
            return task.get().toCompletableFuture();
        } catch (RuntimeException | Error ex) {
            return CompletableFuture.failedFuture(ex);
        }
    }

    /** The reason of a failure, without the exceptions that futures wrap around it. */
    public static Throwable cause(@Nullable Throwable failure) {
        Throwable cause = failure;
        while (cause != null
                && (cause instanceof CompletionException || cause instanceof ExecutionException)
                && cause.getCause() != null) {
            cause = cause.getCause();
        }
        return cause == null ? new IllegalStateException("failed without a reason") : cause;
    }

    /** Returns whether a server says that it does not decide because another one is the primary, or may have become it. */
    static boolean isNoPrimary(Throwable failure) {
        return NO_PRIMARY.matcher(String.valueOf(failure.getMessage())).find();
    }

    /**
     * Returns whether a server says that it takes no writes. It still answers scripts that only read: rejections succeed, however long
     * no call is admitted.
     */
    static boolean takesNoWrites(Throwable failure) {
        return TAKES_NO_WRITES.matcher(String.valueOf(failure.getMessage())).find();
    }

    /**
     * Returns whether the keys of a script are not together, so that no server runs it: they are on two servers while their slot
     * moves, or in two slots of a server that separates them.
     */
    public static boolean areKeysApart(Throwable failure) {
        return KEYS_APART.matcher(String.valueOf(cause(failure).getMessage())).find();
    }

    /** Returns whether a command has certainly changed nothing: it was not sent, or refused before its first write. */
    public static boolean hasChangedNothing(Throwable failure) {
        return isNotSent(failure)
                || UNCHANGED
                        .matcher(String.valueOf(cause(failure).getMessage()))
                        .find();
    }

    /** Returns whether a command has certainly not been sent. */
    public static boolean isNotSent(Throwable failure) {
        return cause(failure) instanceof NotSentException;
    }

    /**
     * Returns whether a script could not read its keys, since no script has written them. It has changed nothing
     * then.
     */
    static boolean isCorruptKey(Throwable failure) {
        return CORRUPT_KEY.matcher(String.valueOf(failure.getMessage())).find();
    }

    /**
     * The error that a server has answered with, in one line.
     *
     * @return null for another failure: the command was not sent, its reply is late, or the connection broke
     */
    public static @Nullable String error(@Nullable Throwable failure) {
        Throwable cause = failure == null ? null : cause(failure);
        return cause == null || isNotSent(cause) || cause instanceof TimeoutException || isBreak(cause)
                ? null
                : text(cause);
    }

    /**
     * Returns whether a connection broke: commands that were written before the client noticed fail with the system's error.
     */
    static boolean isBreak(Throwable cause) {
        return cause.getClass() == RedisException.class || cause instanceof IOException;
    }

    /** The failure of a command that is not sent. */
    public static Throwable notSent(String reason) {
        return new NotSentException(reason);
    }

    /** Without a stack trace: thrown for every call of an outage. */
    private static final class NotSentException extends RuntimeException {

        @Serial
        private static final long serialVersionUID = 1L;

        private NotSentException(String message) {
            super(message, null, false, false);
        }
    }

    /** A failure and its causes in one line: a client reports that it cannot connect, and only a cause has the reason. */
    static String text(Throwable failure) {
        StringBuilder text = new StringBuilder(failure.toString());
        for (Throwable cause = failure.getCause(); cause != null; cause = cause.getCause()) {
            if (text.indexOf(cause.toString()) < 0) {
                text.append(": ").append(cause);
            }
        }
        return line(text.toString());
    }

    /** Escapes the characters of a text that would end the line, hide a part of it or turn it around. */
    static String line(String text) {
        return UNSAFE.matcher(text)
                .replaceAll(unsafe -> String.format("\\\\u%04x", unsafe.group().codePointAt(0)));
    }
}
