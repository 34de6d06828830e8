package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.fields.HeaderStyle;
import io.ratelimited.spring.fields.ResponseLimits;
import io.ratelimited.spring.fields.ResponseLimits.Quota;
import io.ratelimited.spring.internals.client.ClientGate.Entered;
import io.ratelimited.spring.internals.client.ClientPace.Pass;
import io.ratelimited.spring.internals.web.LimitHeaders;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Eight callers who want ten times what a server allows, in virtual time; round trips take up to a few milliseconds. */
@Tag("once")
@Tag("slow")
class ClosedLoopTest {

    private static final int CALLERS = 8;
    private static final long MAX_PAUSE = Duration.ofSeconds(60).toNanos();
    private static final long MINUTE = Duration.ofMinutes(1).toNanos();

    private final ManualTicker ticker = new ManualTicker(17, Instant.parse("2026-03-01T12:00:03.300Z"));
    private final Random random = new Random(33);
    /** The longest way to the server, and back, in nanoseconds. */
    private int latency = 2_000_000;

    private long longestStep = 1_000_000;
    private int callers = CALLERS;
    private Duration maxWait = Duration.ofMinutes(5);
    private long refusedHere;
    private long lastSent;
    private long longestStandstill;
    private boolean wanted = true;
    private long sent;
    private long admitted;
    private long refused;
    /** The gates of clients that have been answered. */
    private final Set<ClientGate> answered = new HashSet<>();

    private long refusedAfterFirstAnswer;
    private Supplier<String> places = () -> "";

    /** The server: its answer to a call that arrives now. */
    private interface Server {

        /** Puts the fields of the answer and returns its status. */
        int answer(Map<String, List<String>> fields);
    }

    private record Event(long at, long number, Runnable action) {}

    private final PriorityQueue<Event> events = new PriorityQueue<>((one, other) ->
            one.at != other.at ? Long.compare(one.at, other.at) : Long.compare(one.number, other.number));
    private long numbers;

    private void after(long nanos, Runnable action) {
        events.add(new Event(ticker.nanos() + nanos, numbers++, action));
    }

    /** Runs the callers for a time. Each sends its next call when it has thought, or at once if it is late. */
    private void run(Server server, ClientGate gate, Duration time, long thinkNanos) {
        start(server, gate, thinkNanos);
        run(time);
    }

    private void start(Server server, ClientGate gate, long thinkNanos) {
        Supplier<String> calls = places;
        for (int i = 0; i < callers; i++) {
            after(random.nextInt(1_000_000), () -> call(server, gate, calls, thinkNanos));
        }
    }

    private void run(Duration time) {
        long end = ticker.nanos() + time.toNanos();
        while (ticker.nanos() < end) {
            // In steps, since alarms on the way let callers go, who then add events.
            long step = Math.min(end - ticker.nanos(), longestStep);
            Event next = events.peek();
            ticker.advanceNanos(next == null ? step : Math.max(0, Math.min(step, next.at - ticker.nanos())));
            while (!events.isEmpty() && events.peek().at <= ticker.nanos()) {
                events.remove().action.run();
            }
        }
    }

    private void call(Server server, ClientGate gate, Supplier<String> calls, long thinkNanos) {
        if (!wanted) {
            return;
        }
        gate.enter(calls.get(), maxWait.toNanos()).thenAccept(entered -> {
            if (entered.pass() == null) {
                refusedHere++;
                after(100_000_000, () -> call(server, gate, calls, thinkNanos));
                return;
            }
            sent++;
            longestStandstill = sent == 1 ? 0 : Math.max(longestStandstill, ticker.nanos() - lastSent);
            lastSent = ticker.nanos();
            boolean afterFirst = answered.contains(gate);
            after(
                    200_000 + random.nextInt(latency),
                    () -> arrive(server, gate, calls, entered.pass(), afterFirst, thinkNanos));
        });
    }

