package io.ratelimited.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.stream.DoubleStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** What was measured, of one directory of result files. */
final class Results {

    private final List<Result> all = new ArrayList<>();

    /** Reads every JSON file that JMH wrote into a directory. */
    Results(Path directory) throws IOException {
        JsonMapper json = new JsonMapper();
        try (Stream<Path> files = Files.list(directory)) {
            for (Path file : files.filter(f -> f.toString().endsWith(".json")).toList()) {
                for (JsonNode node : json.readTree(file)) {
                    all.add(result(node));
                }
            }
        }
    }

    private static Result result(JsonNode node) {
        List<Double> forks = new ArrayList<>();
        for (JsonNode fork : node.get("primaryMetric").get("rawData")) {
            forks.add(median(fork.valueStream().mapToDouble(JsonNode::asDouble)));
        }
        JsonNode bytes = node.get("secondaryMetrics").get("gc.alloc.rate.norm");
        return new Result(
                suite(node),
                method(node),
                parameters(node),
                node.get("threads").asInt(),
                median(forks.stream().mapToDouble(Double::doubleValue)),
                bytes == null ? Double.NaN : bytes.get("score").asDouble());
    }

    private static String suite(JsonNode node) {
        String name = node.get("benchmark").asString();
        int dot = name.lastIndexOf('.');
        return name.substring(name.lastIndexOf('.', dot - 1) + 1, dot).replace("Benchmark", "");
    }

    private static String method(JsonNode node) {
        String name = node.get("benchmark").asString();
        return name.substring(name.lastIndexOf('.') + 1);
    }

    private static Map<String, String> parameters(JsonNode node) {
        Map<String, String> parameters = new TreeMap<>();
        JsonNode given = node.get("params");
        if (given != null) {
            given.properties()
                    .forEach(entry ->
                            parameters.put(entry.getKey(), entry.getValue().asString()));
        }
        return parameters;
    }

    private static double median(DoubleStream values) {
        double[] sorted = values.sorted().toArray();
        return (sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2;
    }

    /**
     * Finds a result.
     *
     * @param parameters those that must be equal, as {@code name=value}
     * @return null when it was not measured
     */
    @Nullable
    Result find(String suite, String method, int threads, String... parameters) {
        return all.stream()
                .filter(result -> result.suite.equals(suite)
                        && result.method.equals(method)
                        && result.threads == threads
                        && Arrays.stream(parameters).allMatch(result::has))
                .findFirst()
                .orElse(null);
    }

    boolean has(String suite) {
        return all.stream().anyMatch(result -> result.suite.equals(suite));
    }

    /**
     * One line of a result file.
     *
     * @param nanos per call, or calls a second where throughput was measured: the median of the forks' medians
     * @param bytes allocated per call; NaN when not measured
     */
    record Result(
            String suite, String method, Map<String, String> parameters, int threads, double nanos, double bytes) {

        private boolean has(String parameter) {
            int equals = parameter.indexOf('=');
            return Objects.equals(parameters.get(parameter.substring(0, equals)), parameter.substring(equals + 1));
        }
    }
}
