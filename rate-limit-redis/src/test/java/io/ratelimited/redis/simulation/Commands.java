package io.ratelimited.redis.simulation;

import io.ratelimited.redis.simulation.Store.Elements;
import io.ratelimited.redis.simulation.Store.Hash;
import io.ratelimited.redis.simulation.Store.Scores;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.luaj.vm2.LuaString;
import org.luaj.vm2.LuaTable;
import org.luaj.vm2.LuaValue;
import org.luaj.vm2.Varargs;

/** The commands that the scripts use, on a store. A command that no script uses is an error. */
final class Commands {

    private static final LuaString OK = LuaString.valueOf("ok");
    private static final LuaTable STATUS_OK = status("OK");
    private static final Map<LuaString, Command> ALL = new HashMap<>();
    private static final Set<LuaString> WRITES = Stream.of(
                    "SET",
                    "DEL",
                    "PEXPIRE",
                    "HSET",
                    "HDEL",
                    "LPUSH",
                    "RPUSH",
                    "LTRIM",
                    "LSET",
                    "ZADD",
                    "ZREM",
                    "ZREMRANGEBYSCORE")
            .map(LuaString::valueOf)
            .collect(java.util.stream.Collectors.toUnmodifiableSet());
    /** Commands that a server which is out of memory refuses. */
    private static final Set<LuaString> GROWS = Stream.of("SET", "HSET", "LPUSH", "RPUSH", "LSET", "ZADD")
            .map(LuaString::valueOf)
            .collect(java.util.stream.Collectors.toUnmodifiableSet());

    static {
        ALL.put(LuaString.valueOf("GET"), (store, args) -> orFalse(store.get(text(args, 2), LuaString.class)));
        ALL.put(LuaString.valueOf("SET"), Commands::set);
        ALL.put(LuaString.valueOf("DEL"), (store, args) -> number(store.remove(text(args, 2)) ? 1 : 0));
        ALL.put(LuaString.valueOf("TYPE"), (store, args) -> type(store.get(text(args, 2))));
        ALL.put(
                LuaString.valueOf("PEXPIRE"),
                (store, args) -> number(store.expire(text(args, 2), store.now() + integer(args, 3)) ? 1 : 0));
        ALL.put(LuaString.valueOf("PTTL"), (store, args) -> number(store.lives(text(args, 2))));
        ALL.put(LuaString.valueOf("HGET"), (store, args) -> {
            Hash hash = store.get(text(args, 2), Hash.class);
            return orFalse(hash == null ? null : hash.get(text(args, 3)));
        });
        ALL.put(LuaString.valueOf("HGETALL"), Commands::hgetall);
        ALL.put(LuaString.valueOf("HSET"), Commands::hset);
        ALL.put(LuaString.valueOf("HDEL"), Commands::hdel);
        ALL.put(LuaString.valueOf("HSCAN"), Commands::hscan);
        ALL.put(
                LuaString.valueOf("LLEN"),
                (store, args) -> number(list(store, args).size()));
        ALL.put(LuaString.valueOf("LINDEX"), Commands::lindex);
        ALL.put(LuaString.valueOf("LRANGE"), Commands::lrange);
        ALL.put(LuaString.valueOf("LPUSH"), (store, args) -> push(store, args, true));
        ALL.put(LuaString.valueOf("RPUSH"), (store, args) -> push(store, args, false));
        ALL.put(LuaString.valueOf("LSET"), Commands::lset);
        ALL.put(LuaString.valueOf("LTRIM"), Commands::ltrim);
        ALL.put(LuaString.valueOf("ZADD"), Commands::zadd);
        ALL.put(LuaString.valueOf("ZREM"), Commands::zrem);
        ALL.put(
                LuaString.valueOf("ZCARD"),
                (store, args) -> number(scores(store, args).size()));
        ALL.put(LuaString.valueOf("ZSCORE"), Commands::zscore);
        ALL.put(LuaString.valueOf("ZREMRANGEBYSCORE"), Commands::zremrangebyscore);
        ALL.put(LuaString.valueOf("ZREVRANGE"), Commands::zrevrange);
        ALL.put(LuaString.valueOf("ZRANGEBYSCORE"), Commands::zrangebyscore);
    }

    private Commands() {}

    private interface Command {

        /** @param args the name of the command first */
        LuaValue run(Store store, Varargs args);
    }

    static LuaValue run(Store store, Varargs args) {
        Command command = ALL.get(args.checkstring(1));
        if (command == null) {
            throw new RedisError(
                    "ERR the simulation has no command " + args.checkstring(1).tojstring());
        }
        return command.run(store, args);
    }

