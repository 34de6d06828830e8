package io.ratelimited.redis.simulation;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.luaj.vm2.LuaString;

/** One server alone, or the primaries of a cluster, each with the keys of its slots. */
final class Servers {

    private static final int SLOTS = 8;
    private static final int NONE = -1;
    /** How often a move that has met a server which is away is tried again. */
    private static final long AGAIN = 50_000_000;

    private final World world;
    private final List<Server> all = new ArrayList<>();
    private final List<String> addresses = new ArrayList<>();
    /** By slot. */
    private final int[] owners = new int[SLOTS];
    /** By slot: where its keys are going. */
    private final int[] targets = new int[SLOTS];

    Servers(World world, int count, Supplier<Server> factory) {
        this.world = world;
        for (int i = 0; i < count; i++) {
            all.add(factory.get());
            addresses.add("server" + i);
        }
        for (int slot = 0; slot < SLOTS; slot++) {
            owners[slot] = slot % count;
            targets[slot] = NONE;
        }
    }

    boolean isCluster() {
        return all.size() > 1;
    }

    List<Server> all() {
        return all;
    }

    Server get(int number) {
        return all.get(number % all.size());
    }

    /** The server at an address; null if there is none any more. */
    @Nullable
    Server at(String address) {
        int number = addresses.indexOf(address);
        return number < 0 ? null : all.get(number);
    }

    Server of(String key) {
        return all.get(owners[slot(key)]);
    }

    /** The primary that took over has another address. */
    void promoted(Server server) {
        if (isCluster()) {
            addresses.replaceAll(address -> at(address) == server ? address + "'" : address);
        }
    }

    /** The addresses by slot, as the servers know them now. */
    String[] topology() {
        String[] known = new String[SLOTS];
        for (int slot = 0; slot < SLOTS; slot++) {
            known[slot] = addresses.get(owners[slot]);
        }
        return known;
    }

    static Set<String> addresses(String[] topology) {
        return new LinkedHashSet<>(List.of(topology));
    }

    /** By what stands in braces. */
    static int slot(String key) {
        int end = key.indexOf('}');
        String tag = end < 0 ? key : key.substring(key.indexOf('{') + 1, end);
        return Math.floorMod(tag.hashCode(), SLOTS);
    }

    /** Whether the server runs a command on these keys, which have one slot. */
    void route(Server server, List<LuaString> keys, boolean asking) {
        if (!isCluster()) {
            return;
        }
        int slot = slot(keys.get(0).tojstring());
        int number = all.indexOf(server);
        int target = targets[slot];
        if (owners[slot] != number && (target != number || !asking)) {
            throw new RedisError("MOVED " + slot + " " + addresses.get(owners[slot]));
        }
        if (target == NONE) {
            return;
        }
        Store store = server.store();
        long missing = keys.stream().filter(key -> store.get(key) == null).count();
        if (missing > 0 && missing < keys.size()) {
            throw new RedisError("TRYAGAIN Multiple keys request during rehashing of slot");
        }
        if (missing > 0 && owners[slot] == number) {
            throw new RedisError("ASK " + slot + " " + addresses.get(target));
        }
    }

    /** The slot of a key begins to move; half of its keys go after half of the time. */
    void move(String key, int distance, long nanos) {
        int slot = slot(key);
        int target = (owners[slot] + distance) % all.size();
        if (targets[slot] != NONE || target == owners[slot]) {
            return;
        }
        targets[slot] = target;
        world.at(world.now() + nanos / 2, () -> {
            if (isReachable(slot)) {
                List<LuaString> keys = keys(slot);
                keys.subList(0, (keys.size() + 1) / 2).forEach(each -> move(each, slot));
            }
        });
        world.at(world.now() + nanos, () -> end(slot));
    }

    private void end(int slot) {
        if (!isReachable(slot)) {
            world.at(world.now() + AGAIN, () -> end(slot));
            return;
        }
        keys(slot).forEach(each -> move(each, slot));
        owners[slot] = targets[slot];
        targets[slot] = NONE;
    }

    private boolean isReachable(int slot) {
        Server from = all.get(owners[slot]);
        Server to = all.get(targets[slot]);
        return !from.isDown() && !from.isFrozen() && !to.isDown() && !to.isFrozen();
    }

    private List<LuaString> keys(int slot) {
        return all.get(owners[slot]).store().keys().stream()
                .filter(key -> slot(key.tojstring()) == slot)
                .toList();
    }

    private void move(LuaString key, int slot) {
        all.get(owners[slot]).store().move(key, all.get(targets[slot]).store());
    }
}
