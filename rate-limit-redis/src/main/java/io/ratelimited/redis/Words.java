package io.ratelimited.redis;

import io.netty.buffer.ByteBufUtil;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * The words of a command in the form in which they are sent: put together by the caller, because all callers share the
 * thread of the connection, and from parts that are made once. For one thread at a time, unless nothing is added any more.
 */
final class Words {

    private final StringBuilder text = new StringBuilder(256);
    private int count;
    private @Nullable Object question;
    /** Once nothing is added any more. */
    private byte @Nullable [] encoded;

    Words add(String word) {
        text.append('$').append(ByteBufUtil.utf8Bytes(word)).append("\r\n").append(word);
        text.append("\r\n");
        count++;
        return this;
    }

    Words add(long number) {
        if (number >= 0 && number < 10) {
            text.append("$1\r\n").append((char) ('0' + number)).append("\r\n");
            count++;
            return this;
        }
        return add(Long.toString(number));
    }

    Words add(Words others) {
        text.append(others.text);
        count += others.count;
        return this;
    }

    /** Ends the words: a script may be asked of several keys in one call by whoever gives an equal question. */
    Words ofAnyKey(Object equalQuestion) {
        question = equalQuestion;
        encoded = bytes();
        return this;
    }

    /** Null if each key is to be asked by itself. */
    @Nullable
    Object question() {
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