    static boolean writes(LuaString name) {
        return WRITES.contains(name);
    }

    static boolean grows(LuaString name) {
        return GROWS.contains(name);
    }

    /** Numbers become text as Redis writes them: whole ones without a fraction. */
    private static LuaString text(Varargs args, int index) {
        LuaValue value = args.arg(index);
        if (value instanceof LuaString text) {
            return text;
        }
        double number = value.checkdouble();
        return LuaString.valueOf(number == Math.rint(number) ? Long.toString((long) number) : Lua.general(number));
    }

    private static long integer(Varargs args, int index) {
        LuaString text = text(args, index);
        try {
            return Long.parseLong(Lua.text(text));
        } catch (NumberFormatException ex) {
            throw new RedisError("ERR value is not an integer or out of range");
        }
    }

    private static double score(Varargs args, int index) {
        String text = Lua.text(text(args, index));
        return text.endsWith("inf") ? Double.parseDouble(text.replace("inf", "Infinity")) : Double.parseDouble(text);
    }

    private static LuaValue number(long number) {
        return LuaValue.valueOf((double) number);
    }

    private static LuaValue orFalse(@Nullable LuaString text) {
        return text == null ? LuaValue.FALSE : text;
    }

    private static LuaTable status(String text) {
        LuaTable table = new LuaTable();
        table.rawset(OK, LuaString.valueOf(text));
        return table;
    }

    private static LuaValue type(@Nullable Object value) {
        return status(
                value == null
                        ? "none"
                        : value instanceof LuaString
                                ? "string"
                                : value instanceof Hash ? "hash" : value instanceof Elements ? "list" : "zset");
    }

    private static LuaValue set(Store store, Varargs args) {
        LuaString key = text(args, 2);
        long lives = integer(args, 5);
        if (lives <= 0) {
            throw new RedisError("ERR invalid expire time in 'set' command");
        }
        store.put(key, text(args, 3));
        store.expire(key, store.now() + lives);
        return STATUS_OK;
    }

    private static LuaValue hgetall(Store store, Varargs args) {
        LuaTable all = new LuaTable();
        Hash hash = store.get(text(args, 2), Hash.class);
        if (hash != null) {
            int next = 1;
            for (Map.Entry<LuaString, LuaString> field : hash.entrySet()) {
                all.rawset(next++, field.getKey());
                all.rawset(next++, field.getValue());
            }
        }
        return all;
    }

    /** {@code key cursor COUNT count}: all fields at once, as of a small hash. */
    private static LuaValue hscan(Store store, Varargs args) {
        LuaTable page = new LuaTable();
        page.rawset(1, LuaString.valueOf("0"));
        page.rawset(2, hgetall(store, args));
        return page;
    }

    private static LuaValue hset(Store store, Varargs args) {
        LuaString key = text(args, 2);
        Hash hash = store.get(key, Hash.class);
        if (hash == null) {
            hash = new Hash();
            store.put(key, hash);
        }
        int added = 0;
        for (int i = 3; i < args.narg(); i += 2) {
            added += hash.put(text(args, i), text(args, i + 1)) == null ? 1 : 0;
        }
        return number(added);
    }

    private static LuaValue hdel(Store store, Varargs args) {
        LuaString key = text(args, 2);
        Hash hash = store.get(key, Hash.class);
        int removed = 0;
        for (int i = 3; hash != null && i <= args.narg(); i++) {
            removed += hash.remove(text(args, i)) != null ? 1 : 0;
        }
        if (hash != null && hash.isEmpty()) {
            store.remove(key);
        }
        return number(removed);
    }

    private static Elements list(Store store, Varargs args) {
        Elements list = store.get(text(args, 2), Elements.class);
        return list == null ? new Elements() : list;
    }

    private static LuaValue lindex(Store store, Varargs args) {
        Elements list = list(store, args);
        int at = position(list, integer(args, 3));
        return at < 0 || at >= list.size() ? LuaValue.FALSE : list.get(at);
    }

    private static LuaValue lrange(Store store, Varargs args) {
        Elements list = list(store, args);
        int to = Math.min(list.size() - 1, position(list, integer(args, 4)));
        LuaTable found = new LuaTable();
        int next = 1;
        for (int i = Math.max(0, position(list, integer(args, 3))); i <= to; i++) {
            found.rawset(next++, list.get(i));
        }
        return found;
    }

    private static int position(Elements list, long index) {
        return (int) (index < 0 ? list.size() + index : index);
    }

