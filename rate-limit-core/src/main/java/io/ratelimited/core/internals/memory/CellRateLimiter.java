package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.BlockedKey;
import io.ratelimited.core.Call;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision;
import io.ratelimited.core.InvalidLimitException;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.core.internals.Permits;
import io.ratelimited.core.internals.memory.block.BlockObservers;
import io.ratelimited.core.internals.memory.block.UndecidedCalls;
import io.ratelimited.core.internals.several.JointLocks;
import io.ratelimited.core.internals.several.MemoryLimiter;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Decides for every algorithm that counts over time, or for those callers of such a limiter who have their own numbers: over the
 * same cells, each of which follows the numbers of its last call as it follows a change of the limit. A limit without keys has its one cell in a field; the map for the
 * cells of keys is made when the first key comes. Caches see short strings only, whatever a caller makes keys of: their hash codes are cheap,
 * and they can be compared. Thread-safe.
 */
public class CellRateLimiter implements MemoryLimiter {

    /** The patience of a call that starts no block, and is exempt from those of its key. Every other patience is 0 or more. */
    static final long UNJUDGED = -1;

    /** The stamp of no cell. */
    private static final long NO_STAMP = Long.MIN_VALUE + 7;

    /** The limiter of all callers, which has the cells; this one unless it is that of callers with their own numbers. */
    private final CellRateLimiter whole;
    /** Makes the limit of callers with their own numbers from that of all. */
    private final UnaryOperator<Limit> numbers;

    private final SteadyClock clock;
    /** Time at which this limiter began: {@link Ticker#nanos}. */
    private final long base;

    private final LongSupplier maximumKeys;
    private final WaitingRoom waitingRoom;
    /** During a change a call may find a cell with older or newer parameters, which may count in another time. */
    private volatile CellParameters parameters;

    private volatile Cell single;
    private volatile @Nullable CachedCells keyed;
    /** The windows of the cells of keys, as {@link CellKeys} name them; empty while they have none. Written under the lock of this. */
    private volatile String window;
    /** The period of the shortest windows under the present limit, in nanoseconds. Written under the lock of this. */
    private volatile long shortestWindow = Long.MAX_VALUE;
    /** The windows of callers who have other cells. */
    private final Set<String> otherWindows;
    /** Whether this limit has been one of several on a call; set before such a call charges it. */
    private volatile boolean joined;
    /** Whether any call has cost more than it had reserved: only then can a key be in debt. */
    private volatile boolean overdrawn;

    private final BlockObservers observers;
    private final UndecidedCalls undecided;
    /** Whether any key has been blocked. */
    private volatile boolean blocked;

    /** @param maximumKeys the largest number of keys to remember, asked when the first key comes */
    @SuppressWarnings("this-escape") // only a test extends it
    public CellRateLimiter(Limit limit, Ticker ticker, LongSupplier maximumKeys) {
        this.whole = this;
        this.numbers = UnaryOperator.identity();
        this.observers = new BlockObservers();
        this.undecided = new UndecidedCalls();
        this.clock = new SteadyClock(ticker);
        this.waitingRoom = new WaitingRoom(ticker, () -> limit().maxWaiting());
        this.maximumKeys = maximumKeys;
        this.base = ticker.nanos();
        this.parameters = CellFactory.parameters(limit, base, base);
        this.window = CellKeys.windowOf(limit);
        this.otherWindows = ConcurrentHashMap.newKeySet();
        this.single = initial();
        holdClock(parameters);
    }

    /** The limiter of callers with their own numbers. */
    private CellRateLimiter(CellRateLimiter whole, UnaryOperator<Limit> numbers) {
        this.whole = whole;
        this.numbers = numbers;
        this.observers = whole.observers;
        this.undecided = whole.undecided;
        this.clock = whole.clock;
        this.waitingRoom = whole.waitingRoom;
        this.maximumKeys = whole.maximumKeys;
        this.base = whole.base;
        this.window = "";
        this.otherWindows = whole.otherWindows;
        this.single = whole.single;
        this.parameters = parametersUnder(whole.parameters);
    }

    @Override
    public CellRateLimiter ofCallers(UnaryOperator<Limit> own) {
        return new CellRateLimiter(whole, own);
    }

    @Override
    public CellRateLimiter ofKnownCaller(Object key) {
        CachedCells cells = whole.keyed;
        if (cells == null) {
            return this;
        }
        String text = CanonicalKey.text(key);
        return Stream.concat(Stream.of(text), otherWindows.stream().map(other -> CellKeys.of(other, text)))
                .map(cells::known)
                .filter(cell -> cell != null && cell.parameters().numbers() != null)
                .findFirst()
                .map(this::withNumbersOf)
                .orElse(this);
    }

