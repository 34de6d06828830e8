package io.ratelimited.spring.internals.client;

import java.util.LinkedHashSet;
import java.util.Set;

/**
 * The calls that a quota holds: those to one place at first, and those below the path that all its places share when responses
 * to other places of the host name it, too. A place is the host, the path and the method of a call, as in {@code
 * api.partner.example:443/orders/GET}.
 *
 * @param shared one place; or the start of places, which ends with a slash
 * @param without the last places whose responses do not name the quota, the oldest first
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

    /** Returns whether the scope is on the host of a place. */
    boolean isOnHostOf(String place) {
        return place.startsWith(shared.substring(0, shared.indexOf('/') + 1));
    }

    /** Returns the scope that covers a place of its host, too. */
    Scope including(String place) {
        if (without.contains(place)) {
            Set<String> others = new LinkedHashSet<>(without);
            others.remove(place);
            return new Scope(shared, others);
        }
        int end = 0;
        for (int i = 0; i < Math.min(shared.length(), place.length()) && shared.charAt(i) == place.charAt(i); i++) {
            end = shared.charAt(i) == '/' ? i + 1 : end;
        }
        return new Scope(shared.substring(0, end), without);
    }

    /** Returns the scope without a place. Of too many, it covers the one again that it has been without for longest. */
    Scope excluding(String place) {
        Set<String> exceptions = new LinkedHashSet<>(without);
        exceptions.add(place);
        if (exceptions.size() > MOST_EXCEPTIONS) {
            exceptions.remove(exceptions.iterator().next());
        }
        return new Scope(shared, exceptions);
    }

    boolean isOnePlace() {
        return !shared.endsWith("/");
    }
}
