package io.ratelimited.core.internals.candidates;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.internals.candidates.AccessLog.Call;
import io.ratelimited.core.internals.candidates.CandidateReport.Candidate;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.zip.GZIPInputStream;
import org.jspecify.annotations.Nullable;

/** The command {@code candidates} of the jar: what rates would have done with the calls of access logs. */
public final class CandidatesCommand {

    private static final String USAGE = """
            Usage: java -jar rate-limit-core.jar candidates --rate RATES [options] FILE...
            What limits would have done with the calls of access logs: Common Log Format, combined, or JSON lines.
              --rate RATES      rates to try, such as 100/m or 50/m,100/m,200/m; required
              --burst NUMBER    the burst of each; default: the number in the rate
              --key FIELD       a limit for each value of a field, such as host, user or request.remote_ip; default: one for all
              --time FIELD      the field of the time in JSON lines; default: time
              --algorithm NAME  such as sliding-window; default: token-bucket
              --slots NUMBER, --warmup DURATION, --zone ZONE   of algorithms that have them
              --below PERCENT   the share of rejected calls that is acceptable; default: 1
            FILE is a file, which may end in .gz, or - for the standard input.""";

    private static final Set<String> OPTIONS =
            Set.of("rate", "burst", "key", "time", "algorithm", "slots", "warmup", "zone", "below");

    /** Lines that are sorted by their time: servers write a line when the response has ended. */
    private static final int SORTED = 10_000;

    private static final int SHOWN = 3;
    private static final int LONGEST_SHOWN = 120;

    private final Map<String, String> options;
    private final List<String> files;
    private final PrintStream out;
    private final PriorityQueue<Call> waiting = new PriorityQueue<>(Comparator.comparingLong(Call::epochNanos));
    private final List<String> unreadable = new ArrayList<>();
    private @Nullable CandidateTracker tracker;
    private long bad;
    private long late;
    private long first;
    private long last;

    private CandidatesCommand(Map<String, String> options, List<String> files, PrintStream out) {
        this.options = options;
        this.files = files;
        this.out = out;
    }

    /** Ends the process with 0, or with 1 after a mistake in the arguments or a file that cannot be read. */
    public static void main(String[] args) {
        System.exit(run(args, System.out, System.err));
    }

    /** Runs the command, and returns the code with which the process ends. */
    public static int run(String[] args, PrintStream out, PrintStream err) {
        Map<String, String> options = new HashMap<>();
        List<String> files = new ArrayList<>();
        for (int i = 1; i < args.length; i++) {
            if (!args[i].startsWith("--")) {
                files.add(args[i]);
            } else if (!OPTIONS.contains(args[i].substring(2)) || i + 1 == args.length) {
                err.println("The option " + args[i] + " is unknown, or has no value.\n" + USAGE);
                return 1;
            } else {
                options.put(args[i].substring(2), args[++i]);
            }
        }
        if (args.length == 0 || !args[0].equals("candidates") || files.isEmpty() || !options.containsKey("rate")) {
            err.println(USAGE);
            return 1;
        }
        try {
            new CandidatesCommand(options, files, out).run();
            return 0;
        } catch (IOException ex) {
            err.println("The file cannot be read: " + ex.getMessage() + ". Check its name and its rights.");
        } catch (IllegalArgumentException ex) {
            err.println(ex.getMessage());
        }
        return 1;
    }