    private CellRateLimiter withNumbersOf(Cell cell) {
        UnaryOperator<Limit> own = cell.parameters().numbers();
        try {
            return own == null ? this : new CellRateLimiter(whole, own);
        } catch (InvalidLimitException ex) {
            return this; // the limit has changed since then
        }
    }

    @Override
    public Object budgets() {
        return whole;
    }

    private CellParameters parametersUnder(CellParameters limit) {
        Limit own = numbers.apply(limit.limit());
        CellParameters made = CellFactory.parameters(own, base, base);
        made.within(limit, numbers);
        if (limit.limit().isClosed() || limit.limit().isUnlimited()) {
            made.countIn(whole.ownWindow(made));
        }
        return made;
    }

    /**
     * The windows of the numbers of callers under a limit without windows, where they are not those of the cells of keys; else empty. The
     * cells have the windows of the last rate of the limit, or else of the first numbers.
     */
    private String ownWindow(CellParameters numbers) {
        String own = CellKeys.windowOf(numbers.limit());
        if (own.isEmpty()) {
            return own;
        }
        if (window.isEmpty() || numbers.idleNanos() < shortestWindow) {
            useWindow(own, numbers);
        }
        if (own.equals(window)) {
            return "";
        }
        otherWindows.add(own);
        return own;
    }

    private synchronized void useWindow(String own, CellParameters numbers) {
        if (window.isEmpty()) {
            window = own;
        }
        holdClock(numbers);
    }

    /** The parameters for calls that begin now. */
    private CellParameters current() {
        CellParameters known = parameters;
        return whole == this || known.whole() == whole.parameters ? known : changed();
    }

    /** The parameters of callers with their own numbers after a change of the limit; its own if it cannot have the numbers. */
    private CellParameters changed() {
        synchronized (whole) {
            CellParameters limit = whole.parameters;
            if (parameters.whole() != limit) {
                try {
                    parameters = parametersUnder(limit);
                } catch (InvalidLimitException ex) {
                    parameters = limit;
                }
            }
            return parameters;
        }
    }

    /** The parameters for the cell of a key now, also during a change of the limit. */
    private CellParameters wanted(@Nullable Object key) {
        CellParameters wanted = current();
        for (CellParameters.Change change; (change = wanted.change()) != null; ) {
            wanted = change.next();
        }
        return key == null ? wanted.budget() : wanted;
    }

    /** Returns whether a cell counts by other numbers than those of the calls of this limiter. */
    private boolean isOfOthers(@Nullable Object key, Cell cell, CellParameters current) {
        CellParameters own = cell.parameters();
        return own != current && own.change() == null && !own.countsAs(wanted(key));
    }

    /** Returns whether the limit has changed meanwhile under which the caller of a cell has its numbers. */
    private static boolean isOutdated(Cell cell) {
        return cell.parameters().whole().change() != null;
    }

    /**
     * The cell with the numbers that the key has now. It takes each change of the limit when that came: if one comes after the
     * numbers were looked up, the caller has to ask again, because from then on they were others.
     */
    private Cell suited(@Nullable Object key, Cell cell, CellParameters wanted, long at) {
        Cell newest = key == null ? cell.newest().budget() : cell.newest();
        boolean suits = newest.parameters().countsAs(wanted) || wanted.whole().change() != null;
        return suits ? newest : follow(key, newest.retire(), wanted, at);
    }

    /**
     * The cell after a change of the numbers. A cell whose own numbers change gets its own parameters: they have it kept until it
     * would have been full under those before, and know at the next change that this one was. A cell that a sweep may drop begins
     * anew, so that the numbers do not depend on when the sweep comes.
     */
    private Cell follow(@Nullable Object key, Cell cell, CellParameters wanted, long at) {
        CellParameters before = cell.parameters();
        Cell state = cell;
        for (CellParameters.Change change = before.whole().change(); change != null; ) {
            CellParameters later = change.next();
            Long back = later.wentBackTo();
            if (back != null && before.followsCalendar()) {
                CellParameters shown = CellFactory.parameters(before.limit(), base, base);
                shown.goBackTo(back);
                state = shown.follow(state, back);
            }
            if (!(later instanceof BlockCell.Parameters)) {
                state = state.budget(); // a limit without blocks has forgiven
            }
            change = later.change();
        }
        if (state.budget().nanosToInitial(at) == 0 && (key == null || cells().isNewWithoutCell(key))) {
            return wanted.begin(state, at);
        }
        CellParameters next = wanted;
        CellParameters old = before.budget();
        if (wanted.limit().algorithm().family() != Algorithm.Family.WINDOW
                && (old.isOfOneCell()
                        || !old.hasNumbersOf(wanted)
                        || wanted.budget().nanosToRemember(old, at) > 0)) {
            next = twin(wanted);
            next.budget().inheritOfOneCell(old, at);
        }
        return next.follow(state, at);
    }

