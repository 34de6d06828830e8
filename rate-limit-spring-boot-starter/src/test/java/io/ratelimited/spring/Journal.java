package io.ratelimited.spring;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;

/** What the bodies of limited methods did, and what they wait for. */
public final class Journal {

    /** Arguments of the calls whose body ran, and the threads they ran on. */
    final List<String> bodies = new CopyOnWriteArrayList<>();

    final List<Thread> threads = new CopyOnWriteArrayList<>();

    /** The result of calls that stay in flight. */
    volatile CompletableFuture<String> flight = new CompletableFuture<>();

    public String body(String id) {
        threads.add(Thread.currentThread());
        bodies.add(id);
        return "body " + id;
    }

    public CompletableFuture<String> fly(String id) {
        bodies.add(id);
        return flight;
    }
}
