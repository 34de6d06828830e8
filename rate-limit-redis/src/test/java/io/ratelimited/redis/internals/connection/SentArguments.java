package io.ratelimited.redis.internals.connection;

import java.util.ArrayList;
import java.util.List;

/** What a connection sends, for the connections of tests. */
public final class SentArguments {

    private SentArguments() {}

    /** The arguments of a script, each as it is sent. */
    public static List<byte[]> of(ScriptArguments arguments) {
        byte[] all = arguments.bytes();
        List<byte[]> words = new ArrayList<>(arguments.count());
        int at = 0;
        while (at < all.length) {
            int end = at;
            int size = 0;
            while (all[++end] != '\r') {
                size = 10 * size + all[end] - '0';
            }
            byte[] word = new byte[size];
            System.arraycopy(all, end + 2, word, 0, size);
            words.add(word);
            at = end + 2 + size + 2;
        }
        return words;
    }
}