    /** Parameters of the same numbers, which know of none before. */
    private CellParameters twin(CellParameters parameters) {
        CellParameters made = CellFactory.parameters(parameters.limit(), base, base);
        CellParameters twin = parameters == parameters.budget() ? made.budget() : made;
        twin.within(parameters.whole(), parameters.numbers());
        return twin;
    }

    private Cell initial() {
        CellParameters budget = parameters.budget();
        return budget.initial(now(budget));
    }

    /** The key of a cell: a text. Tests have keys that share a place. */
    @Nullable
    Object cellKey(@Nullable Object key) {
        return key == null ? null : CanonicalKey.text(key);
    }

    /** The name of the cell for the calls of this limiter with a key. */
    private @Nullable Object named(@Nullable Object stated) {
        Object key = cellKey(stated);
        String own = whole == this ? "" : current().ownWindow();
        return own.isEmpty() ? key : CellKeys.of(own, key);
    }

    @Override
    public Limit limit() {
        return current().limit();
    }

    @Override
    public boolean tryAcquire(@Nullable Object stated, long permits) {
        Object key = named(stated);
        if (Permits.requireAsked(permits) == 0 || (key != null && whole.blocked && left(key) > 0)) {
            return permits == 0 && !nothing(key, 0, 0).isRefused();
        }
        boolean taken = take(key, permits)
                || (whole.joined && JointLocks.again(whole, key, () -> take(key, permits), again -> !again));
        if (!taken) {
            reject(key, permits, 0);
        }
        return taken;
    }

    private boolean take(@Nullable Object key, long permits) {
        long stamp = NO_STAMP;
        while (true) {
            CellParameters current = current();
            long read = now(current);
            Cell cell = key == null ? whole.single : cells().get(key, current, read);
            if (cell.parameters() != current && isOfOthers(key, cell, current)) {
                follow(key);
                continue;
            }
            long now = now(cell.parameters(), current, read);
            long outcome = cell.take(permits, now);
            if (outcome >= 0) {
                if (cell instanceof BlockCell block && block.countsOwn()) {
                    boolean calendar = cell.parameters().followsCalendar();
                    charged(key, new Charges.End(permits, 0, now, now, calendar), UNJUDGED);
                }
                return true;
            }
            if (outcome == Cell.MOVED || (outcome < 0 && isOutdated(cell))) {
                follow(key);
            } else if (!mayBeStale(cell, now, outcome) || stamp == (stamp = cell.stamp())) {
                return false;
            }
        }
    }

    @Override
    public Reservation reserve(@Nullable Object key, long permits, long maxWaitNanos) {
        return reserve(named(key), permits, maxWaitNanos, Math.max(0, maxWaitNanos));
    }

    @Override
    public Reservation reserve(Call call) {
        return reserve(named(call.key()), call.permits(), call.maxWaitNanos(), patienceOf(call));
    }

    /** The patience of a call, 0 or more; {@link #UNJUDGED} of one that is exempt from blocks. */
    private static long patienceOf(Call call) {
        if (call.isExemptFromBlocks()) {
            return UNJUDGED;
        }
        long patience = call.patienceNanos();
        return patience < 0 ? 0 : patience;
    }

    private Reservation reserve(@Nullable Object key, long permits, long maxWaitNanos, long patience) {
        if (Permits.requireAsked(permits) == 0) {
            return nothing(key, maxWaitNanos, patience);
        }
        Reservation blocked = blocked(key, permits, maxWaitNanos, patience);
        if (blocked != null) {
            return blocked;
        }
        CellReservation reservation = reserveUnblocked(key, permits, maxWaitNanos, patience);
        if (reservation.isRefused() && reject(key, permits, patience)) {
            reservation.refused(asBlocked(key, reservation.decision()));
        }
        return reservation;
    }

