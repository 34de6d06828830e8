package io.ratelimited.redis;

import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.protocol.CommandArgs;
import io.netty.buffer.ByteBuf;
import java.nio.ByteBuffer;

/** Arguments that need only be copied. */
final class EncodedArgs extends CommandArgs<String, String> {

    private final String key;
    private final int count;
    private final byte[] beginning;
    private final byte[] arguments;

    private EncodedArgs(String key, Words beginning, Words arguments) {
        super(StringCodec.UTF8);
        this.key = key;
        this.count = beginning.count() + arguments.count();
        this.beginning = beginning.bytes();
        this.arguments = arguments.bytes();
    }

    /** @param key says where in a cluster the command goes */
    static EncodedArgs none(String key) {
        return new EncodedArgs(key, new Words(), new Words());
    }

    /** @param script digest or text */
    static EncodedArgs ofScript(String script, String[] keys, Words arguments) {
        Words words = new Words().add(script).add(keys.length);
        for (String key : keys) {
            words.add(key);
        }
        return new EncodedArgs(keys[0], words, arguments);
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
