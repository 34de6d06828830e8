package io.ratelimited.benchmarks;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/** Panels of lines side by side as an SVG that is readable on light and on dark. */
public final class Plot {

    private static final int WIDTH = 900;
    private static final int HEIGHT = 240;
    private static final int LEFT = 48;
    private static final int TOP = 34;
    private static final int BOTTOM = 46;
    private static final int RIGHT = 14;
    /** A line of more points has no dots. */
    private static final int DOTS = 16;

    private final List<Panel> panels = new ArrayList<>();
    private final boolean oneScale;

    /** Takes whether all panels have the scale of the one with the largest point. */
    public Plot(boolean oneScale) {
        this.oneScale = oneScale;
    }

    /** Adds a panel with a point for each label; an empty label is not written. */
    public Panel panel(String title, List<String> labels) {
        Panel panel = new Panel(title, labels);
        panels.add(panel);
        return panel;
    }

    /** Returns the drawing, with a text for those who do not see it. */
    public String svg(String text) {
        StringBuilder svg = new StringBuilder();
        svg.append("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + WIDTH + " " + HEIGHT
                + "\" role=\"img\" aria-label=\"" + text + "\">\n"
                + "<style>\n"
                + "  text { font: 11px system-ui, sans-serif; fill: #333 }\n"
                + "  .title { font-size: 13px; font-weight: 600 }\n"
                + "  .grid { stroke: #ccc; stroke-width: 1 } .band { fill: #888; fill-opacity: 0.14 }\n"
                + "  polyline { fill: none; stroke: currentColor; stroke-width: 2 } circle { fill: currentColor }\n");
        for (Style style : Style.values()) {
            svg.append("  ." + style.word() + " { color: " + style.onLight + "; stroke-dasharray: " + style.dashes
                    + " }\n");
        }
        svg.append("  @media (prefers-color-scheme: dark) {\n    text { fill: #ddd } .grid { stroke: #555 }\n");
        for (Style style : Style.values()) {
            svg.append("    ." + style.word() + " { color: " + style.onDark + " }\n");
        }
        svg.append("  }\n</style>\n");
        int width = WIDTH / panels.size();
        double largest = panels.stream().mapToDouble(Panel::largest).max().orElse(1);
        for (int i = 0; i < panels.size(); i++) {
            svg.append("<g transform=\"translate(" + i * width + " 0)\">\n");
            Panel panel = panels.get(i);
            panel.draw(svg, width, oneScale ? largest : panel.largest());
            svg.append("</g>\n");
        }
        return svg.append("</svg>\n").toString();
    }

    /** Colors of a line, and dashes for those who do not see them. Lines with dashes are drawn over those without. */
    public enum Style {
        FLOOR("#777", "#aaa", "none"),
        OURS("#0b62c4", "#6cb0ff", "none"),
        PEER("#b4540a", "#f0a860", "7 4"),
        OTHER("#27733a", "#6fcf85", "2 3");

        private final String onLight;
        private final String onDark;
        private final String dashes;

        Style(String onLight, String onDark, String dashes) {
            this.onLight = onLight;
            this.onDark = onDark;
            this.dashes = dashes;
        }

        private String word() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    private record Line(String name, Style style, List<Double> points) {}

    private record Band(int from, int to, String name) {}

    /** One pair of axes. */
    public static final class Panel {

        private final String title;
        private final List<String> labels;
        private final List<Line> lines = new ArrayList<>();
        private final List<Band> bands = new ArrayList<>();

        private Panel(String title, List<String> labels) {
            this.title = title;
            this.labels = labels;
        }

        /** Adds a line; draws nothing where a point is not a number. */
        public Panel line(String name, Style style, List<Double> points) {
            lines.add(new Line(name, style, points));
            return this;
        }

        /** Shades the points from one index to another. */
        public Panel band(int from, int to, String name) {
            bands.add(new Band(from, to, name));
            return this;
        }

        private double largest() {
            return lines.stream()
                    .flatMap(line -> line.points.stream())
                    .filter(value -> !value.isNaN())
                    .mapToDouble(Double::doubleValue)
                    .max()
                    .orElse(1);
        }

        private void draw(StringBuilder svg, int width, double most) {
            double step = step(most);
            double top = Math.ceil(most / step) * step;
            add(svg, "<text class=\"title\" x=\"%d\" y=\"16\">%s</text>%n", LEFT, title);
            for (Band band : bands) {
                double from = x(band.from, width);
                double to = x(band.to, width);
                add(
                        svg,
                        "<rect class=\"band\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>"
                                + "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>%n",
                        from,
                        TOP,
                        to - from,
                        HEIGHT - BOTTOM - TOP,
                        (from + to) / 2,
                        TOP - 5,
                        band.name);
            }
            for (double value = 0; value <= top; value += step) {
                double y = y(value, top);
                add(
                        svg,
                        "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>"
                                + "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.0f</text>%n",
                        LEFT,
                        y,
                        width - RIGHT,
                        y,
                        LEFT - 6,
                        y + 4,
                        value);
            }
            for (int i = 0; i < labels.size(); i++) {
                if (!labels.get(i).isEmpty()) {
                    add(
                            svg,
                            "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>%n",
                            x(i, width),
                            HEIGHT - BOTTOM + 18,
                            brief(labels.get(i)));
                }
            }
            lines.sort(Comparator.comparing(Line::style));
            for (int i = 0; i < lines.size(); i++) {
                drawLine(svg, lines.get(i), width, top, LEFT + 8 + i * (width - LEFT) / lines.size());
            }
        }

        private void drawLine(StringBuilder svg, Line line, int width, double top, int key) {
            String style = line.style.word();
            StringBuilder points = new StringBuilder();
            StringBuilder dots = new StringBuilder();
            for (int i = 0; i < line.points.size(); i++) {
                double value = line.points.get(i);
                if (!Double.isNaN(value)) {
                    add(points, "%.1f,%.1f ", x(i, width), y(value, top));
                    add(
                            dots,
                            "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>%s %s: %.1f</title></circle>",
                            style,
                            x(i, width),
                            y(value, top),
                            labels.get(i),
                            line.name,
                            value);
                }
            }
            add(
                    svg,
                    "<polyline class=\"%s\" points=\"%s\"/>%n",
                    style,
                    points.toString().strip());
            svg.append(labels.size() > DOTS ? "" : dots + "\n");
            add(
                    svg,
                    "<polyline class=\"%s\" points=\"%d,%d %d,%d\"/><text x=\"%d\" y=\"%d\">%s</text>%n",
                    style,
                    key,
                    HEIGHT - 12,
                    key + 22,
                    HEIGHT - 12,
                    key + 28,
                    HEIGHT - 8,
                    line.name);
        }

        private double x(int index, int width) {
            return LEFT + 10 + (width - LEFT - RIGHT - 20.0) * index / Math.max(1, labels.size() - 1);
        }

        private static double y(double value, double top) {
            return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / top;
        }

        private static void add(StringBuilder svg, String format, Object... values) {
            svg.append(String.format(Locale.ROOT, format, values));
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
