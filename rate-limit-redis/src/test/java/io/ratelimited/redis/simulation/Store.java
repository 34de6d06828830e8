package io.ratelimited.redis.simulation;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.luaj.vm2.LuaString;

/** The keys of a server, with their types and expiries: what Redis does for the commands of the scripts. */
final class Store {

    private final Map<LuaString, Entry> entries = new HashMap<>();
    /** What keys expire by, in milliseconds since 1970. */
    private long now;

    /** A value: a LuaString, a hash, a list or a sorted set. */
    private static final class Entry {

        private final Object value;
        /** Milliseconds since 1970; none if negative. */
        private long expiresAt = -1;

        private Entry(Object value) {
            this.value = value;
        }
    }

    /** The fields of a hash. */
    static final class Hash extends LinkedHashMap<LuaString, LuaString> {
        private static final long serialVersionUID = 1L;
    }

    /** The elements of a list. */
    static final class Elements extends ArrayList<LuaString> {
        private static final long serialVersionUID = 1L;
    }

    /** The members of a sorted set, by their names. */
    static final class Scores extends HashMap<LuaString, Double> {
        private static final long serialVersionUID = 1L;
    }

    static int compare(LuaString one, LuaString other) {
        for (int i = 0; i < Math.min(one.length(), other.length()); i++) {
            int order = Integer.compare(one.luaByte(i), other.luaByte(i));
            if (order != 0) {
                return order;
            }
        }
        return Integer.compare(one.length(), other.length());
    }

    /** Sets the time by which keys expire. */
    void at(long millis) {
        now = millis;
    }

    long now() {
        return now;
    }

    private @Nullable Entry entry(LuaString key) {
        Entry entry = entries.get(key);
        if (entry != null && entry.expiresAt >= 0 && now > entry.expiresAt) {
            entries.remove(key);
            return null;
        }
        return entry;
    }

    @Nullable
    Object get(LuaString key) {
        Entry entry = entry(key);
        return entry == null ? null : entry.value;
    }

    /** A value of a type; null when there is none. */
    <T> @Nullable T get(LuaString key, Class<T> type) {
        Object value = get(key);
        if (value == null || type.isInstance(value)) {
            return type.cast(value);
        }
        throw new RedisError("WRONGTYPE Operation against a key holding the wrong kind of value");
    }

    /** Stores a value that never expires. */
    void put(LuaString key, Object value) {
        entries.put(key, new Entry(value));
    }

    boolean remove(LuaString key) {
        boolean there = entry(key) != null;
        entries.remove(key);
        return there;
    }

    /** Removes a key at a time; false if there is no such key. */
    boolean expire(LuaString key, long at) {
        Entry entry = entry(key);
        if (entry == null) {
            return false;
        }
        entry.expiresAt = at;
        if (at <= now) {
            entries.remove(key);
        }
        return true;
    }

    /** Milliseconds since 1970; negative if the key never expires or is not there. */
    long expiry(LuaString key) {
        Entry entry = entry(key);
        return entry == null ? -2 : entry.expiresAt;
    }

    /** Milliseconds until a key expires; -1 if it never does, -2 if it is not there. */
    long lives(LuaString key) {
        long at = expiry(key);
        return at < 0 ? at : at - now;
    }

    /** Moves a key with its expiry, unless the other store has it. */
    void move(LuaString key, Store to) {
        Entry entry = entry(key);
        if (entry != null && to.entry(key) == null) {
            to.entries.put(key, entry);
        }
        entries.remove(key);
    }

    List<LuaString> keys() {
        List<LuaString> all = new ArrayList<>();
        for (LuaString key : List.copyOf(entries.keySet())) {
            if (entry(key) != null) {
                all.add(key);
            }
        }
        all.sort(Store::compare);
        return all;
    }

    void clear() {
        entries.clear();
    }

    /** All keys as they are now. */
    Store copy() {
        Store copy = new Store();
        copy.now = now;
        entries.forEach((key, entry) -> {
            Entry twin = new Entry(copy(entry.value));
            twin.expiresAt = entry.expiresAt;
            copy.entries.put(key, twin);
        });
        return copy;
    }

    private static Object copy(Object value) {
        if (value instanceof Hash hash) {
            Hash copy = new Hash();
            copy.putAll(hash);
            return copy;
        }
        if (value instanceof Elements list) {
            Elements copy = new Elements();
            copy.addAll(list);
            return copy;
        }
        if (value instanceof Scores scores) {
            Scores copy = new Scores();
            copy.putAll(scores);
            return copy;
        }
        return value;
    }

    /** All keys, in an order and a form of their own: equal for equal stores. */
    Map<String, String> described() {
        Map<String, String> all = new TreeMap<>();
        for (LuaString key : keys()) {
            all.put(key.tojstring(), describe(get(key)));
        }
        return all;
    }

    private static String describe(@Nullable Object value) {
        if (value instanceof LuaString text) {
            StringBuilder hex = new StringBuilder();
            for (int i = 0; i < text.length(); i++) {
                hex.append(String.format("%02x", text.luaByte(i)));
            }
            return hex.toString();
        }
        if (value instanceof Hash hash) {
            Map<String, String> sorted = new TreeMap<>();
            hash.forEach((field, held) -> sorted.put(field.tojstring(), held.tojstring()));
            return sorted.toString();
        }
        if (value instanceof Scores scores) {
            Map<String, Double> sorted = new TreeMap<>();
            scores.forEach((member, score) -> sorted.put(member.tojstring(), score));
            return sorted.toString();
        }
        return String.valueOf(value);
    }
}