    private void arrive(
            Server server, ClientGate gate, Supplier<String> calls, Pass pass, boolean afterFirst, long thinkNanos) {
        Map<String, List<String>> fields = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        int status = server.answer(fields);
        boolean rejects = status == 429;
        if (status == 200) {
            admitted++;
        } else if (rejects) {
            refused++;
            refusedAfterFirstAnswer += afterFirst ? 1 : 0;
        }
        after(200_000 + random.nextInt(latency), () -> {
            answered.add(gate);
            ResponseLimits answer =
                    ResponseHeaders.read(status, fields::get, TimeUnit.NANOSECONDS.toMillis(ticker.epochNanos()));
            if (answer.retryAfterNanos() > 0) {
                gate.pause(answer.retryAfterNanos());
            }
            if (status == 200 || rejects || !answer.quotas().isEmpty()) {
                gate.answered(pass, answer, rejects);
            } else {
                gate.admittedThere(pass);
            }
            after(thinkNanos, () -> call(server, gate, calls, thinkNanos));
        });
    }

    private ClientGate gate() {
        return new ClientGate("", null, new WaitingRoom(ticker, () -> 1_000), ticker, MAX_PAUSE);
    }

    /** A server that has this library. */
    private Server thisLibrary(Limit limit, HeaderStyle style) {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit, ticker, 10);
        return fields -> {
            Reservation reservation = limiter.reserve(null, 1, 0);
            Decision decision = reservation.decision();
            LimitHeaders written = new LimitHeaders();
            written.decided(limit, decision);
            written.write(new LimitHeaders.Style(style, ticker), (name, value) -> fields.put(name, List.of(value)));
            if (!reservation.isRefused()) {
                return 200;
            }
            Long retryAfter = LimitHeaders.retryAfter(decision);
            if (retryAfter != null) {
                fields.put("Retry-After", List.of(retryAfter.toString()));
            }
            return 429;
        };
    }

    /** What calls of ten times the limit would wait between two, if they did not wait for the limit. */
    private static long think(Limit limit) {
        Duration period = limit.rate().period();
        return Math.max(0, CALLERS * period.toNanos() / (10 * limit.rate().permits()) - 2_400_000);
    }

    @ParameterizedTest
    @CsvSource({
        "TOKEN_BUCKET, 10/s, STANDARD, 99",
        "TOKEN_BUCKET, 100/s, STANDARD, 99",
        "TOKEN_BUCKET, 20/s, LEGACY, 99",
        "TOKEN_BUCKET, 100/10s, STANDARD, 99",
        "TOKEN_BUCKET, 600/m, STANDARD, 99",
        "TOKEN_BUCKET, 1/s, STANDARD, 99",
        "TOKEN_BUCKET, 500/s, STANDARD, 99",
        "FIXED_WINDOW, 100/10s, STANDARD, 99",
        "FIXED_WINDOW, 100/10s, LEGACY, 99",
        "FIXED_WINDOW, 50/s, STANDARD, 99",
        "SLIDING_LOG, 100/10s, STANDARD, 99",
        // Slides by a tenth of its period, and counts a call for eleven. Where these are no whole seconds, the time in
        // which
        // a call is forgotten is a guess, and one permit of each window is kept to learn of it.
        "SLIDING_WINDOW, 100/10s, STANDARD, 99",
        "SLIDING_WINDOW, 600/m, STANDARD, 99",
        "SLIDING_WINDOW, 30/5s, STANDARD, 96",
        "SLIDING_WINDOW, 100/2s, STANDARD, 93",
        "SLIDING_WINDOW, 20/s, STANDARD, 80"
    })
    void aServerThatHasThisLibraryRefusesNothingAndIsUsed(
            Algorithm algorithm, String rate, HeaderStyle style, long percent) {
        Limit limit = Limit.of("partner", algorithm).rate(rate).build();
        run(thisLibrary(limit, style), gate(), Duration.ofSeconds(60), think(limit));
        long counted = limit.rate().period().toNanos();
        if (algorithm == Algorithm.SLIDING_WINDOW) {
            counted += counted / limit.slots();
        }
        // Of a window, what callers get who try all the time; one that slides is spread.
        long minute = Duration.ofSeconds(60).toNanos();
        long allowed = algorithm == Algorithm.SLIDING_WINDOW
                ? limit.rate().permits() * minute / counted
                : limit.rate().permits() * ((minute + counted - 1) / counted);
        assertThat(refusedAfterFirstAnswer).isZero();
        assertThat(admitted).isGreaterThanOrEqualTo(allowed * percent / 100);
    }

    @Test
    void allWhoCanGoAfterTheResetWaitForIt() {
        ClientGate gate = gate();
        Pass first = gate.enter("", 0).join().pass();
        Map<String, List<String>> fields =
                Map.of("RateLimit-Policy", List.of("\"a\";q=100;w=60"), "RateLimit", List.of("\"a\";r=0;t=2"));
        gate.answered(first, ResponseHeaders.read(200, fields::get, 0), false);
        List<CompletableFuture<Entered>> calls = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            calls.add(gate.enter("", Duration.ofSeconds(5).toNanos()));
        }
        assertThat(calls).noneMatch(CompletableFuture::isDone);
        ticker.advance(Duration.ofSeconds(2));
        Pass probe = calls.get(0).join().pass();
        Map<String, List<String>> after =
                Map.of("RateLimit-Policy", List.of("\"a\";q=100;w=60"), "RateLimit", List.of("\"a\";r=99;t=60"));
        gate.answered(probe, ResponseHeaders.read(200, after::get, 0), false);
        assertThat(calls).allMatch(call -> call.isDone() && call.join().pass() != null);
    }

    /** Thirty-five callers of ten a second wait for three and a half seconds: all of them can go in time. */
    @ParameterizedTest
    @CsvSource({"TOKEN_BUCKET, 10/s, 100", "GCRA, 10/s, 100", "TOKEN_BUCKET, 10/s, 10", "TOKEN_BUCKET, 600/m, 600"})
    void aBucketIsUsedAtItsPaceWithoutStandstillOrRefusals(Algorithm algorithm, String rate, long burst) {
        callers = 35;
        maxWait = Duration.ofSeconds(5);
        Limit limit = Limit.of("partner", algorithm).rate(rate).burst(burst).build();
        run(thisLibrary(limit, HeaderStyle.STANDARD), gate(), Duration.ofMinutes(2), 0);
        assertThat(refusedHere).isZero();
        assertThat(refusedAfterFirstAnswer).isZero();
        assertThat(longestStandstill)
                .isLessThanOrEqualTo(Duration.ofMillis(1_100).toNanos());
        assertThat(admitted).isGreaterThanOrEqualTo((1200 + burst * 3 / 4) * 98 / 100);
    }

    /** After a first burst, a window that is wanted all the time is spread. */
    @ParameterizedTest
    @CsvSource({"FIXED_WINDOW, 100/10s", "SLIDING_LOG, 100/10s", "SLIDING_WINDOW, 100/10s", "FIXED_WINDOW, 600/m"})
    void aWindowIsSpread(Algorithm algorithm, String rate) {
        Limit limit = Limit.of("partner", algorithm).rate(rate).build();
        run(thisLibrary(limit, HeaderStyle.STANDARD), gate(), Duration.ofMinutes(10), 0);
        assertThat(refusedAfterFirstAnswer).isZero();
        assertThat(longestStandstill).isLessThanOrEqualTo(Duration.ofSeconds(2).toNanos());
    }

    /** Whatever the order in which calls arrive and answers come back. */
    @ParameterizedTest
    @CsvSource({
        "TOKEN_BUCKET, 30/5s",
        "TOKEN_BUCKET, 20/s",
        "FIXED_WINDOW, 30/5s",
        "FIXED_WINDOW, 20/s",
        "SLIDING_WINDOW, 30/5s",
        "SLIDING_WINDOW, 20/s",
        "SLIDING_LOG, 30/5s",
        "SLIDING_LOG, 20/s"
    })
    void callsOnTheWayAreNeverRefused(Algorithm algorithm, String rate) {
        Limit limit = Limit.of("partner", algorithm).rate(rate).build();
        for (int seed = 0; seed < 20; seed++) {
            ClosedLoopTest loop = new ClosedLoopTest();
            loop.random.setSeed(seed);
            loop.latency = 1 + loop.random.nextInt(1_500_000_000);
            loop.run(loop.thisLibrary(limit, HeaderStyle.STANDARD), loop.gate(), Duration.ofMinutes(2), think(limit));
            assertThat(loop.refusedAfterFirstAnswer).as("seed %s", seed).isZero();
        }
    }

    /** As of a gateway, or of validation in front of the limit: such responses neither count there nor state anything. */
    @ParameterizedTest
    @CsvSource({
        "TOKEN_BUCKET, 20/s, 95",
        "TOKEN_BUCKET, 100/10s, 95",
        "FIXED_WINDOW, 100/10s, 95",
        // Where the calls of this side are counted, those without a statement are, too: a quarter more.
        "SLIDING_WINDOW, 100/10s, 80",
        "SLIDING_LOG, 100/10s, 80"
    })
    void aQuotaIsKeptBetweenErrorsThatStateNothing(Algorithm algorithm, String rate, long percent) {
        Limit limit = Limit.of("partner", algorithm).rate(rate).build();
        for (int seed = 0; seed < 10; seed++) {
            ClosedLoopTest loop = new ClosedLoopTest();
            loop.random.setSeed(seed);
            Server limited = loop.thisLibrary(limit, HeaderStyle.STANDARD);
            Server behindGateway = fields -> loop.random.nextInt(4) == 0 ? 404 : limited.answer(fields);
            loop.run(behindGateway, loop.gate(), Duration.ofMinutes(1), think(limit));
            long allowed = algorithm == Algorithm.SLIDING_WINDOW
                    ? 545
                    : limit.rate().permits()
                            * Duration.ofMinutes(1).toNanos()
                            / limit.rate().period().toNanos();
            assertThat(loop.refusedAfterFirstAnswer).as("seed %s", seed).isZero();
            assertThat(loop.admitted).as("seed %s", seed).isGreaterThanOrEqualTo(allowed * percent / 100);
        }
    }

    /** The calls of a service have many paths, and its quota is that of all of them. */
    @ParameterizedTest
    @CsvSource({
        "TOKEN_BUCKET, 100/10s, 99",
        "FIXED_WINDOW, 100/10s, 99",
        "SLIDING_LOG, 100/10s, 99",
        "SLIDING_WINDOW, 100/10s, 95"
    })
    void aQuotaOfAllPathsIsKeptOnPathsThatWereNeverCalled(Algorithm algorithm, String rate, long percent) {
        places = () -> "partner.example:443/" + List.of("users", "orders").get(random.nextInt(2)) + "/" + sent + "/GET";
        Limit limit = Limit.of("partner", algorithm).rate(rate).build();
        run(thisLibrary(limit, HeaderStyle.STANDARD), gate(), Duration.ofSeconds(60), think(limit));
        long allowed = algorithm == Algorithm.SLIDING_WINDOW ? 545 : 600;
        assertThat(refusedAfterFirstAnswer).isZero();
        assertThat(admitted).isGreaterThanOrEqualTo(allowed * percent / 100);
    }

    /** Each path with a quota of its own, in any order of calls. */
    @Test
    void quotasOfPathsAreKeptAndUsedBesideEachOther() {
        Map<String, Server> servers = new TreeMap<>();
        for (String path : List.of("a", "b", "c")) {
            Limit limit = Limit.of(path, Algorithm.FIXED_WINDOW)
                    .rate(path.equals("a") ? "10/10s" : "100/10s")
                    .build();
            servers.put(path, thisLibrary(limit, HeaderStyle.STANDARD));
        }
        ClientGate gate = gate();
        for (String path : servers.keySet()) {
            places = () -> "partner.example:443/" + path + "/GET";
            start(servers.get(path), gate, 5_600_000);
        }
        run(Duration.ofSeconds(60));
        assertThat(refused).as("in flight before the first answer").isLessThanOrEqualTo(CALLERS);
        assertThat(admitted).isBetween((70 + 700 + 700) * 95L / 100, 70 + 700 + 700L);
    }

    /** A model, as OpenAI and Anthropic state its limits: requests and tokens a minute, of a bucket or of a window. */
    private final class Model implements Server {

        private final boolean bucket;
        private final double[] limits;
        private final double[] left;
        private final double[] spent = new double[2];
        private final int spread;
        private long filled = ticker.nanos();

        private Model(boolean bucket, long requests, long tokensOfCall, int spread) {
            this.bucket = bucket;
            this.spread = spread;
            limits = new double[] {requests, requests * tokensOfCall};
            left = limits.clone();
        }

        @Override
        public int answer(Map<String, List<String>> fields) {
            long now = ticker.nanos();
            double passed = (now - filled) / (double) MINUTE;
            double mean = limits[1] / limits[0];
            double[] cost = {1, Math.rint(mean * (100 - spread + random.nextInt(1 + 2 * spread)) / 100)};
            for (int i = 0; i < 2; i++) {
                left[i] =
                        bucket ? Math.min(limits[i], left[i] + limits[i] * passed) : passed >= 1 ? limits[i] : left[i];
            }
            filled = bucket ? now : filled + (long) passed * MINUTE;
            boolean admitted = left[0] >= 1 && left[1] >= cost[1];
            String[] names = {"requests", "tokens"};
            for (int i = 0; i < 2; i++) {
                if (admitted) {
                    left[i] -= cost[i];
                    spent[i] += cost[i];
                }
                double reset = bucket ? 60_000 * (1 - left[i] / limits[i]) : (filled + MINUTE - now) / 1e6;
                fields.put("x-ratelimit-limit-" + names[i], List.of(String.valueOf((long) limits[i])));
                fields.put("x-ratelimit-remaining-" + names[i], List.of(String.valueOf((long) left[i])));
                fields.put("x-ratelimit-reset-" + names[i], List.of((long) Math.ceil(reset) + "ms"));
            }
            return admitted ? 200 : 429;
        }

        /** The used share of a limit, in percent. */
        private double used(int i, long minutes) {
            return 100 * spent[i] / (limits[i] * (bucket ? minutes + 0.75 : minutes));
        }
    }

    @ParameterizedTest
    @CsvSource({
        "true, 60, 50, 2, 95",
        "true, 60, 50, 2000, 95",
        "true, 600, 90, 2, 99",
        "false, 60, 50, 2, 95",
        "false, 60, 90, 200, 95",
        "false, 600, 50, 2, 99",
        "false, 600, 90, 200, 95",
        // In the time of a round trip, the last calls of a window are not known to be admitted.
        "false, 60, 50, 2000, 93"
    })
    void requestsAndTokensOfAModelAreKeptAndUsed(
            boolean bucket, long requests, int spread, int latencyMillis, int percent) {
        double[] used = new double[2];
        for (int seed = 0; seed < 3; seed++) {
            ClosedLoopTest loop = new ClosedLoopTest();
            loop.random.setSeed(seed);
            loop.latency = latencyMillis * 1_000_000;
            loop.longestStep = 5_000_000;
            Model model = loop.new Model(bucket, requests, 1_000, spread);
            loop.run(model, loop.gate(), Duration.ofMinutes(10), 0);
            assertThat(loop.refusedAfterFirstAnswer).as("seed %s", seed).isZero();
            used[0] += model.used(0, 10) / 3;
            used[1] += model.used(1, 10) / 3;
        }
        assertThat(used[0]).as("requests").isGreaterThanOrEqualTo(percent);
        assertThat(used[1]).as("tokens").isGreaterThanOrEqualTo(percent);
    }

    /** Nobody tells a client of the other: it learns of it by what is left. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "FIXED_WINDOW", "SLIDING_LOG", "SLIDING_WINDOW"})
    void anotherClientOfTheSameQuotaCostsFewRefusals(Algorithm algorithm) {
        Limit limit = Limit.of("partner", algorithm).rate("100/10s").build();
        Server server = thisLibrary(limit, HeaderStyle.STANDARD);
        start(server, gate(), think(limit));
        run(Duration.ofSeconds(33));
        start(server, gate(), think(limit));
        run(Duration.ofSeconds(60));
        assertThat(refusedAfterFirstAnswer).isLessThanOrEqualTo(CALLERS);
        assertThat(admitted).isGreaterThanOrEqualTo(algorithm.name().startsWith("SLIDING") ? 740 : 930);
    }

    /** A fixed window of ten seconds. */
    private final class Windows {

        private long quota;
        private final long millis;
        private long window = -1;
        private long used;

        private Windows(long quota, long millis) {
            this.quota = quota;
            this.millis = millis;
        }

        private boolean tryTake() {
            long now = nowMillis() / millis;
            if (now != window) {
                window = now;
                used = 0;
            }
            return used < quota && used++ < quota;
        }

        private long nowMillis() {
            return TimeUnit.NANOSECONDS.toMillis(ticker.epochNanos());
        }

        private long leftMillis() {
            return millis - nowMillis() % millis;
        }

        private long endMillis() {
            return nowMillis() + leftMillis();
        }
    }

    /** A server whose refusals say when the window ends, and whose other answers say nothing. */
    private Server withRetryAfterOnly(Windows windows) {
        return fields -> {
            if (windows.tryTake()) {
                return 200;
            }
            fields.put("Retry-After", List.of(String.valueOf((windows.leftMillis() + 999) / 1000)));
            return 429;
        };
    }

    /** Only a rejection reports such a limit: of the calls in flight when a window is used up. All of it is used. */
    @ParameterizedTest
    @CsvSource({
        "10000, 60, 100",
        "60000, 900, 100",
        "3000, 181, 100",
        "2000, 240, 100",
        "7300, 240, 97",
        "4500, 240, 98"
    })
    void aServerThatOnlySendsRetryAfterRejectsTheCallsInFlightAtTheEndOfAWindow(
            long millis, long seconds, long percent) {
        Windows windows = new Windows(100, millis);
        run(withRetryAfterOnly(windows), gate(), Duration.ofSeconds(seconds), 5_600_000);
        long begun = seconds * 1000 / millis;
        assertThat(admitted).isBetween(begun * percent, (begun + 2) * 100);
        assertThat(refused).isLessThanOrEqualTo((begun + 2) * CALLERS);
    }

    @ParameterizedTest
    @CsvSource({"50", "101", "1000"})
    void anotherQuotaIsUsedAtOnce(long quota) {
        Windows windows = new Windows(100, 10_000);
        start(withRetryAfterOnly(windows), gate(), 5_600_000);
        run(Duration.ofSeconds(55));
        windows.quota = quota;
        run(Duration.ofSeconds(10));
        admitted = 0;
        refused = 0;
        run(Duration.ofSeconds(60));
        assertThat(admitted).isBetween(6 * quota, 7 * quota);
        assertThat(refused).isLessThanOrEqualTo(7 * CALLERS);
    }

    @Test
    void callsThatLeaveSomeOfAWindowFindWhatABucketHasSaved() {
        Limit limit = Limit.of("partner", Algorithm.TOKEN_BUCKET)
                .rate("1/10s")
                .burst(20)
                .build();
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit, ticker, 10);
        Server server = fields -> {
            Decision decision = limiter.reserve(null, 1, 0).decision();
            if (!decision.admitted()) {
                fields.put("Retry-After", List.of(String.valueOf(LimitHeaders.retryAfter(decision))));
            }
            return decision.admitted() ? 200 : 429;
        };
        ClientGate gate = gate();
        start(server, gate, 5_600_000);
        run(Duration.ofSeconds(75));
        assertThat(admitted).isEqualTo(20 + 7);
        assertThat(refused).isLessThanOrEqualTo(8 * CALLERS);
        wanted = false;
        run(Duration.ofMinutes(5));
        wanted = true;
        admitted = 0;
        start(server, gate, 5_600_000);
        run(Duration.ofSeconds(5));
        assertThat(admitted).isEqualTo(20);
    }

    @Test
    void aLimitThatIsLargerIsUsedAtOnce() {
        Windows windows = new Windows(20, 10_000);
        ClientGate gate = gate();
        Server server = fields -> {
            if (windows.tryTake()) {
                return 200;
            }
            fields.put("Retry-After", List.of("1"));
            return 429;
        };
        start(server, gate, 5_600_000);
        run(Duration.ofSeconds(30));
        windows.quota = 1_000_000;
        run(Duration.ofSeconds(10));
        admitted = 0;
        run(Duration.ofSeconds(10));
        // Eight callers, each with a round trip of 2.4 ms and 5.6 ms to think.
        assertThat(admitted).isGreaterThan(9_000);
    }

    /** After each pause some call goes, whatever was learned. */
    @Test
    void refusalsWithoutAnyOrderStopNothing() {
        Server server = fields -> {
            if (random.nextInt(3) > 0) {
                return 200;
            }
            fields.put("Retry-After", List.of("1"));
            return 429;
        };
        run(server, gate(), Duration.ofMinutes(2), 5_600_000);
        assertThat(refused).isGreaterThanOrEqualTo(60);
        assertThat(admitted).isGreaterThanOrEqualTo(120);
    }

    @ParameterizedTest
    @CsvSource({"true", "false"})
    void aServerThatTellsItsResetSince1970(boolean withDate) {
        Windows windows = new Windows(100, 10_000);
        Server server = fields -> {
            boolean admits = windows.tryTake();
            fields.put("X-RateLimit-Limit", List.of("100"));
            fields.put("X-RateLimit-Remaining", List.of(String.valueOf(windows.quota - windows.used)));
            fields.put("X-RateLimit-Reset", List.of(String.valueOf(windows.endMillis() / 1000)));
            if (withDate) {
                fields.put(
                        "Date",
                        List.of(java.time.format.DateTimeFormatter.RFC_1123_DATE_TIME.format(
                                Instant.ofEpochMilli(windows.nowMillis()).atZone(java.time.ZoneOffset.UTC))));
            }
            return admits ? 200 : 429;
        };
        run(server, gate(), Duration.ofSeconds(60), 5_600_000);
        assertThat(refusedAfterFirstAnswer).isZero();
        assertThat(admitted).isGreaterThanOrEqualTo(594);
    }

    /** So the reset is 0 in the last second of each window. Rounded down, it is early: one call in a window asks in vain. */
    @ParameterizedTest
    @CsvSource({"X-RateLimit-, 5000", "X-RateLimit-, 10000", "RateLimit, 5000", "RateLimit, 10000"})
    void aServerThatRoundsItsResetDownRejectsOneCallOfAWindowAtMost(String style, long millis) {
        Windows windows = new Windows(20, millis);
        Server server = fields -> {
            boolean admits = windows.tryTake();
            long left = windows.quota - windows.used;
            long reset = (windows.leftMillis() - 1) / 1000;
            if (style.equals("RateLimit")) {
                fields.put("RateLimit-Policy", List.of("\"d\";q=20;w=" + millis / 1000));
                fields.put("RateLimit", List.of("\"d\";r=" + left + ";t=" + reset));
            } else {
                fields.put(style + "Limit", List.of("20"));
                fields.put(style + "Remaining", List.of(String.valueOf(left)));
                fields.put(style + "Reset", List.of(String.valueOf(reset)));
            }
            return admits ? 200 : 429;
        };
        run(server, gate(), Duration.ofSeconds(60), 5_600_000);
        assertThat(refusedAfterFirstAnswer).isLessThanOrEqualTo(60_000 / millis);
        assertThat(admitted).isGreaterThanOrEqualTo(20 * 60_000 / millis * 99 / 100);
    }

    @SuppressWarnings("ImmutableEnumChecker") // the maps are those of Map.of
    private enum Nonsense {
        NEGATIVE(Map.of(
                "RateLimit", List.of("\"a\";r=-1;t=-5"),
                "X-RateLimit-Remaining", List.of("-1"),
                "X-RateLimit-Reset", List.of("-30"),
                "Retry-After", List.of("-7"))),
        HUGE(Map.of(
                "RateLimit", List.of("\"a\";r=0;t=999999999999"),
                "X-RateLimit-Remaining", List.of("0"),
                "X-RateLimit-Reset", List.of("999999999999999999"),
                "Retry-After", List.of("999999999999"))),
        MISSING(Map.of("RateLimit", List.of("\"a\";t=5"), "X-RateLimit-Remaining", List.of("0"))),
        TWO(Map.of(
                "RateLimit", List.of("\"a\";r=0;t=50", "\"a\";r=0;t=60"),
                "X-RateLimit-Remaining", List.of("0", "0"),
                "X-RateLimit-Reset", List.of("30", "50"),
                "Retry-After", List.of("30", "40"))),
        NO_NUMBER(Map.of(
                "RateLimit", List.of("none"),
                "X-RateLimit-Remaining", List.of("few"),
                "X-RateLimit-Reset", List.of("soon"),
                "Retry-After", List.of("later")));

        private final Map<String, List<String>> fields;

        Nonsense(Map<String, List<String>> fields) {
            this.fields = fields;
        }
    }

    @ParameterizedTest
    @EnumSource
    void nonsenseNeitherStopsNorHurries(Nonsense nonsense) {
        run(fields -> 200, gate(), Duration.ofSeconds(2), 5_600_000);
        long without = sent;
        sent = 0;
        random.setSeed(33);
        ClosedLoopTest other = new ClosedLoopTest();
        other.run(
                fields -> {
                    fields.putAll(nonsense.fields);
                    return 200;
                },
                other.gate(),
                Duration.ofSeconds(2),
                5_600_000);
        assertThat(other.sent).isEqualTo(without).isPositive();
    }

    /** The answer may be long in coming, but no caller is refused because the longest pause is longer than its wait. */
    @Test
    void callsBehindTheOneAfterAPauseWaitForItsAnswer() {
        ClientGate gate = gate();
        gate.pause(Duration.ofSeconds(1).toNanos());
        ticker.advanceNanos(Duration.ofSeconds(1).toNanos());
        Pass first = gate.enter("", 0).join().pass();
        CompletableFuture<Entered> second = gate.enter("", Duration.ofSeconds(5).toNanos());
        CompletableFuture<Entered> third = gate.enter("", Duration.ofSeconds(5).toNanos());
        assertThat(gate.enter("", 0).join().pass()).isNull();
        assertThat(second).isNotDone();
        gate.answered(first, ResponseLimits.SILENT, false);
        assertThat(second.join().pass()).isNotNull();
        assertThat(third.join().pass()).isNotNull();
    }

    /** Whatever answers say in valid fields, and in whatever order they come, the next call goes when the longest pause is over. */
    @Test
    void noSequenceOfAnswersStopsCalls() {
        for (int run = 0; run < 2_000; run++) {
            random.setSeed(run);
            ClientGate gate = gate();
            List<Pass> inFlight = new ArrayList<>();
            for (int step = 0; step < 60; step++) {
                ticker.advanceNanos(random.nextLong(Duration.ofSeconds(3).toNanos()));
                String place =
                        List.of("a/b/GET", "a/c/GET", "a/c/POST", "d/GET").get(random.nextInt(4));
                Pass pass =
                        inFlight.size() > 4 ? null : gate.enter(place, 0).join().pass();
                if (pass != null) {
                    inFlight.add(pass);
                }
                if (!inFlight.isEmpty() && random.nextInt(3) > 0) {
                    Pass ended = inFlight.remove(random.nextInt(inFlight.size()));
                    boolean refused = random.nextInt(5) == 0;
                    if (refused) {
                        gate.pause(Duration.ofSeconds(1 + random.nextInt(20)).toNanos());
                    }
                    if (!refused && random.nextInt(4) == 0) {
                        gate.admittedThere(ended);
                    } else {
                        gate.answered(ended, anyAnswer(), refused);
                    }
                }
            }
            inFlight.forEach(pass -> gate.answered(pass, ResponseLimits.SILENT, false));
            CompletableFuture<Entered> last = gate.enter("a/b/GET", 2 * MAX_PAUSE);
            ticker.advanceNanos(MAX_PAUSE);
            assertThat(last).as("run " + run).isCompletedWithValueMatching(entered -> entered.pass() != null);
        }
    }

    private ResponseLimits anyAnswer() {
        List<Quota> quotas = new ArrayList<>();
        for (String name : List.of("a", "b")) {
            if (random.nextInt(3) > 0) {
                quotas.add(new Quota(
                        name,
                        any(-1, 0, 1, 2, 5, 10, 1_000, Long.MAX_VALUE),
                        any(0, 0, 1, 4, 1_000),
                        time(-1),
                        time(2)));
            }
        }
        return new ResponseLimits(0, quotas);
    }

    private long time(long other) {
        long seconds = any(other, 1, 2, 3, 4, 5, 60, Duration.ofDays(366).toSeconds());
        return seconds < 0 ? Quota.UNKNOWN : seconds * 1_000_000_000L;
    }

    private long any(long... values) {
        return values[random.nextInt(values.length)];
    }

    @Test
    void noAnswerStopsCallsForLongerThanTheLongestPause() {
        ClientGate gate = gate();
        List<Long> gone = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            Pass pass = gate.enter("", Duration.ofHours(1).toNanos()).join().pass();
            gone.add(ticker.nanos());
            gate.pause(Duration.ofDays(300).toNanos());
            gate.answered(
                    pass,
                    new ResponseLimits(
                            1,
                            List.of(new Quota(
                                    "a",
                                    5,
                                    0,
                                    Quota.UNKNOWN,
                                    Duration.ofDays(300).toNanos()))),
                    true);
            ticker.advanceNanos(MAX_PAUSE);
        }
        assertThat(gone).hasSize(5);
        assertThat(gone.get(4) - gone.get(0)).isEqualTo(4 * MAX_PAUSE);
    }
}