    private CellReservation reserveUnblocked(@Nullable Object key, long permits, long maxWaitNanos, long patience) {
        CellReservation first = reserveOnce(reservation(key, permits, patience), whole.joined ? 0 : maxWaitNanos);
        if (!whole.joined || first.goesAtOnce()) {
            return first;
        }
        // It may wait for, or be refused by, permits that another call holds for a moment.
        first.cancel();
        return maxWaitNanos > 0
                ? JointLocks.alone(whole, key, () -> reserveOnce(reservation(key, permits, patience), maxWaitNanos))
                : JointLocks.again(
                        whole, key, () -> reserveOnce(reservation(key, permits, patience), 0), Reservation::isRefused);
    }

    private CellReservation reserveOnce(CellReservation reservation, long maxWaitNanos) {
        Object key = reservation.key();
        long permits = reservation.permits();
        long maxWait = waitingRoom.longestWait(key, maxWaitNanos);
        long stamp = NO_STAMP;
        while (true) {
            CellParameters current = current();
            boolean calendar = current.followsCalendar();
            long read = clock.now(calendar);
            Cell cell = key == null ? whole.single : cells().get(key, current, read);
            if (cell.parameters() != current && isOfOthers(key, cell, current)) {
                follow(key);
                continue;
            }
            long now = now(cell.parameters(), current, read);
            long held = calendar ? clock.held() : 0;
            long outcome = cell.reserve(permits, now, maxWait - held, reservation);
            if (outcome == Cell.MOVED || (outcome < 0 && isOutdated(cell))) {
                follow(key);
            } else if (!mayBeStale(cell, now, outcome) || stamp == (stamp = cell.stamp())) {
                return decided(reservation, cell, now, outcome, held);
            }
        }
    }

    private CellReservation reservation(@Nullable Object key, long permits, long patience) {
        return key != null && current() instanceof BlockCell.Parameters
                ? new CellReservation.Patient(this, key, permits, patience)
                : new CellReservation(this, key, permits);
    }

    /**
     * The reservation of no permits. It adds no key. The call is admitted immediately, unless its key is blocked; where calls are charged, it
     * waits, or is rejected, until its key owes no permits.
     */
    private CellReservation nothing(@Nullable Object key, long maxWaitNanos, long patience) {
        CellReservation blocked = blocked(key, 0, maxWaitNanos, patience);
        if (blocked != null) {
            return blocked;
        }
        CellReservation reservation = reservation(key, 0, patience);
        Decision asked = peekUnblocked(key, 0, maxWaitNanos);
        CellParameters current = current();
        reservation.decided(
                key == null ? whole.single : cells().peek(key, current, now(current)),
                asked.admitted() ? asked.waitTime().toNanos() : 0);
        if (!asked.admitted()) {
            followRejected(key);
            reservation.refused(asked);
        }
        return reservation;
    }

    /** The rejection of a call whose key is blocked; null if it is not, or the call is exempt. */
    private @Nullable CellReservation blocked(@Nullable Object key, long permits, long maxWaitNanos, long patience) {
        if (key == null || !whole.blocked || patience == UNJUDGED || left(key) == 0) {
            return null;
        }
        Decision decision = asBlocked(key, peekUnblocked(key, permits, maxWaitNanos));
        if (!decision.blocked()) {
            return null;
        }
        followRejected(key);
        CellReservation rejected = reservation(key, permits, patience);
        rejected.refused(decision);
        return rejected;
    }

    private Decision asBlocked(@Nullable Object key, Decision decision) {
        long left = key == null ? 0 : left(key);
        return left > 0 ? decision.blockedFor(Duration.ofNanos(left)) : decision;
    }

    /** Nanoseconds for which a key is still blocked; 0 when it is not. */
    private long left(Object key) {
        BlockCell cell = block(key);
        return cell == null ? 0 : cell.left(clock.sinceBegin());
    }

    /** The cell of a key as calls of this limiter find it, for a look at its block; null if the limit has no blocks. */
    private @Nullable BlockCell block(Object key) {
        CellParameters current = current();
        return current instanceof BlockCell.Parameters
                        && newest(seen(key, current, now(current))) instanceof BlockCell cell
                ? cell
                : null;
    }

    /** A look at a cell whose parameters have been replaced, and that has not followed yet. */
    private static Cell newest(Cell cell) {
        return cell.parameters().change() == null ? cell : cell.copy().newest();
    }

