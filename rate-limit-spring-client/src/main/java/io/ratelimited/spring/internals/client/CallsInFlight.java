package io.ratelimited.spring.internals.client;

import io.ratelimited.spring.internals.client.ClientPace.Pass;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.Set;

/** The calls that have been sent and have not ended, and those that have ended since the oldest of them. Not thread-safe. */
final class CallsInFlight {

    /** Of more calls that ended, those before count for every place. */
    private static final int MOST_ENDED = 1_000;

    private final Set<Pass> sent = new LinkedHashSet<>();
    /** The places of the calls that ended last, in order. */
    private final Deque<String> ended = new ArrayDeque<>();
    /** Number of all calls that have ended. */
    private long endedCalls;

    Pass sent(String place, long now) {
        Pass pass = new Pass(place, now, endedCalls);
        sent.add(pass);
        return pass;
    }

    /** Removes a call that was not made. */
    void giveBack(Pass pass) {
        sent.remove(pass);
    }

    void ended(Pass pass) {
        long needed = 1 + endedCalls - sent.iterator().next().endedBefore();
        sent.remove(pass);
        ended.add(pass.place());
        endedCalls++;
        while (ended.size() > Math.min(MOST_ENDED, needed)) {
            ended.remove();
        }
    }

    /** Returns the number of all calls that have ended. */
    long ended() {
        return endedCalls;
    }

    /** Returns how many calls had ended when the oldest of those in flight was sent. */
    long endedBeforeOldest() {
        return sent.isEmpty() ? endedCalls : sent.iterator().next().endedBefore();
    }

    /** Returns the number of the calls in flight to a scope. */
    long inFlight(Scope scope) {
        return sent.stream().filter(pass -> scope.covers(pass.place())).count();
    }

    /** Returns the number of the calls in flight to a scope that wait for the limits of this side. */
    long unsent(Scope scope) {
        return sent.stream()
                .filter(pass -> pass.isUnsent() && scope.covers(pass.place()))
                .count();
    }

    /** Returns when the last call in flight to a scope was sent; another time without such a call, or if that is later. */
    long lastSent(Scope scope, long otherwise) {
        long last = otherwise;
        for (Pass pass : sent) {
            if (scope.covers(pass.place())) {
                last = ClientPace.later(last, pass.sentAt());
            }
        }
        return last;
    }

    /** Returns how many calls to a scope have ended since one was sent that has just ended, without that one. */
    long endedSince(Pass pass, Scope scope) {
        long since = endedCalls - pass.endedBefore();
        long others = Math.max(0, since - ended.size());
        Iterator<String> latest = ended.descendingIterator();
        for (long i = since - others; i > 0; i--) {
            others += scope.covers(latest.next()) ? 1 : 0;
        }
        return others - 1;
    }
}