    private static LuaValue push(Store store, Varargs args, boolean first) {
        LuaString key = text(args, 2);
        Elements list = store.get(key, Elements.class);
        if (list == null) {
            list = new Elements();
            store.put(key, list);
        }
        for (int i = 3; i <= args.narg(); i++) {
            list.add(first ? 0 : list.size(), text(args, i));
        }
        return number(list.size());
    }

    private static LuaValue lset(Store store, Varargs args) {
        Elements list = store.get(text(args, 2), Elements.class);
        if (list == null) {
            throw new RedisError("ERR no such key");
        }
        int at = position(list, integer(args, 3));
        if (at < 0 || at >= list.size()) {
            throw new RedisError("ERR index out of range");
        }
        list.set(at, text(args, 4));
        return STATUS_OK;
    }

    private static LuaValue ltrim(Store store, Varargs args) {
        Elements list = store.get(text(args, 2), Elements.class);
        if (list != null) {
            int from = Math.max(0, position(list, integer(args, 3)));
            int to = Math.min(list.size() - 1, position(list, integer(args, 4)));
            List<LuaString> kept = from > to ? List.of() : List.copyOf(list.subList(from, to + 1));
            list.clear();
            list.addAll(kept);
            if (list.isEmpty()) {
                store.remove(text(args, 2));
            }
        }
        return STATUS_OK;
    }

    private static Scores scores(Store store, Varargs args) {
        Scores scores = store.get(text(args, 2), Scores.class);
        return scores == null ? new Scores() : scores;
    }

    private static LuaValue zadd(Store store, Varargs args) {
        LuaString key = text(args, 2);
        Scores scores = store.get(key, Scores.class);
        if (scores == null) {
            scores = new Scores();
            store.put(key, scores);
        }
        return number(scores.put(text(args, 4), score(args, 3)) == null ? 1 : 0);
    }

    private static LuaValue zrem(Store store, Varargs args) {
        Scores scores = scores(store, args);
        int removed = scores.remove(text(args, 3)) == null ? 0 : 1;
        dropIfEmpty(store, args, scores);
        return number(removed);
    }

    private static void dropIfEmpty(Store store, Varargs args, Scores scores) {
        if (scores.isEmpty()) {
            store.remove(text(args, 2));
        }
    }

    private static LuaValue zscore(Store store, Varargs args) {
        Double score = scores(store, args).get(text(args, 3));
        return score == null ? LuaValue.FALSE : LuaString.valueOf(Lua.general(score));
    }

    private static LuaValue zremrangebyscore(Store store, Varargs args) {
        Scores scores = scores(store, args);
        double low = score(args, 3);
        double high = score(args, 4);
        int before = scores.size();
        scores.values().removeIf(score -> score >= low && score <= high);
        dropIfEmpty(store, args, scores);
        return number(before - scores.size());
    }

    /** {@code key [(]low high [WITHSCORES] [LIMIT 0 count]}. */
    private static LuaValue zrangebyscore(Store store, Varargs args) {
        String from = Lua.text(text(args, 3));
        boolean isAbove = from.startsWith("(");
        double low = isAbove ? Double.parseDouble(from.substring(1)) : score(args, 3);
        double high = score(args, 4);
        boolean withScores = args.narg() > 4 && Lua.text(text(args, 5)).equals("WITHSCORES");
        LuaTable found = new LuaTable();
        int[] next = {1};
        int limit = withScores ? 8 : 7;
        scores(store, args).entrySet().stream()
                .filter(member ->
                        (isAbove ? member.getValue() > low : member.getValue() >= low) && member.getValue() <= high)
                .sorted(Map.Entry.<LuaString, Double>comparingByValue()
                        .thenComparing(Map.Entry.comparingByKey(Store::compare)))
                .limit(args.narg() < limit ? Long.MAX_VALUE : integer(args, limit))
                .forEach(member -> {
                    found.rawset(next[0]++, member.getKey());
                    if (withScores) {
                        found.rawset(next[0]++, LuaString.valueOf(Lua.general(member.getValue())));
                    }
                });
        return found;
    }

    /** {@code key at at WITHSCORES}. */
    private static LuaValue zrevrange(Store store, Varargs args) {
        LuaTable found = new LuaTable();
        scores(store, args).entrySet().stream()
                .sorted(Map.Entry.<LuaString, Double>comparingByValue()
                        .thenComparing(Map.Entry.comparingByKey(Store::compare))
                        .reversed())
                .skip(integer(args, 3))
                .limit(1)
                .forEach(member -> {
                    found.rawset(1, member.getKey());
                    found.rawset(2, LuaString.valueOf(Lua.general(member.getValue())));
                });
        return found;
    }
}
