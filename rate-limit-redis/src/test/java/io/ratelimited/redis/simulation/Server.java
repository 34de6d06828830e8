package io.ratelimited.redis.simulation;

import io.ratelimited.redis.internals.connection.Script;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongSupplier;
import org.luaj.vm2.LuaString;
import org.luaj.vm2.LuaTable;
import org.luaj.vm2.LuaValue;
import org.luaj.vm2.Varargs;

/** A server that runs the shipped scripts on keys in memory, with the faults of a server. */
final class Server {

    private static final LuaString TIME = LuaString.valueOf("TIME");
    private static final Map<String, Script> BY_DIGEST = new HashMap<>();

    static {
        List.of(Script.DECIDE, Script.HEARTBEAT, Script.CHANGES, Script.PAUSES, Script.PROBE)
                .forEach(script -> BY_DIGEST.put(script.digest(), script));
    }

    private final Lua lua;
    /** Microseconds since 1970. */
    private final LongSupplier clock;

    private final Set<String> known = new HashSet<>();
    private final List<Runnable> backlog = new ArrayList<>();
    private Store store = new Store();
    private boolean down;
    private boolean frozen;
    private boolean readOnly;
    private boolean outOfMemory;
    private boolean refundsTwice;
    private boolean timeRefused;
    private int commands;
    /** The script that runs has written. */
    private boolean wrote;

    Server(Lua lua, LongSupplier clock) {
        this.lua = lua;
        this.clock = clock;
    }

    /** Runs a command that has arrived, now or when the server is no longer frozen. */
    void arrived(Runnable command) {
        if (frozen) {
            backlog.add(command);
        } else if (!down) {
            command.run();
        }
    }

    List<Object> eval(String digest, boolean withText, List<LuaString> keys, List<LuaString> args) {
        commands++;
        Script script = BY_DIGEST.get(digest);
        if (script == null || (!withText && !known.contains(digest))) {
            throw new RedisError("NOSCRIPT No matching script. Please use EVAL.");
        }
        known.add(digest);
        long micros = clock.getAsLong();
        store.at(micros / 1000);
        wrote = false;
        if (refundsTwice && args.size() > 1 && args.get(1).tojstring().equals("cancel q")) {
            lua.run(script.text(), keys, args, command -> run(micros, command));
        }
        return lua.run(script.text(), keys, args, command -> run(micros, command));
    }

    private LuaValue run(long micros, Varargs args) {
        LuaString name = args.checkstring(1);
        if (name.equals(TIME)) {
            if (timeRefused) {
                throw new RedisError("ERR This Redis command is not allowed from script");
            }
            LuaTable time = new LuaTable(2, 0);
            time.rawset(1, LuaString.valueOf(Long.toString(micros / 1_000_000)));
            time.rawset(2, LuaString.valueOf(Long.toString(micros % 1_000_000)));
            return time;
        }
        if (readOnly && Commands.writes(name)) {
            throw new RedisError("READONLY You can't write against a read only replica.");
        }
        // A script that has written goes on.
        if (outOfMemory && !wrote && Commands.grows(name)) {
            throw new RedisError("OOM command not allowed when used memory > 'maxmemory'.");
        }
        wrote |= Commands.writes(name);
        return Commands.run(store, args);
    }

    List<Object> time() {
        commands++;
        long micros = clock.getAsLong();
        return List.of(Long.toString(micros / 1_000_000), Long.toString(micros % 1_000_000));
    }

    long delete(LuaString key) {
        commands++;
        if (readOnly) {
            throw new RedisError("READONLY You can't write against a read only replica.");
        }
        store.at(clock.getAsLong() / 1000);
        return store.remove(key) ? 1 : 0;
    }

    void freeze() {
        frozen = true;
    }

    /** Goes on, with all that has arrived meanwhile first. */
    void thaw() {
        frozen = false;
        List<Runnable> arrived = List.copyOf(backlog);
        backlog.clear();
        arrived.forEach(this::arrived);
    }

    void stop() {
        down = true;
        frozen = false;
        backlog.clear();
    }

    /** Starts with the keys of a store, and without scripts. */
    void start(Store from) {
        down = false;
        store = from;
        known.clear();
    }

    void forgetScripts() {
        known.clear();
    }

    void readOnly(boolean value) {
        readOnly = value;
    }

    void outOfMemory(boolean value) {
        outOfMemory = value;
    }

    void timeRefused(boolean value) {
        timeRefused = value;
    }

    /** Whether what is given back of a log arrives twice. */
    void refundsTwice(boolean value) {
        refundsTwice = value;
    }

    boolean isDown() {
        return down;
    }

    boolean isFrozen() {
        return frozen;
    }

    Store store() {
        store.at(clock.getAsLong() / 1000);
        return store;
    }

    /** Commands run. */
    int commands() {
        return commands;
    }
}