    /**
     * Judges a call that was rejected, and that is not blocked.
     *
     * @return whether the key is blocked now
     */
    private boolean reject(@Nullable Object key, long permits, long patience) {
        if (key == null
                || patience == UNJUDGED
                || permits == 0
                || !(current() instanceof BlockCell.Parameters rules)
                || rules.limit().blocksByCharge()) {
            return false;
        }
        long longest = WaitingRoom.longestWait(patience);
        return begin(key, cell -> {
            long now = now(cell.parameters());
            long at = clock.sinceBegin();
            return undecided.judge(key, deferred -> cell.reject(permits, now, longest, at, deferred));
        });
    }

    /** Notes that a call holds permits, and may give them back because of another limit. */
    void hold(Object key, CellReservation call) {
        if (!limit().blocksByCharge()) {
            undecided.add(key, call, clock.sinceBegin());
        }
    }

    /** Notes that such a call is decided, if it is not yet. */
    void decide(Object key, CellReservation call, boolean givesBack) {
        if (undecided.decided(key, call, givesBack) && !limit().blocksByCharge()) {
            begin(key, cell -> cell.offend(clock.sinceBegin()));
        }
    }

    /**
     * Counts what a call of a key was charged when it ended, where its budget does not show it.
     *
     * @param patience as of {@link #patienceOf}; {@link #UNJUDGED} if the charge starts no block
     */
    void charged(@Nullable Object key, Charges.End end, long patience) {
        if (key != null && (end.reserved() != 0 || end.excess() > 0 || patience != UNJUDGED)) {
            long judged = WaitingRoom.longestWait(patience);
            begin(key, cell -> cell.charge(end, now(cell.parameters()), judged, clock.sinceBegin()));
        }
    }

    /** Takes a step on the cell of a key that may begin a block. Returns whether the key is blocked then. */
    private boolean begin(Object key, Function<BlockCell, BlockCell.Step> step) {
        while (true) {
            CellParameters current = current();
            Cell found = cells().get(key, current, now(current));
            if (isOutdated(found)) {
                follow(key);
                continue;
            }
            if (!(found instanceof BlockCell cell)) {
                return false;
            }
            // While it is judged, no call holds permits only for a moment.
            BlockCell.Step taken =
                    whole.joined ? JointLocks.alone(whole, key, () -> step.apply(cell)) : step.apply(cell);
            if (taken == BlockCell.Step.MOVED) {
                follow(key);
                continue;
            }
            long left = cell.left(clock.sinceBegin());
            if (taken == BlockCell.Step.BEGUN) {
                whole.blocked = true;
                observers.tell(new BlockedKey(
                        CanonicalKey.ofText(CellKeys.textOf(key)), Duration.ofNanos(left), cell.level()));
            }
            return left > 0;
        }
    }

    private CellReservation decided(CellReservation reservation, Cell cell, long now, long outcome, long held) {
        reservation.reservedAt(now);
        reservation.decided(cell, outcome > 0 ? outcome + held : outcome);
        if (outcome >= 0 && cell.needsDate(reservation)) {
            replace(reservation.key(), cell, Cell::dated);
        }
        return reservation;
    }

    /** If the cell is retired or rejects, {@link #peek} decides, which knows of late callers and of changes. */
    @Override
    public Reservation ask(Call call, @Nullable Reservation earlier) {
        Object key = named(call.key());
        long permits = Permits.requireAsked(call.permits());
        long maxWaitNanos = call.maxWaitNanos();
        long patience = patienceOf(call);
        if (permits == 0) {
            return nothing(key, maxWaitNanos, patience);
        }
        if (!whole.joined) {
            whole.joined = true;
        }
        CellReservation rejected = blocked(key, permits, maxWaitNanos, patience);
        if (rejected != null) {
            return rejected;
        }
        CellReservation asked = reservation(key, permits, patience);
        CellParameters current = current();
        boolean calendar = current.followsCalendar();
        long shown = earlier instanceof CellReservation other && other.hasRead(clock.ticker(), calendar)
                ? other.read()
                : clock.read(calendar);
        long read = clock.now(calendar, shown);
        Cell cell = key == null ? whole.single : cells().get(key, current, read);
        long held = calendar ? clock.held() : 0;
        long outcome = cell.parameters() == current
                ? cell.peek(permits, read, waitingRoom.longestWait(key, maxWaitNanos) - held)
                : Cell.MOVED;
        if (outcome >= 0) {
            asked.asked(cell, shown);
            return asked;
        }
        Decision decision = peekUnblocked(key, permits, maxWaitNanos);
        if (!decision.admitted()) {
            asked.refused(decision);
        }
        return asked;
    }

