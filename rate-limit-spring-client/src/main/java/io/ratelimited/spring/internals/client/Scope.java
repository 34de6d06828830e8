package io.ratelimited.spring.internals.client;

import java.util.HashSet;
import java.util.Set;

/**
 * The calls that a quota holds: those to one place at first, and those below the path that all its places share when responses
 * to other places name it, too. A place is the host, the path and the method of a call, as in {@code
 * api.partner.example:443/orders/GET}.
 *
 * @param shared one place; or the start of places, which ends with a slash or is empty
 * @param without places whose responses name other quotas instead
 */
record Scope(String shared, Set<String> without) {

    private static final int MOST_EXCEPTIONS = 20;

    static Scope of(String place) {
        return new Scope(place, Set.of());
    }

    boolean covers(String place) {
        boolean within = isOnePlace() ? place.equals(shared) : place.startsWith(shared);
        return within && !without.contains(place);
    }

    /** Returns the scope that covers a place, too. */
    Scope including(String place) {
        if (without.contains(place)) {
            Set<String> others = new HashSet<>(without);
            others.remove(place);
            return new Scope(shared, others);
        }
        int end = 0;
        for (int i = 0; i < Math.min(shared.length(), place.length()) && shared.charAt(i) == place.charAt(i); i++) {
            end = shared.charAt(i) == '/' ? i + 1 : end;
        }
        return new Scope(shared.substring(0, end), without);
    }

    /** Returns the scope without a place. */
    Scope excluding(String place) {
        Set<String> exceptions = new HashSet<>(without);
        exceptions.add(place);
        return new Scope(shared, exceptions);
    }

    /** Returns whether the scope can be without another of its places. */
    boolean canExclude() {
        return !isOnePlace() && without.size() < MOST_EXCEPTIONS;
    }

    private boolean isOnePlace() {
        return !shared.isEmpty() && !shared.endsWith("/");
    }
}
