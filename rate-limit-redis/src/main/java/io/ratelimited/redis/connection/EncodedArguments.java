package io.ratelimited.redis.connection;

import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.protocol.CommandArgs;
import io.netty.buffer.ByteBuf;
import java.nio.ByteBuffer;

/** The arguments of a command, encoded already: the thread of the connection only copies them. */
final class EncodedArguments extends CommandArgs<String, String> {

    private final String key;
    private final int count;
    private final byte[] beginning;
    private final byte[] arguments;

    private EncodedArguments(String key, ScriptArguments beginning, ScriptArguments arguments) {
        super(StringCodec.UTF8);
        this.key = key;
        this.count = beginning.count() + arguments.count();
        this.beginning = beginning.bytes();
        this.arguments = arguments.bytes();
    }

    /** @param key says where in a cluster the command goes */
    static EncodedArguments none(String key) {
        return new EncodedArguments(key, new ScriptArguments(), new ScriptArguments());
    }

    /** @param script digest or text */
    static EncodedArguments ofScript(String script, String[] keys, ScriptArguments arguments) {
        ScriptArguments words = new ScriptArguments().add(script).add(keys.length);
        for (String key : keys) {
            words.add(key);
        }
        return new EncodedArguments(keys[0], words, arguments);
    }

    @Override
    public int count() {
        return count;
    }

    @Override
    public ByteBuffer getFirstEncodedKey() {
        return StringCodec.UTF8.encodeKey(key);
    }

    @Override
    public void encode(ByteBuf to) {
        to.writeBytes(beginning).writeBytes(arguments);
    }
}