    @Override
    public long nanos() {
        return clock.ticker().nanos();
    }

    @Override
    public int lock(Reservation asked) {
        return JointLocks.number(whole, ((CellReservation) asked).key());
    }

    @Override
    public Reservation reserveAsked(Reservation asked, long maxWaitNanos) {
        CellReservation reservation = (CellReservation) asked;
        if (reservation.permits() == 0) {
            return reservation;
        }
        Cell cell = reservation.asked();
        if (cell != null) {
            boolean calendar = cell.parameters().followsCalendar();
            long now = clock.now(calendar, reservation.read());
            long held = calendar ? clock.held() : 0;
            long maxWait = waitingRoom.longestWait(reservation.key(), maxWaitNanos) - held;
            long outcome = cell.reserve(reservation.permits(), now, maxWait, reservation);
            if (outcome >= 0) {
                return decided(reservation, cell, now, outcome, held);
            }
        }
        return reserveOnce(reservation.again(), maxWaitNanos);
    }

    @Override
    public Decision refused(Call call, Decision refusal) {
        Object key = named(call.key());
        followRejected(key);
        return !refusal.blocked() && reject(key, call.permits(), patienceOf(call)) ? asBlocked(key, refusal) : refusal;
    }

    @Override
    public Decision peek(Call call) {
        Object key = named(call.key());
        Decision decision = peekUnblocked(key, Permits.requireAsked(call.permits()), call.maxWaitNanos());
        return whole.blocked && !call.isExemptFromBlocks() ? asBlocked(key, decision) : decision;
    }

    private Decision peekUnblocked(@Nullable Object key, long permits, long maxWaitNanos) {
        // A call that announces nothing does not go into debt any further.
        if (permits == 0 && !isCharged()) {
            return describe(key, 0);
        }
        Decision decision = peekOnce(key, permits, maxWaitNanos);
        return decision.admitted() || !whole.joined
                ? decision
                : JointLocks.again(whole, key, () -> peekOnce(key, permits, maxWaitNanos), again -> !again.admitted());
    }

    private boolean isCharged() {
        return whole.overdrawn || limit().isCharged();
    }

    private Decision peekOnce(@Nullable Object key, long permits, long maxWaitNanos) {
        long maxWait = waitingRoom.longestWait(key, maxWaitNanos);
        long stamp = NO_STAMP;
        while (true) {
            CellParameters current = current();
            boolean calendar = current.followsCalendar();
            long read = clock.now(calendar);
            Cell cell = seen(key, current, read);
            long now = now(cell.parameters(), current, read);
            long held = calendar ? clock.held() : 0;
            long outcome = cell.peek(permits, now, maxWait - held);
            if (outcome < 0 && outcome != Cell.MOVED && isOutdated(cell)) {
                continue;
            }
            if (mayBeStale(cell, now, outcome) && stamp != (stamp = cell.stamp())) {
                continue;
            }
            Decision decision =
                    outcome == Cell.MOVED ? null : decision(cell, now, outcome > 0 ? outcome + held : outcome, held);
            if (decision != null) {
                return decision;
            }
            follow(key);
        }
    }

    /** The cell of a key as calls of this limiter find it, for a look; a twin if it counts by other numbers. */
    private Cell seen(@Nullable Object key, CellParameters current, long read) {
        Cell cell = key == null ? whole.single : cells().peek(key, current, read);
        if (cell.parameters() == current || !isOfOthers(key, cell, current)) {
            return cell;
        }
        Cell copy = cell.copy();
        // The word of a cell that was retired meanwhile says nothing: it would begin anew, with all permits.
        if (copy.peek(1, read, 0) == Cell.MOVED) {
            return cell;
        }
        CellParameters wanted = wanted(key);
        return suited(key, copy, wanted, now(wanted, current, read));
    }

    private long now(CellParameters own) {
        return clock.now(own.followsCalendar());
    }

    /**
     * The time for a cell. The clock is read before the cell is looked up, because a new cell is in its
     * initial state at that time. A cell with other parameters may count in another time.
     */
    private long now(CellParameters own, CellParameters current, long read) {
        return own == current ? read : now(own);
    }

    /** Returns whether another call may have been decided at a later time, at which this rejected call would be admitted. */
    private boolean mayBeStale(Cell cell, long now, long outcome) {
        return outcome < 0
                && outcome > Cell.UNKNOWN
                && clock.newest(cell.parameters().followsCalendar()) - now >= ~outcome;
    }

