package io.ratelimited.benchmarks.real;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Overload once for real: a server in one process, its load in another, for each kind of limit, with threads of the platform
 * and, where the JDK has them, virtual ones. Prints what {@link OverloadTable} takes. Takes the seconds of a phase and the JDBC
 * URL of a PostgreSQL; without it, the pool is one that is as slow.
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
        List<String> url = List.of(args).subList(1, args.length);
        System.out.println(seconds + (url.isEmpty() ? " a pool that is as slow" : " PostgreSQL"));
        for (boolean virtual : Runtime.version().feature() >= 21 ? List.of(false, true) : List.of(false)) {
            for (String limit : LIMITS) {
                row(limit, virtual, seconds, url);
            }
        }
    }

    private static void row(String limit, boolean virtual, int seconds, List<String> url)
            throws IOException, InterruptedException {
        List<String> arguments = new ArrayList<>(List.of(limit, String.valueOf(virtual)));
        arguments.addAll(url);
        Process server = start(OverloadServer.class, arguments);
        try (BufferedReader out = server.inputReader()) {
            String port = out.readLine();
            List<String> phases = List.of(
                    port,
                    seconds + ":" + CAPACITY / 2,
                    2 * seconds + ":" + 3 * CAPACITY,
                    seconds / 2 + ":" + CAPACITY / 2,
                    seconds / 2 + ":" + CAPACITY / 2);
            Process load = start(OverloadLoad.class, phases);
            try (BufferedReader results = load.inputReader()) {
                System.out.println((virtual ? "virtual" : "platform") + " " + limit + " | "
                        + results.lines().collect(Collectors.joining(" | ")));
            }
            load.waitFor();
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