    private void run() throws IOException {
        double below = number("below", "1").doubleValue() / 100;
        List<String> rates = List.of(options.getOrDefault("rate", "").split(","));
        Limit limit = limit(rates.get(0));
        List<Limit> limits = Candidates.of(limit, rates);
        AccessLog log = new AccessLog(options.get("key"), options.getOrDefault("time", "time"));
        for (String file : files) {
            try (InputStream stream = open(file);
                    BufferedReader lines = new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8))) {
                long number = 0;
                for (String line; (line = lines.readLine()) != null; ) {
                    number++;
                    if (!line.isBlank()) {
                        read(log, line, file + ", line " + number, limit, limits);
                    }
                }
            }
        }
        while (!waiting.isEmpty()) {
            tryNext(limit, limits);
        }
        print(below);
    }

    private static InputStream open(String file) throws IOException {
        if (file.equals("-")) {
            return System.in;
        }
        InputStream stream = new FileInputStream(file);
        return file.endsWith(".gz") ? new GZIPInputStream(stream) : stream;
    }

    private Number number(String option, String otherwise) {
        String text = options.getOrDefault(option, otherwise).replace("%", "").strip();
        try {
            return Double.parseDouble(text);
        } catch (NumberFormatException ex) {
            throw new IllegalArgumentException("--" + option + " is " + text + ", but must be a number.", ex);
        }
    }

    private Limit limit(String rate) {
        String name = options.getOrDefault("algorithm", "token-bucket");
        Algorithm algorithm = Algorithm.all().stream()
                .filter(one -> one.name().equals(name.toUpperCase(Locale.ROOT).replace('-', '_')))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException(
                        "--algorithm is " + name + ", but must be one of " + Algorithm.all() + "."));
        Limit.Builder limit = Limit.of("candidates", algorithm).rate(rate.split("\\s+burst\\s+", 2)[0]);
        try {
            options.forEach((option, value) -> {
                switch (option) {
                    case "burst" -> limit.burst(number(option, value).longValue());
                    case "slots" -> limit.slots(number(option, value).intValue());
                    case "warmup" -> limit.warmup(Duration.parse("PT" + value.toUpperCase(Locale.ROOT)));
                    case "zone" -> limit.zone(ZoneId.of(value));
                    default -> {}
                }
            });
            return limit.build();
        } catch (DateTimeException ex) {
            throw new IllegalArgumentException(
                    "--zone or --warmup cannot be read: " + ex.getMessage() + ". Write Europe/Berlin, or 10s.", ex);
        }
    }

    private void read(AccessLog log, String line, String place, Limit limit, List<Limit> limits) {
        try {
            waiting.add(log.read(line));
        } catch (IllegalArgumentException ex) {
            bad++;
            if (unreadable.size() < SHOWN) {
                String shown = line.length() <= LONGEST_SHOWN ? line : line.substring(0, LONGEST_SHOWN) + "…";
                unreadable.add(place + ": " + ex.getMessage() + ": " + shown.replaceAll("\\p{Cntrl}", "?"));
            }
        }
        if (waiting.size() > SORTED) {
            tryNext(limit, limits);
        }
    }

    /** Tries the earliest call. One that is earlier than a call before it came too late, and counts as of that one. */
    private void tryNext(Limit limit, List<Limit> limits) {
        Call call = waiting.remove();
        CandidateTracker known = tracker;
        if (known == null) {
            first = call.epochNanos();
            last = first;
            known = new CandidateTracker(limit, limits, new LogTime(first), 0);
            tracker = known;
        }
        if (call.epochNanos() < last) {
            late++;
        }
        last = Math.max(last, call.epochNanos());
        known.tried(call.key(), 1, 0, last);
    }

    private void print(double below) {
        if (bad > 0) {
            out.println(
                    bad + (bad == 1 ? " line" : " lines") + " could not be read and did not count, such as: [RL-292]");
            unreadable.forEach(line -> out.println("  " + line));
        }
        if (late > 0) {
            out.println(late + " calls were more than " + SORTED + " lines too late, and count as of the call before.");
        }
        if (tracker == null) {
            out.println("There are no calls.");
            return;
        }
        CandidateReport report = tracker.report();
        out.println(report.calls() + " calls from " + instant(first) + " to " + instant(last));
        out.printf("%-20s %20s %9s  %s%n", "rate", "rejected", "callers", "most rejected");
        for (Candidate one : report.candidates()) {
            String most = one.mostRejected().stream()
                    .map(caller -> caller.key().replaceAll("\\p{Cntrl}", "?") + " (" + caller.rejected() + ")")
                    .collect(Collectors.joining(", "));
            String error = one.error() > 0 ? " ± " + CandidateReport.percent(one.error()) : "";
            String row = String.format(
                    Locale.ROOT,
                    "%-20s %20s %9s  %s",
                    one.name(),
                    CandidateReport.percent(one.rejected()) + error,
                    options.containsKey("key") ? one.callers() : "-",
                    most);
            out.println(row.stripTrailing());
        }
        Candidate smallest = report.smallestBelow(below);
        out.println(
                smallest == null
                        ? "None of them rejects less than " + CandidateReport.percent(below) + ": try larger rates."
                        : "The smallest that rejects less than " + CandidateReport.percent(below) + " is "
                                + smallest.name() + ".");
    }

    private static Instant instant(long epochNanos) {
        return Instant.ofEpochSecond(0, epochNanos).truncatedTo(ChronoUnit.SECONDS);
    }

    /** The time of the first line. Calls have their own. */
    private record LogTime(long nanos) implements Ticker {

        @Override
        public long epochNanos() {
            return nanos;
        }

        @Override
        public void sleepUntil(long deadline) {}

        @Override
        public Runnable schedule(long deadline, Runnable task) {
            return () -> {};
        }
    }
}
