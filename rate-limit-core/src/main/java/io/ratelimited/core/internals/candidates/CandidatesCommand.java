package io.ratelimited.core.internals.candidates;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.internals.candidates.AccessLog.Call;
import io.ratelimited.core.internals.candidates.CandidateReport.Candidate;
import io.ratelimited.core.testing.ManualTicker;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.LineNumberReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.stream.Collectors;
import java.util.zip.GZIPInputStream;

/** The command {@code candidates} of the jar: what rates would have done with the calls of access logs. */
public final class CandidatesCommand {

    private static final String USAGE = """
            Usage: java -jar rate-limit-core.jar candidates --rate RATES [options] FILE...
            What limits would have done with the calls of access logs: Common Log Format, combined, or JSON lines.
              --rate RATES      rates to try, such as 100/m or 50/m,100/m burst 200, or auto; required
              --key FIELD       a limit for each value of a field, such as host, user or request.remote_ip; default: one for all
              --time FIELD      the field of the time in JSON lines; default: time
              --algorithm NAME  such as sliding-window; default: token-bucket
              --below PERCENT   the share of rejected calls that is acceptable; default: 1
            FILE is a file, which may end in .gz, or - for the standard input.""";

    /** Lines that are sorted by their time: servers write a line when the response has ended. */
    private static final int SORTED = 10_000;

    private static final int SHOWN = 3;

    /** Those that need no more than a rate. */
    private static final List<Algorithm> ALGORITHMS = Algorithm.all().stream()
            .filter(one -> one.uses(Limit.Attribute.RATE) && !one.uses(Limit.Attribute.WARMUP))
            .toList();

    private final PrintStream out;
    private final AccessLog log;
    private final double below;
    private final PriorityQueue<Call> waiting = new PriorityQueue<>(Comparator.comparingLong(Call::epochNanos));
    private final ManualTicker time = new ManualTicker();
    private final CandidateTracker tracker;
    private long bad;
    private long late;

    private CandidatesCommand(Map<String, String> options, PrintStream out) {
        String name = options.getOrDefault("algorithm", "token-bucket");
        Algorithm algorithm = ALGORITHMS.stream()
                .filter(one -> one.name().equalsIgnoreCase(name.replace('-', '_')))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException(
                        "--algorithm is " + name + ", but must be one of " + ALGORITHMS + "."));
        this.out = out;
        this.log = new AccessLog(options.get("key"), options.getOrDefault("time", "time"));
        Limit live = Limit.of("candidates", algorithm).rate("100/m").build();
        this.tracker = new CandidateTracker(live, Candidates.of(live, options.getOrDefault("rate", "")), time, 0, true);
        String percent = options.getOrDefault("below", "1");
        if (!percent.matches("(?=.*[1-9])(100|\\d{1,2}([.]\\d+)?)")) {
            throw new IllegalArgumentException(
                    "--below is " + percent + ", but must be a percentage above 0, at most 100. Write it as in 0.5.");
        }
        this.below = Double.parseDouble(percent) / 100;
    }

    /** Ends the process with 0, or with 1 after a mistake in the arguments or a file that cannot be read. */
    public static void main(String[] args) {
        System.exit(run(args, System.out, System.err));
    }

    /** Runs the command, and returns the code with which the process ends. */
    public static int run(String[] args, PrintStream out, PrintStream err) {
        try {
            Map<String, String> options = new HashMap<>();
            List<String> files = new ArrayList<>();
            for (int i = 1; i < args.length; i++) {
                if (!args[i].startsWith("--")) {
                    files.add(args[i]);
                } else if (USAGE.contains(args[i] + " ") && i + 1 < args.length) {
                    options.put(args[i].substring(2), args[++i]);
                } else {
                    throw new IllegalArgumentException(
                            "The option " + args[i] + " is unknown, or has no value.\n" + USAGE);
                }
            }
            if (files.isEmpty() || !args[0].equals("candidates") || !options.containsKey("rate")) {
                throw new IllegalArgumentException(USAGE);
            }
            CandidatesCommand command = new CandidatesCommand(options, out);
            files.forEach(command::read);
            command.print();
            return 0;
        } catch (IllegalArgumentException ex) {
            err.println(ex.getMessage());
        }
        return 1;
    }

    private void read(String file) {
        try (InputStream stream = file.equals("-") ? System.in : new FileInputStream(file);
                InputStream plain = file.endsWith(".gz") ? new GZIPInputStream(stream) : stream;
                LineNumberReader lines = new LineNumberReader(new InputStreamReader(plain, StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                try {
                    if (!line.isBlank()) {
                        waiting.add(log.read(line.startsWith("\uFEFF") ? line.substring(1) : line));
                    }
                } catch (IllegalArgumentException ex) {
                    if (bad++ < SHOWN) {
                        out.println(file + ", line " + lines.getLineNumber() + ": "
                                + printable(ex.getMessage() + ": " + line));
                    }
                }
                tryCalls(SORTED);
            }
        } catch (IOException ex) {
            throw new IllegalArgumentException(
                    file + " cannot be read: " + ex.getMessage() + ". Check its name, permissions and format.", ex);
        }
    }

    /** Control characters would reach the terminal, and a long text would fill it. */
    private static String printable(String text) {
        return text.replaceAll("\\p{Cntrl}", "?").replaceAll("(.{300}).+", "$1…");
    }

    /**
     * Tries the earliest calls. One that is earlier than a call before it came too late, and counts as of that one.
     *
     * @param left the most that still wait
     */
    private void tryCalls(int left) {
        while (waiting.size() > left) {
            Call call = waiting.remove();
            if (time.epochNanos() == 0) {
                time.setWallClock(Instant.EPOCH.plusNanos(call.epochNanos()));
            }
            late += call.epochNanos() < time.epochNanos() ? 1 : 0;
            time.advanceNanos(Math.max(0, call.epochNanos() - time.epochNanos()));
            tracker.tried(call.key(), 1, 0, false);
        }
    }

    private void print() {
        tryCalls(0);
        if (bad > 0) {
            out.println("Skipped " + CandidateReport.number(bad, "line") + " that could not be read. [RL-292]");
        }
        CandidateReport report = tracker.report();
        if (report.calls() == 0) {
            out.println("There are no calls.");
            return;
        }
        if (log.key() != null && tracker.keys.isEmpty()) {
            throw new IllegalArgumentException("--key is " + log.key() + ", but no line has a value of such a field."
                    + " Correct it, or omit it to try one limit for all calls.");
        }
        Instant last = Instant.EPOCH.plusNanos(time.epochNanos());
        String unsorted = late == 0 ? "" : ", " + late + " of them too late to be sorted: name the oldest file first";
        out.println(CandidateReport.number(report.calls(), "call") + " from " + last.minus(time.elapsed()) + " to "
                + last + unsorted);
        for (Candidate one : report.candidates()) {
            String most = one.mostRejected().stream()
                    .map(caller -> printable(caller.key()) + " (" + caller.rejected() + ")")
                    .collect(Collectors.joining(", "));
            out.println(one + (most.isEmpty() ? "" : ": " + most));
        }
        out.println(report.advice(below));
    }
}
