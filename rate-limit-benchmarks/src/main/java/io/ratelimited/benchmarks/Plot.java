package io.ratelimited.benchmarks;

import io.ratelimited.benchmarks.Results.Result;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Panels of lines side by side, in nanoseconds per call, as an SVG that is readable on light and on dark. */
final class Plot {

    private static final int WIDTH = 300;
    private static final int HEIGHT = 240;
    private static final int LEFT = 48;
    private static final int TOP = 34;
    private static final int BOTTOM = 46;
    private static final int RIGHT = 14;

    private final List<Panel> panels = new ArrayList<>();

    /** Adds a panel with a point for each label. */
    Panel panel(String title, List<String> labels) {
        Panel panel = new Panel(title, labels);
        panels.add(panel);
        return panel;
    }

    String svg() {
        StringBuilder svg = new StringBuilder();
        int width = WIDTH * panels.size();
        svg.append("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + width + " " + HEIGHT
                + "\" role=\"img\" aria-label=\"Nanoseconds per call as the work grows\">\n"
                + "<style>\n"
                + "  text { font: 11px system-ui, sans-serif; fill: #333 }\n"
                + "  .title { font-size: 13px; font-weight: 600 }\n"
                + "  .grid { stroke: #ccc; stroke-width: 1 }\n"
                + "  polyline { fill: none; stroke-width: 2 }\n"
                + "  .floor { stroke: #777 } .ours { stroke: #0b62c4 }\n"
                + "  circle { stroke: none } circle.floor { fill: #777 } circle.ours { fill: #0b62c4 }\n"
                + "  text.floor { fill: #666; stroke: none } text.ours { fill: #0b62c4; stroke: none }\n"
                + "  @media (prefers-color-scheme: dark) {\n"
                + "    text { fill: #ddd } .grid { stroke: #555 }\n"
                + "    .floor { stroke: #aaa } .ours { stroke: #6cb0ff }\n"
                + "    circle.floor { fill: #aaa } circle.ours { fill: #6cb0ff }\n"
                + "    text.floor { fill: #bbb } text.ours { fill: #6cb0ff }\n"
                + "  }\n"
                + "</style>\n");
        for (int i = 0; i < panels.size(); i++) {
            svg.append("<g transform=\"translate(" + i * WIDTH + " 0)\">\n");
            panels.get(i).draw(svg);
            svg.append("</g>\n");
        }
        return svg.append("</svg>\n").toString();
    }

    /** One pair of axes. */
    static final class Panel {

        private final String title;
        private final List<String> labels;
        private final List<String> names = new ArrayList<>();
        private final List<List<Double>> lines = new ArrayList<>();

        private Panel(String title, List<String> labels) {
            this.title = title;
            this.labels = labels;
        }

        /** Adds a line; draws nothing where a point was not measured. */
        Panel line(String name, Stream<@Nullable Result> points) {
            names.add(name);
            lines.add(points.map(point -> point == null ? Double.NaN : point.nanos())
                    .toList());
            return this;
        }

        private void draw(StringBuilder svg) {
            double most = lines.stream()
                    .flatMap(List::stream)
                    .filter(value -> !value.isNaN())
                    .mapToDouble(Double::doubleValue)
                    .max()
                    .orElse(1);
            double step = step(most);
            double top = Math.ceil(most / step) * step;
            svg.append("<text class=\"title\" x=\"" + LEFT + "\" y=\"16\">ns per call, by " + title + "</text>\n");
            for (double value = 0; value <= top; value += step) {
                double y = y(value, top);
                svg.append(String.format(
                        Locale.ROOT,
                        "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>"
                                + "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.0f</text>%n",
                        LEFT,
                        y,
                        WIDTH - RIGHT,
                        y,
                        LEFT - 6,
                        y + 4,
                        value));
            }
            for (int i = 0; i < labels.size(); i++) {
                svg.append(String.format(
                        Locale.ROOT,
                        "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>%n",
                        x(i),
                        HEIGHT - BOTTOM + 18,
                        brief(labels.get(i))));
            }
            for (int i = 0; i < lines.size(); i++) {
                drawLine(svg, names.get(i), lines.get(i), top, i);
            }
        }

        private void drawLine(StringBuilder svg, String name, List<Double> line, double top, int place) {
            StringBuilder points = new StringBuilder();
            StringBuilder dots = new StringBuilder();
            for (int i = 0; i < line.size(); i++) {
                if (!line.get(i).isNaN()) {
                    points.append(String.format(Locale.ROOT, "%.1f,%.1f ", x(i), y(line.get(i), top)));
                    dots.append(String.format(
                            Locale.ROOT,
                            "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>%s %s: %.1f ns</title></circle>",
                            name,
                            x(i),
                            y(line.get(i), top),
                            labels.get(i),
                            name,
                            line.get(i)));
                }
            }
            svg.append("<polyline class=\"" + name + "\" points=\""
                    + points.toString().strip() + "\"/>" + dots + "\n");
            svg.append("<text class=\"" + name + "\" x=\"" + (LEFT + 8 + 60 * place) + "\" y=\"" + (HEIGHT - 8) + "\">"
                    + (name.equals("floor") ? "○ " : "● ") + name + "</text>\n");
        }

        private double x(int index) {
            return LEFT + 10 + (WIDTH - LEFT - RIGHT - 20.0) * index / Math.max(1, labels.size() - 1);
        }

        private static double y(double value, double top) {
            return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / top;
        }

        /** A round number of which two to five reach the most. */
        private static double step(double most) {
            double magnitude = Math.pow(10, Math.floor(Math.log10(most)));
            double leading = most / magnitude;
            return (leading >= 5 ? 2 : leading >= 2 ? 1 : 0.5) * magnitude;
        }

        private static String brief(String number) {
            return number.endsWith("000000")
                    ? number.substring(0, number.length() - 6) + "M"
                    : number.endsWith("000") ? number.substring(0, number.length() - 3) + "k" : number;
        }
    }
}
