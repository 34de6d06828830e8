package io.ratelimited.benchmarks;

import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What a request costs the server in processor time, garbage collection and the kernel's part included: without the
 * starter, with an aspect in its place that only proceeds and two fixed header fields, with the starter but without a limit,
 * and with a limit by address that sends its header fields. One process serves all kinds, which take turns every few
 * requests: the compiler has done the same for each of them, and what else the machine does falls on all alike. Without the
 * starter there are two, whose difference is the error of the measurement. Reads {@code /proc}, so Linux only.
 */
public final class RequestCost {

    private static final List<String> KINDS = List.of("without", "again", "aspect", "idle", "keyed");
    private static final List<String> TITLES = List.of(
            "without the starter",
            "the same once more",
            "an aspect that only proceeds, and two fixed header fields",
            "with it, no limit",
            "with it, `key = \"clientIp\"` and header fields");

    private RequestCost() {}

    /**
     * Takes the number of people that an answer lists (500 take some 150 microseconds), of processes, of requests of each
     * kind before measuring, of rounds, and of requests of each kind in a round.
     */
    public static void main(String[] args) throws IOException {
        int[] numbers = Arrays.stream(args).mapToInt(Integer::parseInt).toArray();
        int forks = numbers[1];
        double[][] micros = new double[forks][];
        double[][] added = new double[forks][];
        for (int fork = 0; fork < forks; fork++) {
            double[][] rounds = measure(numbers[0], numbers[2], numbers[3], numbers[4]);
            micros[fork] = medians(rounds);
            for (double[] round : rounds) {
                double without = round[0];
                Arrays.setAll(round, kind -> round[kind] - without);
            }
            added[fork] = medians(rounds);
        }
        System.out.println("| Processor time of a request, µs | | added | each process | ÷ without |");
        System.out.println("|---|---:|---:|---|---:|");
        double without = medians(micros)[0];
        for (int kind = 0; kind < KINDS.size(); kind++) {
            System.out.printf(
                    Locale.ROOT,
                    "| %s | %.1f | %+.1f | %s | %.3f |%n",
                    TITLES.get(kind),
                    medians(micros)[kind],
                    medians(added)[kind],
                    Arrays.stream(sorted(added, kind))
                            .mapToObj(micro -> String.format(Locale.ROOT, "%+.1f", micro))
                            .collect(Collectors.joining(" ")),
                    1 + medians(added)[kind] / without);
        }
    }

    /** The median of each column. */
    private static double[] medians(double[][] rows) {
        double[] medians = new double[KINDS.size()];
        Arrays.setAll(medians, column -> {
            double[] sorted = sorted(rows, column);
            return (sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2;
        });
        return medians;
    }

    private static double[] sorted(double[][] rows, int column) {
        return Arrays.stream(rows).mapToDouble(row -> row[column]).sorted().toArray();
    }

    /** Microseconds of processor time a request, of each round and kind. */
    private static double[][] measure(int people, int warmup, int rounds, int requests) throws IOException {
        Process process = new ProcessBuilder(command(people))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        List<Connection> connections = new ArrayList<>();
        try {
            BufferedReader ports = process.inputReader(StandardCharsets.UTF_8);
            for (String kind : KINDS) {
                String port = ports.readLine();
                if (port == null) {
                    throw new IOException("the application " + kind + " did not start");
                }
                connections.add(new Connection(Integer.parseInt(port)));
            }
            for (int i = 0; i < warmup; i += requests) {
                for (Connection connection : connections) {
                    connection.get(requests);
                }
            }
            double[][] micros = new double[rounds][KINDS.size()];
            for (int round = 0; round < rounds; round++) {
                for (int i = 0; i < KINDS.size(); i++) {
                    int kind = (i + round) % KINDS.size();
                    long before = processorNanos(process);
                    connections.get(kind).get(requests);
                    micros[round][kind] = (processorNanos(process) - before) / 1e3 / requests;
                }
            }
            return micros;
        } finally {
            for (Connection connection : connections) {
                connection.close();
            }
            process.destroy();
        }
    }

    private static List<String> command(int people) {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xms512m",
                "-Xmx512m",
                "-XX:+UseSerialGC",
                "-Dpeople=" + people,
                "-cp",
                System.getProperty("java.class.path"),
                RequestCostServer.class.getName()));
        command.addAll(KINDS);
        return command;
    }

    /** Of all threads but those of the compiler. */
    private static long processorNanos(Process process) throws IOException {
        try (Stream<Path> threads = Files.list(Path.of("/proc", String.valueOf(process.pid()), "task"))) {
            long sum = 0;
            for (Path thread : threads.toList()) {
                sum += processorNanos(thread);
            }
            return sum;
        }
    }

    private static long processorNanos(Path thread) throws IOException {
        try {
            if (Files.readString(thread.resolve("comm")).contains("Compiler")) {
                return 0;
            }
            String time = Files.readString(thread.resolve("schedstat"));
            return Long.parseLong(time.substring(0, time.indexOf(' ')));
        } catch (IOException ex) {
            if (Files.exists(thread)) {
                throw ex;
            }
            return 0; // a thread of the compiler that has ended since it was listed: no other ends
        }
    }

    /** A connection that is kept open. */
    private static final class Connection implements AutoCloseable {

        private static final byte[] REQUEST =
                "GET /people HTTP/1.1\r\nHost: localhost\r\n\r\n".getBytes(StandardCharsets.US_ASCII);
        private static final String LENGTH = "Content-Length: ";

        private final Socket socket;
        private final OutputStream out;
        private final InputStream in;

        private Connection(int port) throws IOException {
            socket = new Socket(InetAddress.getLoopbackAddress(), port);
            socket.setTcpNoDelay(true);
            out = socket.getOutputStream();
            in = new BufferedInputStream(socket.getInputStream());
        }

        private void get(int times) throws IOException {
            for (int i = 0; i < times; i++) {
                out.write(REQUEST);
                int length = 0;
                for (String line = line(); !line.isEmpty(); line = line()) {
                    if (line.startsWith(LENGTH)) {
                        length = Integer.parseInt(line.substring(LENGTH.length()));
                    }
                }
                if (length == 0 || in.readNBytes(length).length != length) {
                    throw new IOException("not the expected answer");
                }
            }
        }

        private String line() throws IOException {
            StringBuilder line = new StringBuilder();
            for (int c = in.read(); c != '\n'; c = in.read()) {
                if (c < 0) {
                    throw new IOException("the server closed the connection");
                }
                if (c != '\r') {
                    line.append((char) c);
                }
            }
            return line.toString();
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }
    }
}
