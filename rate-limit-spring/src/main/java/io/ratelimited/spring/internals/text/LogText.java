package io.ratelimited.spring.internals.text;

import java.io.Serial;
import java.util.function.BiConsumer;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/** Escapes text of others, such as of a caller or a record in Redis, for a log line or a message. */
public final class LogText {

    private static final int LONGEST = 200;
    private static final int MOST_CAUSES = 100;
    /** Characters that would end the line, hide a part of it or turn it around. */
    private static final Pattern UNSAFE = Pattern.compile("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]");

    private LogText() {}

    /** The text of a value; quoted if the value is text, so that "true" differs from the value true. */
    public static String of(@Nullable Object value) {
        String text = escaped(String.valueOf(value));
        return value instanceof CharSequence ? '"' + text + '"' : text;
    }

    /** The text, short, on one line, with Java's escapes for control characters. */
    public static String escaped(String text) {
        return text.length() > LONGEST ? line(text.substring(0, LONGEST)) + "..." : line(text);
    }

    private static String line(String text) {
        return UNSAFE.matcher(text)
                .replaceAll(unsafe -> String.format("\\\\u%04x", unsafe.group().codePointAt(0)));
    }

    /** A failure with the same stack, and texts on one line; what it suppresses is left out. */
    public static Throwable escaped(Throwable failure) {
        return escaped(failure, MOST_CAUSES);
    }

    private static Throwable escaped(Throwable failure, int depth) {
        Throwable cause = failure.getCause();
        return new Escaped(failure, cause == null || depth == 0 ? null : escaped(cause, depth - 1));
    }

    /** Stands for a failure in a log. */
    private static final class Escaped extends Exception {

        @Serial
        private static final long serialVersionUID = 1L;

        private final String text;

        private Escaped(Throwable failure, @Nullable Throwable cause) {
            super(cause);
            this.text = line(failure.toString());
            setStackTrace(failure.getStackTrace());
        }

        /** The class and message of the failure that it stands for: its own class is of no interest. */
        @Override
        @SuppressWarnings("OverrideThrowableToString")
        public String toString() {
            return text;
        }
    }

    /** The log of a class. */
    public static Lines lines(Class<?> type) {
        return new Lines(LogFactory.getLog(type));
    }

    /** A log by name, for lines that users choose in the configuration of their logs. */
    public static Lines lines(String name) {
        return new Lines(LogFactory.getLog(name));
    }

    /** A log each of whose messages is one line, whatever it quotes: every line of this library goes through here. */
    public static final class Lines {

        private final Log log;

        private Lines(Log log) {
            this.log = log;
        }

        public boolean isInfoEnabled() {
            return log.isInfoEnabled();
        }

        public boolean isDebugEnabled() {
            return log.isDebugEnabled();
        }

        public void debug(String message) {
            log.debug(line(message));
        }

        public void debug(String message, Throwable failure) {
            if (log.isDebugEnabled()) {
                log(message, failure, log::debug);
            }
        }

        public void info(String message) {
            log.info(line(message));
        }

        public void warn(String message) {
            log.warn(line(message));
        }

        public void warn(String message, Throwable failure) {
            log(message, failure, log::warn);
        }

        /** A stack quotes the texts of a failure and of its causes: where they are not one line each, it quotes them escaped. */
        private static void log(String message, Throwable failure, BiConsumer<Object, Throwable> withStack) {
            StringBuilder texts = new StringBuilder();
            Throwable cause = failure;
            for (int i = 0; cause != null && i < MOST_CAUSES; i++, cause = cause.getCause()) {
                texts.append(cause);
                Stream.of(cause.getSuppressed()).forEach(texts::append);
            }
            withStack.accept(line(message), UNSAFE.matcher(texts).find() ? escaped(failure, MOST_CAUSES) : failure);
        }

        public void error(String message) {
            log.error(line(message));
        }
    }
}
