package io.ratelimited.benchmarks.real;

import io.ratelimited.benchmarks.Plot;
import io.ratelimited.benchmarks.Plot.Panel;
import io.ratelimited.benchmarks.Plot.Style;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Prints the table of what {@link RealOverload} printed, and draws its plot: {@code OverloadTable RESULTS PLOT}. */
public final class OverloadTable {

    private static final Map<String, Style> STYLES =
            Map.of("none", Style.FLOOR, "adaptive", Style.OURS, "200", Style.PEER);

    private OverloadTable() {}

    /** Takes the file of the results and the file to draw into. */
    public static void main(String[] args) throws IOException {
        List<String> lines = Files.readAllLines(Path.of(args[0]));
        String[] first = lines.get(0).split(" ", 2);
        int seconds = Integer.parseInt(first[0]);
        System.out.println("On " + first[1] + ", in phases of " + seconds + " s:\n");
        System.out.println(
                "| threads | limit | in time/s | refused/s | no answer/s | p50 | p99 | in time/s afterwards |");
        System.out.println("|---|---|---|---|---|---|---|---|");
        Plot plot = new Plot(true);
        StringBuilder text = new StringBuilder(
                "Answers in time per second, of three times as many requests as the pool can serve, on " + first[1]
                        + ":");
        Map<String, Panel> panels = new LinkedHashMap<>();
        for (String line : lines.subList(1, lines.size())) {
            String[] phases = line.split(" \\| ", -1);
            String[] name = phases[0].split(" ", -1);
            String[] busy = phases[2].split(" ", -1);
            String[] after = phases[4].split(" ", -1);
            System.out.println("| " + name[0] + " | " + name[1] + " | " + busy[1] + " of " + busy[0] + " | " + busy[2]
                    + " | " + busy[3] + " | " + busy[4] + " ms | " + busy[5] + " ms | " + after[1] + " of " + after[0]
                    + " |");
            List<Double> points = new ArrayList<>();
            for (String phase : List.of(phases).subList(1, phases.length)) {
                String[] words = phase.split(" ", -1);
                for (String second : List.of(words).subList(6, words.length)) {
                    points.add(Double.valueOf(second));
                }
            }
            Panel panel = panels.computeIfAbsent(
                    name[0],
                    threads -> plot.panel("answers in time/s, " + threads + " threads", marks(seconds, points.size()))
                            .band(seconds, 3 * seconds, "three times what the pool serves"));
            String limit = switch (name[1]) {
                case "none" -> "no limit";
                case "adaptive" -> "ADAPTIVE";
                default -> name[1] + " at once";
            };
            panel.line(limit, STYLES.getOrDefault(name[1], Style.OTHER), points);
            text.append(" " + name[0] + " threads, " + limit + ": " + busy[1] + ";");
        }
        Files.writeString(Path.of(args[1]), plot.svg(text.toString()));
    }

    /** A label for each second: only the phases have one. */
    private static List<String> marks(int seconds, int size) {
        List<String> marks = new ArrayList<>();
        for (int second = 0; second < size; second++) {
            marks.add(second % seconds == 0 ? second + " s" : "");
        }
        return marks;
    }
}
