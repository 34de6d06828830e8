package io.ratelimited.redis.connection;

import io.netty.buffer.ByteBufUtil;
import java.nio.charset.StandardCharsets;

/**
 * The arguments of a script in the form in which they are sent. The caller encodes them, because all callers share the
 * thread of the connection. For one thread at a time, until nothing is added any more.
 */
public final class ScriptArguments {

    private final StringBuilder text = new StringBuilder(256);
    private int count;

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

    int count() {
        return count;
    }

    byte[] bytes() {
        return text.toString().getBytes(StandardCharsets.UTF_8);
    }
}