    /** Gives back permits of a reservation, to its cell or to the cell that has replaced it; none after a change of the limit. */
    void giveBack(@Nullable Object key, Cell cell, CellReservation reservation, long permits) {
        Cell last = isOutdated(cell) ? null : cell;
        while (last != null && !last.giveBack(reservation, permits, now(last.parameters()))) {
            Cell next = replace(key, last, Cell::divide);
            last = next != null && next != last && next.hasOriginOf(cell) ? next : null;
        }
    }

    /** Takes permits that have been used already from the present budget of the key. */
    void charge(@Nullable Object key, long permits) {
        if (!whole.overdrawn) {
            whole.overdrawn = true;
        }
        while (true) {
            CellParameters current = current();
            long read = now(current);
            Cell cell = key == null ? whole.single : cells().get(key, current, read);
            if (isOutdated(cell)) {
                follow(key);
                continue;
            }
            if (cell.charge(permits, now(cell.parameters(), current, read))) {
                return;
            }
            if (cell.parameters().change() == null) {
                replace(key, cell, Cell::divide);
            } else {
                follow(key);
            }
        }
    }

    /** Adds permits that were taken elsewhere to the budget of a key, at most until it is full: of a bucket, not of a window. */
    public void refill(@Nullable Object stated, long permits) {
        change(named(stated), cell -> cell.refilled(permits, now(cell.parameters())));
    }

    private @Nullable Cell replace(@Nullable Object key, Cell cell, CachedCells.Successor successor) {
        return key == null ? whole.replace(cell, successor) : cells().replace(key, cell, successor);
    }

    private synchronized Cell replace(Cell cell, CachedCells.Successor successor) {
        single = successor.of(single, cell, now(single.parameters()));
        return single;
    }

    /** The decision on a reservation, with the present budget of its key. */
    Decision describe(@Nullable Object key, long outcome) {
        while (true) {
            CellParameters current = current();
            boolean calendar = current.followsCalendar();
            long read = clock.now(calendar);
            Cell cell = seen(key, current, read);
            Decision decision =
                    decision(cell, now(cell.parameters(), current, read), outcome, calendar ? clock.held() : 0);
            if (decision != null) {
                return decision;
            }
            follow(key);
        }
    }

    /**
     * The decision with the budget of a cell; null when the cell was retired meanwhile, so that its budget means nothing.
     *
     * @param held nanoseconds by which times are longer than in the time of the cell: that of a wall clock, which may be held
     */
    private static @Nullable Decision decision(Cell cell, long now, long outcome, long held) {
        boolean retry = outcome < 0 && outcome != Cell.NEVER && outcome != Cell.UNKNOWN;
        long toFull = cell.nanosToFull(now);
        toFull += toFull > 0 && toFull < Long.MAX_VALUE ? held : 0;
        long remaining = cell.remaining(now);
        if (cell.peek(1, now, 0) == Cell.MOVED) {
            return null;
        }
        return new Decision(
                cell.parameters().limit().name(),
                outcome >= 0,
                Duration.ofNanos(Math.max(0, outcome)),
                retry ? Duration.ofNanos(~outcome) : null,
                outcome == Cell.NEVER,
                remaining,
                Duration.ofNanos(toFull == Long.MAX_VALUE ? 0 : toFull),
                Decision.Source.MEMORY);
    }

    @Override
    public void reset(@Nullable Object stated) {
        Object key = cellKey(stated);
        for (String other : otherWindows) {
            resetCell(CellKeys.of(other, key));
        }
        if (key != null) {
            resetCell(key);
        } else {
            synchronized (whole) {
                whole.single.retire();
                whole.single = whole.initial();
            }
        }
    }

    /** The key keeps its numbers. Its new cell knows of none before those, or it would have less of a larger burst. */
    private void resetCell(Object named) {
        undecided.forget(named);
        Cell cell = cells().known(named);
        CellParameters own =
                cell == null ? current() : whole.withNumbersOf(cell).current();
        boolean remembers = own.budget().nanosToForget(now(own)) > 0;
        cells().reset(named, remembers ? twin(own) : own);
    }

    @Override
    public synchronized void update(Limit limit) {
        if (whole != this) {
            throw new UnsupportedOperationException("numbers of callers follow their limit");
        }
        CellParameters before = parameters;
        before.limit().requireChangeableTo(limit);
        CellParameters next = CellFactory.parameters(limit, clock.ticker().nanos(), base);
        long at = now(next);
        next.inherit(before.budget(), at);
        String counted = CellKeys.windowOf(limit);
        if (!counted.isEmpty()) {
            window = counted;
        }
        replaceParameters(next, at);
    }

