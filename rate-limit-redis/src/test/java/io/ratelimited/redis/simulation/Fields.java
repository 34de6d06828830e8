package io.ratelimited.redis.simulation;

import org.luaj.vm2.LuaString;
import org.luaj.vm2.LuaTable;
import org.luaj.vm2.LuaValue;
import org.luaj.vm2.Varargs;

/** A table whose fields are found twice as fast as in one of LuaJ. Nothing iterates over them. Public for the scripts. */
public final class Fields extends LuaTable {

    private LuaString[] names = new LuaString[8];
    private LuaValue[] values = new LuaValue[8];
    private int size;

    private Fields(int elements) {
        super(elements, 0);
    }

    /** Stands in for {@link LuaValue#tableOf(int, int)} in compiled scripts. */
    public static LuaTable tableOf(int elements, int fields) {
        return new Fields(elements);
    }

    /** Where a field is, or where it would be. */
    private int find(LuaString name) {
        int mask = names.length - 1;
        int at = name.hashCode() & mask;
        for (LuaString next = names[at]; next != null && !next.raweq(name); next = names[at]) {
            at = (at + 1) & mask;
        }
        return at;
    }

    @Override
    public LuaValue get(LuaValue key) {
        if (!(key instanceof LuaString)) {
            return super.get(key);
        }
        LuaValue value = hashget(key);
        return value.isnil() && m_metatable != null ? gettable(this, key) : value;
    }

    @Override
    public void set(LuaValue key, LuaValue value) {
        if (key instanceof LuaString) {
            hashset(key, value);
        } else {
            super.set(key, value);
        }
    }

    @Override
    protected LuaValue hashget(LuaValue key) {
        if (!(key instanceof LuaString name)) {
            return super.hashget(key);
        }
        LuaValue value = values[find(name)];
        return value == null ? NIL : value;
    }

    @Override
    public void hashset(LuaValue key, LuaValue value) {
        if (!(key instanceof LuaString name)) {
            super.hashset(key, value);
            return;
        }
        int at = find(name);
        values[at] = value;
        if (names[at] == null) {
            names[at] = name;
            if (++size > names.length / 4 * 3) {
                grow();
            }
        }
    }

    private void grow() {
        LuaString[] oldNames = names;
        LuaValue[] oldValues = values;
        names = new LuaString[2 * oldNames.length];
        values = new LuaValue[names.length];
        for (int i = 0; i < oldNames.length; i++) {
            if (oldNames[i] != null) {
                int at = find(oldNames[i]);
                names[at] = oldNames[i];
                values[at] = oldValues[i];
            }
        }
    }

    @Override
    public Varargs next(LuaValue key) {
        if (size > 0) {
            throw new IllegalStateException("the simulation iterates over no fields");
        }
        return super.next(key);
    }
}
