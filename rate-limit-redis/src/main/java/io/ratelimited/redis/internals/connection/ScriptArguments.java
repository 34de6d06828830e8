package io.ratelimited.redis.internals.connection;

import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.protocol.CommandArgs;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * The arguments of a script in the form in which they are sent. The thread of the caller encodes them, because all callers
 * share the thread of the connection. For one thread at a time, until nothing is added any more; {@link #mergeable} ends it,
 * and they may be sent again and again from then on, by several threads.
 */
public final class ScriptArguments {

    /** Each character is a byte. */
    private final StringBuilder text = new StringBuilder(256);

    private int count;
    private @Nullable String mergeKey;
    /** {@link #bytes}, once they are final. */
    private byte @Nullable [] encoded;

    public ScriptArguments add(String argument) {
        return addBytes(bytes(argument));
    }

    /** One argument of which each character is a byte. */
    private ScriptArguments addBytes(String bytes) {
        text.append('$').append(bytes.length()).append("\r\n").append(bytes).append("\r\n");
        count++;
        return this;
    }

    private static String bytes(String argument) {
        return ByteBufUtil.utf8Bytes(argument) == argument.length()
                ? argument
                : new String(argument.getBytes(StandardCharsets.UTF_8), StandardCharsets.ISO_8859_1);
    }

    /** One argument: several numbers from 0 to 2⁵⁶ − 1, as big-endian integers of seven bytes, and a text behind them. */
    public ScriptArguments addPacked(String tail, long... numbers) {
        String bytes = bytes(tail);
        text.append('$').append(7 * numbers.length + bytes.length()).append("\r\n");
        for (long number : numbers) {
            for (int shift = 48; shift >= 0; shift -= 8) {
                text.append((char) (number >>> shift & 0xFF));
            }
        }
        text.append(bytes).append("\r\n");
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

    public ScriptArguments add(double number) {
        return add(Double.toString(number));
    }

    /** Ends the arguments. One command may then have several keys, and the script replies for each of them. */
    public ScriptArguments mergeable() {
        mergeKey = text.toString();
        encoded = bytes();
        return this;
    }

    /** Equal for equal arguments; null if each key needs a command of its own. */
    @Nullable
    String mergeKey() {
        return mergeKey;
    }

    int count() {
        return count;
    }

    byte[] bytes() {
        return encoded != null ? encoded : text.toString().getBytes(StandardCharsets.ISO_8859_1);
    }

    /**
     * The whole command behind its name.
     *
     * @param script digest or text, of which each character is a byte
     */
    CommandArgs<String, String> behind(String script, String[] keys) {
        ScriptArguments beginning = new ScriptArguments().addBytes(script).add(keys.length);
        for (String key : keys) {
            beginning.add(key);
        }
        return new Encoded(beginning.count + count, beginning.bytes(), bytes());
    }

    /** Encoded already: the thread of the connection only copies them. */
    private static final class Encoded extends CommandArgs<String, String> {

        private final int count;
        private final byte[] beginning;
        private final byte[] rest;

        private Encoded(int count, byte[] beginning, byte[] rest) {
            super(StringCodec.UTF8);
            this.count = count;
            this.beginning = beginning;
            this.rest = rest;
        }

        @Override
        public int count() {
            return count;
        }

        @Override
        public void encode(ByteBuf to) {
            to.writeBytes(beginning).writeBytes(rest);
        }
    }
}
