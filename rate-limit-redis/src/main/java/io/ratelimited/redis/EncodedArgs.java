package io.ratelimited.redis;

import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.protocol.CommandArgs;
import io.netty.buffer.ByteBuf;
import java.nio.ByteBuffer;

/** The arguments of a script call, which need only be copied. */
final class EncodedArgs extends CommandArgs<String, String> {

    private final String key;
    private final int count;
    private final byte[] beginning;
    private final byte[] arguments;

    /** @param script digest or text */
    EncodedArgs(String script, String[] keys, Words arguments) {
        super(StringCodec.UTF8);
        Words words = new Words().add(script).add(keys.length);
        for (String each : keys) {
            words.add(each);
        }
        this.key = keys[0];
        this.count = words.count() + arguments.count();
        this.beginning = words.bytes();
        this.arguments = arguments.bytes();
    }

    @Override
    public int count() {
        return count;
    }

    /** Says where in a cluster the command goes. */
    @Override
    public ByteBuffer getFirstEncodedKey() {
        return StringCodec.UTF8.encodeKey(key);
    }

    @Override
    public void encode(ByteBuf to) {
        to.writeBytes(beginning).writeBytes(arguments);
    }
}
