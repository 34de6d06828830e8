package io.ratelimited.benchmarks.real;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Overload once for real: a server in one process, its load in another, for each kind of limit, with threads of the platform
 * and, where the JDK has them, virtual ones. Prints a table. Takes the seconds of a phase.
 */
public final class RealOverload {

    private static final List<String> LIMITS =
            List.of("none", "200", String.valueOf(2 * OverloadServer.CONNECTIONS), "adaptive");

    /** Requests a second that the pool can serve. */
    private static final int CAPACITY = OverloadServer.CONNECTIONS * 1000 / OverloadServer.BUSY_MILLIS;

    private RealOverload() {}

    /** Runs all rows one after the other. */
    public static void main(String[] args) throws IOException, InterruptedException {
        int seconds = Integer.parseInt(args[0]);
        System.out.println(
                "| threads | limit | in time/s | refused/s | no answer/s | p50 | p99 | in time/s afterwards |");
        System.out.println("|---|---|---|---|---|---|---|---|");
        for (boolean virtual : Runtime.version().feature() >= 21 ? List.of(false, true) : List.of(false)) {
            for (String limit : LIMITS) {
                row(limit, virtual, seconds);
            }
        }
    }

    private static void row(String limit, boolean virtual, int seconds) throws IOException, InterruptedException {
        Process server = start(OverloadServer.class, List.of(limit, String.valueOf(virtual)));
        try (BufferedReader out = server.inputReader()) {
            String port = out.readLine();
            List<String> phases = List.of(
                    port,
                    seconds + ":" + CAPACITY / 2,
                    2 * seconds + ":" + 3 * CAPACITY,
                    seconds / 2 + ":" + CAPACITY / 2,
                    seconds / 2 + ":" + CAPACITY / 2);
            List<String[]> lines = new ArrayList<>();
            Process load = start(OverloadLoad.class, phases);
            try (BufferedReader results = load.inputReader()) {
                results.lines().forEach(line -> lines.add(line.split(" ", -1)));
            }
            load.waitFor();
            String[] busy = lines.get(1);
            String[] after = lines.get(3);
            System.out.println("| " + (virtual ? "virtual" : "platform") + " | " + limit + " | " + busy[1] + " of "
                    + busy[0] + " | " + busy[2] + " | " + busy[3] + " | " + busy[4] + " ms | " + busy[5] + " ms | "
                    + after[1] + " of " + after[0] + " |");
        } finally {
            server.getOutputStream().close();
            server.waitFor();
        }
    }

    private static Process start(Class<?> main, List<String> arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx512m",
                "-cp",
                System.getProperty("java.class.path"),
                main.getName()));
        command.addAll(arguments);
        return new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }
}
