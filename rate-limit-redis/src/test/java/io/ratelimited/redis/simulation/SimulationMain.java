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
        long commands = 0, decisions = 0; int bad = 0; double worst = 0;
        Map<String, Integer> kinds = new TreeMap<>();
        for (long seed = first; seed < first + count; seed++) {
            Simulation s = new Simulation(Plan.small(seed), lua, log);
            Simulation.Outcome o = s.run();
            commands += o.commands(); decisions += o.decisions(); worst = Math.max(worst, o.worst());
            if (!o.violations().isEmpty()) {
                bad++;
                String v = o.violations().get(0).replaceAll("[0-9.]+", "#").replaceAll(":.*", "");
                kinds.merge(v + " [" + o.plan().limit().algorithm() + "]", 1, Integer::sum);
                if (bad <= Integer.parseInt(args.length > 2 ? args[2] : "3")) {
                    System.out.println(o.plan());
                    o.violations().forEach(x -> System.out.println("  !! " + x));
                    s.calls().forEach(c -> System.out.println("    " + c));
                }
            }
        }
        double sec = (System.nanoTime() - start) / 1e9;
        System.out.printf("%d schedules in %.1f s (%.0f a minute), %d decisions, %d commands, %d bad, worst %.3f%n", count, sec, count / sec * 60, decisions, commands, bad, worst);
        kinds.forEach((k, v) -> System.out.println(v + "  " + k));
    }
}