    /**
     * After a step back of the wall clock that is not held, cells of windows far ahead go on in the one that it shows. A reading
     * under the lock, in the middle of a change, has the time that is held; the next reading outside follows.
     */
    private void followClockBack() {
        if (!Thread.holdsLock(this)) {
            goBack();
        }
    }

    private synchronized void goBack() {
        long shown = clock.steppedBackTo();
        if (shown == SteadyClock.NOT_BACK || !parameters.followsCalendar()) {
            return;
        }
        CellParameters next =
                CellFactory.parameters(parameters.limit(), clock.ticker().nanos(), base);
        next.goBackTo(shown);
        next.inherit(parameters.budget(), shown);
        clock.setBack(shown);
        replaceParameters(next, shown);
    }

    /** Has the clock held for the shortest windows in use: held for longer, it would stop them. */
    private void holdClock(CellParameters used) {
        if (!CellKeys.windowOf(used.limit()).isEmpty()) {
            shortestWindow = Math.min(shortestWindow, used.idleNanos());
        }
        if (used.followsCalendar()) {
            clock.holdCalendar(
                    shortestWindow == Long.MAX_VALUE ? used.idleNanos() : shortestWindow, this::followClockBack);
        }
    }

    private void replaceParameters(CellParameters next, long at) {
        parameters.replaceBy(next, at);
        parameters = next;
        shortestWindow = Long.MAX_VALUE;
        holdClock(next);
        single = single.newest().budget();
        CachedCells cells = keyed;
        if (cells != null) {
            cells.replaceParameters(next);
        }
    }

    @Override
    public long keys() {
        CachedCells cells = whole.keyed;
        return cells == null ? 0 : cells.size();
    }

    @Override
    public void close() {
        if (whole == this) {
            waitingRoom.close();
        }
    }

    @Override
    public int waiting() {
        return waitingRoom.size();
    }

    @Override
    public Stream<Object> knownKeys() {
        CachedCells cells = whole.keyed;
        return cells == null
                ? Stream.empty()
                : cells.keys()
                        .<Object>map(key -> CellKeys.windowOf(key).isEmpty() ? key : CellKeys.textOf(key))
                        .distinct();
    }

    @Override
    public Stream<BlockedKey> blockedKeys() {
        CachedCells cells = whole.keyed;
        if (cells == null || !whole.blocked) {
            return Stream.empty();
        }
        long at = clock.sinceBegin();
        return cells.keys().mapMulti((key, found) -> {
            Cell known = cells.known(key);
            Cell seen = known != null && isOutdated(known)
                    ? whole.withNumbersOf(known).block(key)
                    : known;
            if (seen instanceof BlockCell cell && cell.left(at) > 0) {
                found.accept(new BlockedKey(
                        CanonicalKey.ofText(CellKeys.textOf(key)), Duration.ofNanos(cell.left(at)), cell.level()));
            }
        });
    }

    @Override
    public void onBlock(Consumer<BlockedKey> observer) {
        observers.add(observer);
    }

    WaitingRoom waitingRoom() {
        return waitingRoom;
    }

    Ticker ticker() {
        return clock.ticker();
    }

    private CachedCells cells() {
        CachedCells cells = whole.keyed;
        return cells != null ? cells : whole.makeCells();
    }

    private synchronized CachedCells makeCells() {
        CachedCells cells = keyed;
        if (cells == null) {
            cells = new CachedCells(parameters, clock, maximumKeys.getAsLong());
            keyed = cells;
        }
        return cells;
    }

    /** A call that was only asked is rejected: from now on its permits come by its own numbers, as the rejection says. */
    private void followRejected(@Nullable Object key) {
        CellParameters current = current();
        Cell cell = key == null ? whole.single : cells().peek(key, current, now(current));
        if (cell.parameters() != current && isOfOthers(key, cell, current)) {
            follow(key);
        }
    }

    private void follow(@Nullable Object key) {
        change(key, cell -> {
            CellParameters wanted = wanted(key);
            return suited(key, cell, wanted, now(wanted));
        });
    }

    private void change(@Nullable Object key, UnaryOperator<Cell> successor) {
        if (key != null) {
            cells().follow(key, successor);
        } else {
            synchronized (whole) {
                whole.single = successor.apply(whole.single);
            }
        }
    }
}
