package io.ratelimited.redis.connection;

import io.netty.buffer.ByteBufUtil;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * The arguments of a script in the form in which they are sent. The caller encodes them, because all callers share the
 * thread of the connection. For one thread at a time, until nothing is added any more.
 */
public final class ScriptArguments {

    private final StringBuilder text = new StringBuilder(256);
    private int count;
    private @Nullable Object question;
    /** Set once nothing is added any more. */
    private byte @Nullable [] encoded;

    public ScriptArguments add(String argument) {
        text.append('$')
                .append(ByteBufUtil.utf8Bytes(argument))
                .append("\r\n")
                .append(argument)
                .append("\r\n");
        count++;
        return this;
    }

    public ScriptArguments add(long number) {
        if (number >= 0 && number < 10) {
            text.append("$1\r\n").append((char) ('0' + number)).append("\r\n");
            count++;
            return this;
        }
        return add(Long.toString(number));
    }

    public ScriptArguments add(ScriptArguments others) {
        text.append(others.text);
        count += others.count;
        return this;
    }

    /**
     * Ends the arguments, and allows the script to be asked about several keys in one command.
     *
     * @param equalQuestion equal for arguments that are equal
     */
    public ScriptArguments ofAnyKey(Object equalQuestion) {
        question = equalQuestion;
        encoded = bytes();
        return this;
    }

    /** Null when each key needs a command of its own. */
    public @Nullable Object question() {
        return question;
    }

    int count() {
        return count;
    }

    byte[] bytes() {
        byte[] made = encoded;
        return made != null ? made : text.toString().getBytes(StandardCharsets.UTF_8);
    }
}
