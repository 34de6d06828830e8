package io.ratelimited.core.internals.memory.block;

import java.util.concurrent.ThreadLocalRandom;

/**
 * SipHash-1-3 (Aumasson and Bernstein, 2012) of a key under a secret of this process, so that nobody can choose texts that
 * collide. A key that is no text is hashed by its {@code hashCode}. Immutable.
 */
public final class SaltedHash {

    private final long k0;
    private final long k1;

    public SaltedHash() {
        this(ThreadLocalRandom.current().nextLong(), ThreadLocalRandom.current().nextLong());
    }

    public SaltedHash(long k0, long k1) {
        this.k0 = k0;
        this.k1 = k1;
    }

    public long of(Object key) {
        State state = new State(k0, k1);
        if (key instanceof CharSequence text) {
            int length = text.length();
            long word = 0;
            for (int i = 0; i < length; i++) {
                word |= (long) text.charAt(i) << (i << 4);
                if ((i & 3) == 3) {
                    state.add(word);
                    word = 0;
                }
            }
            state.add(word);
            state.add(length);
        } else {
            state.add(key.hashCode());
        }
        return state.finish();
    }

    private static final class State {

        private long v0;
        private long v1;
        private long v2;
        private long v3;

        State(long k0, long k1) {
            v0 = k0 ^ 0x736f6d6570736575L;
            v1 = k1 ^ 0x646f72616e646f6dL;
            v2 = k0 ^ 0x6c7967656e657261L;
            v3 = k1 ^ 0x7465646279746573L;
        }

        void add(long word) {
            v3 ^= word;
            round();
            v0 ^= word;
        }

        private void round() {
            v0 += v1;
            v1 = Long.rotateLeft(v1, 13) ^ v0;
            v0 = Long.rotateLeft(v0, 32);
            v2 += v3;
            v3 = Long.rotateLeft(v3, 16) ^ v2;
            v0 += v3;
            v3 = Long.rotateLeft(v3, 21) ^ v0;
            v2 += v1;
            v1 = Long.rotateLeft(v1, 17) ^ v2;
            v2 = Long.rotateLeft(v2, 32);
        }

        long finish() {
            v2 ^= 0xff;
            round();
            round();
            round();
            return v0 ^ v1 ^ v2 ^ v3;
        }
    }
}
