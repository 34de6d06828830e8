package io.ratelimited.benchmarks.overload;

import io.ratelimited.core.End;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.IntToDoubleFunction;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The instances of a service, behind a gate each, with what they depend on. */
final class Instances {

    enum Kind {
        /** One instance, whose dependency serves any number. */
        ONE,
        /** One instance, with 40 connections to its dependency. */
        CONNECTIONS,
        /** Four instances, whose calls run in one database. */
        FOUR,
        /** An instance that calls another one, which has a gate, too. */
        NESTED
    }

    interface Change {
        void apply(Instances instances);
    }

    private static final int CONNECTIONS = 40;

    private final Timeline timeline;
    private final Parameters parameters;
    private final Kind kind;
    private final List<Gate> gates = new ArrayList<>();
    private final List<Processors> processors = new ArrayList<>();
    private final Deque<Runnable> waiting = new ArrayDeque<>();
    private final Supplier<Gate> supplier;
    /** Threads of the server that are free, by instance; each call takes one before its gate decides. */
    private final int[] threads;
    /** Calls that wait for a thread, in the queue of the server that no gate sees. */
    private final List<Deque<Runnable>> accepted = new ArrayList<>();

    private int connections = CONNECTIONS;
    private double slowness = 1;

    Instances(
            Timeline timeline,
            Parameters parameters,
            Kind kind,
            boolean collapses,
            int threadsOfServer,
            Supplier<Gate> gate) {
        this.supplier = gate;
        this.timeline = timeline;
        this.parameters = parameters;
        this.kind = kind;
        IntToDoubleFunction efficiency =
                collapses ? running -> Math.min(1, Math.pow(4.0 * parameters.cores() / running, 2)) : running -> 1;
        int number = kind == Kind.FOUR ? 4 : 1;
        threads = new int[number];
        for (int i = 0; i < number; i++) {
            gates.add(gate.get());
            threads[i] = threadsOfServer;
            accepted.add(new ArrayDeque<>());
        }
        if (kind == Kind.NESTED) {
            gates.add(gate.get());
            processors.add(new Processors(timeline, 4.0 * parameters.cores(), n -> 1));
        }
        processors.add(new Processors(timeline, parameters.cores(), efficiency));
    }

    int size() {
        return kind == Kind.FOUR ? 4 : 1;
    }

    Gate gate(int instance) {
        return gates.get(instance);
    }

    /** Starts an instance again, whose gate knows nothing; its calls go on. */
    void restart(int instance) {
        gates.set(instance, supplier.get());
    }

    void slower(double times) {
        slowness = times;
    }

    void processors(double share) {
        processors.forEach(each -> each.cores(parameters.cores() * share));
    }

    void pause(long nanos) {
        processors.forEach(each -> each.pause(nanos));
    }

    /**
     * Makes a call.
     *
     * @param ended told how it has ended, and null when it is refused
     */
    void call(int instance, int rank, double cpu, double io, Consumer<@Nullable End> ended) {
        if (threads[instance] == 0) {
            accepted.get(instance).add(() -> onThread(instance, rank, cpu, io, ended));
        } else {
            onThread(instance, rank, cpu, io, ended);
        }
    }

    private void onThread(int instance, int rank, double cpu, double io, Consumer<@Nullable End> ended) {
        threads[instance]--;
        gated(instance, rank, cpu, io, how -> {
            threads[instance]++;
            Runnable next = threads[instance] == 1 ? accepted.get(instance).poll() : null;
            if (next != null) {
                timeline.after(0, next);
            }
            ended.accept(how);
        });
    }

    private void gated(int instance, int rank, double cpu, double io, Consumer<@Nullable End> ended) {
        Gate gate = gate(instance);
        Consumer<End> leave = gate.enter(rank);
        if (leave == null) {
            ended.accept(null);
            return;
        }
        long begun = timeline.now();
        Consumer<End> end = how -> {
            boolean late = timeline.now() - begun > parameters.deadline();
            // Ours finds out itself, the peers are told.
            leave.accept(how == End.ANSWERED && late ? lateEnd(gate) : how);
            ended.accept(how);
        };
        Processors last = processors.get(processors.size() - 1);
        if (kind == Kind.NESTED) {
            Processors outer = processors.get(0);
            outer.run(cpu, () -> inner(last, cpu, io, how -> outer.run(cpu, () -> end.accept(how))));
        } else {
            work(last, cpu, io, () -> end.accept(End.ANSWERED));
        }
    }

    private static End lateEnd(Gate gate) {
        return gate.knowsLate() ? End.ANSWERED : End.OVERLOADED;
    }

    private void inner(Processors own, double cpu, double io, Consumer<End> ended) {
        Consumer<End> leave = gates.get(1).enter(0);
        if (leave == null) {
            ended.accept(End.OVERLOADED);
            return;
        }
        long begun = timeline.now();
        work(own, cpu, io, () -> {
            boolean late = timeline.now() - begun > parameters.deadline();
            leave.accept(late ? lateEnd(gates.get(1)) : End.ANSWERED);
            ended.accept(End.ANSWERED);
        });
    }

    private void work(Processors own, double cpu, double io, Runnable done) {
        own.run(cpu / 2, () -> dependency(io, () -> own.run(cpu / 2, done)));
    }

    private void dependency(double io, Runnable done) {
        if (kind != Kind.CONNECTIONS) {
            timeline.after((long) (io * slowness), done);
        } else if (connections > 0) {
            connections--;
            timeline.after((long) (io * slowness), () -> {
                connections++;
                done.run();
                Runnable next = connections > 0 ? waiting.poll() : null;
                if (next != null) {
                    next.run();
                }
            });
        } else {
            waiting.add(() -> dependency(io, done));
        }
    }
}
