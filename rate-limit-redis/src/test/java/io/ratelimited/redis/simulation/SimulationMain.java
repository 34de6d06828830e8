package io.ratelimited.redis.simulation;

import java.util.Map;
import java.util.TreeMap;

public final class SimulationMain {
    public static void main(String[] args) {
        long first = Long.parseLong(args[0]);
        long count = Long.parseLong(args[1]);
        Lua lua = new Lua();
        LogProbe log = new LogProbe();
        long start = System.nanoTime();
        long commands = 0, decisions = 0; int bad = 0; double worst = 0, half = 0;
        Map<String, Integer> kinds = new TreeMap<>();
        for (long seed = first; seed < first + count; seed++) {
            if (seed == first + count / 2) half = java.lang.management.ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() / 1e9;
            Simulation s = new Simulation(Plan.small(seed), lua, log);
            Simulation.Outcome o = s.run();
            commands += o.commands(); decisions += o.decisions(); worst = Math.max(worst, o.worst());
            if (!o.violations().isEmpty()) {
                bad++;
                String v = o.violations().get(0).replaceAll("[0-9.]+", "#").replaceAll(":.*", "");
                String faults = o.plan().steps().stream().filter(x -> x.kind().isFault()).map(x -> x.kind().name()).distinct().sorted().collect(java.util.stream.Collectors.joining(" "));
                int seen = kinds.merge(v + " [" + o.plan().limit().algorithm() + "]", 1, Integer::sum);
                System.out.println("BAD " + seed + " " + o.plan().limit().algorithm() + " " + v + " | " + faults);
                if (count == 1) {
                    System.out.println(o.plan());
                    s.calls().forEach(c -> System.out.println("    " + c));
                    o.violations().forEach(x -> System.out.println("  !! " + x));
                }
            }
        }
        double cpu = java.lang.management.ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() / 1e9; System.out.printf("cpu %.1f s, %.0f a minute of cpu; last half: %.0f%n", cpu, count / cpu * 60, count / 2 / (cpu - half) * 60);
        double sec = (System.nanoTime() - start) / 1e9;
        System.out.printf("%d schedules in %.1f s (%.0f a minute), %d decisions, %d commands, %d bad, worst %.3f%n", count, sec, count / sec * 60, decisions, commands, bad, worst);
        kinds.forEach((k, v) -> System.out.println(v + "  " + k));
    }
}
