package io.ratelimited.redis.simulation;

import io.ratelimited.core.Limit;
import io.ratelimited.core.Rate;
import io.ratelimited.core.internals.memory.CellRateLimiter;
import io.ratelimited.redis.simulation.Simulations.Plans;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Supplier;
import net.bytebuddy.asm.Advice;

/** Changes of methods. */
@SuppressWarnings("UnusedVariable") // what an advice assigns to its parameters changes the method
final class MethodMutants {

    private MethodMutants() {}

    static List<MethodMutant> all() {
        return List.of(
                MethodMutant.skipped(
                        "a node forgets blocks that Redis has told it",
                        Plans.BLOCKS,
                        "internals.limiter.InstanceBlocks",
                        "learn",
                        "change"),
                MethodMutant.changed(
                        "what is over the share of a node alone begins a block",
                        Plans.BLOCKS,
                        "internals.limiter.LocalFallback$Counted",
                        "violates",
                        Always.class),
                MethodMutant.skipped(
                        "Redis does not hear of blocks that began without it",
                        Plans.BLOCKS,
                        "internals.limiter.InstanceBlocks",
                        "offend",
                        "tellRedis"),
                MethodMutant.skipped(
                        "a block that Redis does not have yet does not hold where it began",
                        Plans.BLOCKS,
                        "internals.limiter.RedisRateLimiter",
                        "known",
                        "owed"),
                MethodMutant.skipped(
                        "a known block ends with the first outage",
                        Plans.BLOCKS,
                        "internals.limiter.RemoteLimiter",
                        "fixed",
                        "blockedHere"),
                MethodMutant.skipped(
                        "a node does not fetch what others have changed",
                        Plans.FLEET,
                        "SharedRecords",
                        "catchUp",
                        "read"),
                MethodMutant.changed(
                        "a record whose version is taken but not read",
                        Plans.FLEET,
                        "SharedRecords",
                        "catchUp",
                        VersionAlone.class),
                MethodMutant.skipped(
                        "what Redis has lost is not written back", Plans.FLEET, "SharedRecords", "take", "writeBack"),
                MethodMutant.skipped(
                        "a node does not take what others have written",
                        Plans.FLEET,
                        "SharedRecords",
                        "advance",
                        "isNewer"),
                MethodMutant.skipped(
                        "a node does not tell what others have changed",
                        Plans.FLEET,
                        "SharedRecords",
                        "advance",
                        "tell"),
                MethodMutant.skipped(
                        "a node that has read the whole record does not tell what is new",
                        Plans.FLEET,
                        "SharedRecords",
                        "take",
                        "tell"),
                MethodMutant.skipped(
                        "nothing is held back while the server is away: whoever comes waits for the timeout",
                        Plans.TINY,
                        "internals.connection.CommandSender",
                        "refusal",
                        "isAway"),
                MethodMutant.skipped(
                        "a command that is never answered never fails",
                        Plans.TINY,
                        "internals.connection.CommandSender",
                        "send",
                        "add"),
                MethodMutant.skipped(
                        "a silent server is asked on",
                        Plans.TINY,
                        "internals.connection.CommandSender$Reply",
                        "expire",
                        "failed"),
                MethodMutant.changed(
                        "a deadline is noticed 30 ms late",
                        Plans.TINY,
                        "internals.connection.Deadlines",
                        "of",
                        Later.class),
                MethodMutant.skipped(
                        "the timer that has rested never looks at deadlines again",
                        Plans.TINY,
                        "internals.connection.Deadlines",
                        "look",
                        "set"),
                MethodMutant.changed(
                        "the handler of a log that throws ends the thread which called it",
                        Plans.TINY,
                        "internals.connection.Threads",
                        "log",
                        Unguarded.class),
                MethodMutant.skipped(
                        "a task that is to run again and again runs once",
                        Plans.TINY,
                        "internals.connection.Threads",
                        "every",
                        "every"),
                MethodMutant.skipped(
                        "what ends while Redis is away is forgotten",
                        Plans.TINY,
                        "internals.connection.Deliveries",
                        "deliver",
                        "keep"),
                MethodMutant.changed(
                        "the end of a call whose connection breaks is not sent again",
                        Plans.TINY,
                        "internals.connection.GuardedConnection$DeliveryKind",
                        "<init>",
                        NothingIsRepeated.class),
                MethodMutant.changed(
                        "the end of a call is sent four times to a server that answers with errors",
                        Plans.TINY,
                        "internals.connection.Deliveries$Delivery",
                        "<init>",
                        ManyTries.class),
                MethodMutant.changed(
                        "an attempt to connect that hangs holds up the next one",
                        Plans.TINY,
                        "internals.connection.Server",
                        "look",
                        OneAttemptAtATime.class),
                MethodMutant.skipped(
                        "a server that begins to refuse the time while it is away is never found again",
                        Plans.TINY,
                        "internals.connection.Server",
                        "probe",
                        "use"),
                MethodMutant.skipped(
                        "a server that is back is never asked",
                        Plans.TINY,
                        "internals.connection.Server",
                        "recovered",
                        "answers"),
                MethodMutant.skipped(
                        "no time is asked for when scripts are refused it",
                        Plans.TINY,
                        "internals.connection.ServerTime",
                        "handleRefusal",
                        "turnsToNode"),
                MethodMutant.skipped(
                        "two scripts of one call have the timeout each",
                        Plans.TINY,
                        "internals.limiter.MultiLimitCall",
                        "reserveAsync",
                        "limitTime"),
                MethodMutant.skipped(
                        "a place dropped in the transaction: what one limit has given stays taken when another rejects",
                        Plans.TINY,
                        "io.ratelimited.core.several.Transaction",
                        "all",
                        "undo"),
                MethodMutant.replaced(
                        "a reservation that comes after its caller has given up stays taken",
                        Plans.TINY,
                        "internals.limiter.RemoteLimiter",
                        "reserveAsync",
                        "orGivenBack",
                        "withoutGiveBack"),
                MethodMutant.unwritten(
                        "a lease that is handed out is not counted",
                        Plans.SMALL,
                        "internals.limiter.Lease",
                        "handOut",
                        "left"),
                MethodMutant.replaced(
                        "a lease that was refused is handed out",
                        Plans.SMALL,
                        "internals.limiter.Lease",
                        "answered",
                        "admitted",
                        "yes"),
                MethodMutant.changed(
                        "a denial is kept for a second",
                        Plans.TINY,
                        "internals.limiter.KeyState",
                        "refused",
                        HeldForASecond.class),
                MethodMutant.replaced(
                        "a limit that denies while Redis is away admits",
                        Plans.TINY,
                        "internals.limiter.RemoteLimiter",
                        "fixed",
                        "apply",
                        "admitUnlessUndecided"),
                MethodMutant.skipped(
                        "a call that ends keeps its place",
                        Plans.TINY,
                        "internals.limiter.InFlightCall",
                        "release",
                        "end"),
                MethodMutant.skipped(
                        "a place that was taken without a reply is kept",
                        Plans.TINY,
                        "internals.limiter.InFlightCall",
                        "ask",
                        "giveBack"),
                MethodMutant.skipped(
                        "a caller that left the queue keeps the place which it is given afterwards",
                        Plans.TINY,
                        "internals.limiter.InFlightCall",
                        "start",
                        "end"),
                MethodMutant.changed(
                        "a node counts none of its calls while Redis is away",
                        Plans.TINY,
                        "internals.limiter.RedisConcurrencyLimiter",
                        "count",
                        NoMaximum.class),
                MethodMutant.changed(
                        "nodes with other numbers of permits count apart",
                        Plans.TINY,
                        "internals.limiter.ScriptParameters",
                        "fullName",
                        KeyOfTheRate.class),
                MethodMutant.unwritten(
                        "a lease that goes back is handed out as well",
                        Plans.WIDE,
                        "internals.limiter.Lease",
                        "wish",
                        "left"),
                MethodMutant.skipped(
                        "the end of a call that an older command may overtake is sent once",
                        Plans.WIDE,
                        "internals.limiter.InFlightCall",
                        "giveBack",
                        "endAgain"),
                MethodMutant.changed(
                        "what follows the end of a call counts from when its caller has left, however late the end"
                                + " comes to Redis",
                        Plans.WIDE,
                        "internals.limiter.InFlightCall",
                        "deliverEnd",
                        DeliveredAtOnce.class),
                MethodMutant.skipped(
                        "calls that wait for a place ask on in vain while Redis is away",
                        Plans.LASTING,
                        "internals.limiter.ConcurrencyQueue",
                        "serveHead",
                        "isDown"),
                MethodMutant.skipped(
                        "a caller who is interrupted stays in the queue",
                        Plans.WIDE,
                        "internals.limiter.InFlightCall",
                        "cancel",
                        "crowdOut"),
                MethodMutant.changed(
                        "what an executor rejects is lost", Plans.WIDE, "CallersExecutor", "orElse", NoOther.class),
                MethodMutant.skipped(
                        "a slot that moves is not followed",
                        Plans.WIDE,
                        "internals.connection.CommandSender$Reply",
                        "failed",
                        "isCluster"),
                MethodMutant.changed(
                        "a server that imports a slot is asked as if it owned it",
                        Plans.WIDE,
                        "internals.connection.CommandSender$Reply",
                        "sendTo",
                        NotAsking.class),
                MethodMutant.skipped(
                        "what a call has cost beyond its reservation is not charged",
                        Plans.SETTLING,
                        "internals.limiter.RedisRateLimiter",
                        "reservation",
                        "charge"),
                MethodMutant.changed(
                        "a charge whose reply is lost is sent again",
                        Plans.SETTLING,
                        "internals.connection.GuardedConnection$DeliveryKind",
                        "<init>",
                        ChargesAreRepeated.class),
                MethodMutant.skipped(
                        "a charge that a server refuses without having written anything is lost",
                        Plans.SETTLING,
                        "internals.connection.Deliveries",
                        "isWantedAfter",
                        "hasChangedNothing"),
                MethodMutant.replaced(
                        "a reservation is settled as often as its caller says",
                        Plans.SETTLING,
                        "internals.limiter.RedisReservation",
                        "settle",
                        "compareAndSet",
                        "compareOnly"),
                MethodMutant.replaced(
                        "what was charged is given back by a call that was admitted while Redis was away",
                        Plans.SETTLING,
                        "internals.limiter.LocalFallback",
                        "reserve",
                        "changeCharge",
                        "forgetCharge"),
                MethodMutant.changed(
                        "the bucket of one outage is kept, and fills while Redis decides, until the next",
                        Plans.OUTAGES,
                        "internals.connection.GuardedConnection",
                        "outage",
                        NeverOver.class),
                MethodMutant.changed(
                        "a caller who is decided after an outage makes the bucket of the next",
                        Plans.OUTAGES,
                        "internals.limiter.LocalBudgets",
                        "forCall",
                        MadeByLateCallers.class),
                MethodMutant.changed(
                        "each outage begins with the share of a burst",
                        Plans.LATE_REPLIES,
                        "internals.limiter.LocalBudgets",
                        "forCall",
                        MadeByEachOutage.class),
                MethodMutant.changed(
                        "a node gets back what its share was refilled with in an outage",
                        Plans.OUTAGES,
                        "internals.limiter.Spent$Bucket",
                        "refilled",
                        NothingRefilled.class),
                MethodMutant.changed(
                        "a node that has not counted the others has the whole limit to itself",
                        Plans.OUTAGES,
                        "internals.limiter.Nodes",
                        "sharers",
                        CountsItselfAlone.class),
                MethodMutant.changed(
                        "a node has three times the rate to itself",
                        Plans.OUTAGES,
                        "internals.limiter.InstanceShare",
                        "paced",
                        ThreeTimesTheRate.class),
                MethodMutant.changed(
                        "a node has three times the places of a limit of calls in flight to itself",
                        Plans.TINY,
                        "internals.limiter.InstanceShare",
                        "of",
                        ThreeTimesThePlaces.class),
                MethodMutant.skipped(
                        "a charge while Redis is away is forgotten",
                        Plans.SETTLING,
                        "internals.limiter.LocalFallback",
                        "charge",
                        "owe"));
    }

    static final class Later {

        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) long deadline) {
            deadline += 30_000_000;
        }
    }

    static final class Unguarded {

        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(
                @Advice.Argument(0) System.Logger.Level level,
                @Advice.Argument(1) Supplier<String> text,
                @Advice.Argument(2) Throwable failure,
                @Advice.FieldValue("log") Executor log) {
            log.execute(new Replacements.UnguardedLine(level, text, failure));
            return true;
        }
    }

    static final class NothingIsRepeated {

        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 2, readOnly = false) boolean repeatable) {
            repeatable = false;
        }
    }

    static final class ChargesAreRepeated {

        @Advice.OnMethodEnter
        static void enter(
                @Advice.Argument(0) String name, @Advice.Argument(value = 2, readOnly = false) boolean repeatable) {
            repeatable |= name.equals("CHARGE");
        }
    }

    /** Each try counts as 38 of 150. */
    static final class ManyTries {

        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 4, readOnly = false) int tries) {
            tries += tries == 0 ? 0 : 37;
        }
    }

    static final class OneAttemptAtATime {

        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(@Advice.FieldValue("ready") CompletableFuture<?> connection) {
            return !connection.isDone();
        }
    }

    static final class HeldForASecond {

        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 3, readOnly = false) long hold) {
            hold = 1_000_000_000;
        }
    }

    static final class NoMaximum {

        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 1, readOnly = false) long most) {
            most = Long.MAX_VALUE;
        }
    }

    static final class KeyOfTheRate {

        @Advice.OnMethodExit
        static void exit(@Advice.FieldValue("limit") Limit limit, @Advice.Return(readOnly = false) String key) {
            key += limit.rate();
        }
    }

    /** The task that follows is run when the end is to be sent, and not when Redis has replied. */
    static final class DeliveredAtOnce {

        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 1, readOnly = false) Runnable delivered) {
            delivered.run();
            delivered = Replacements.NOTHING;
        }
    }

    static final class NoOther {

        @Advice.OnMethodExit
        static void exit(@Advice.Argument(0) Executor executor, @Advice.Return(readOnly = false) Executor safe) {
            safe = executor;
        }
    }

    static final class VersionAlone {

        @Advice.OnMethodEnter
        static void enter(
                @Advice.Argument(0) long version, @Advice.FieldValue(value = "known", readOnly = false) long known) {
            known = version;
        }
    }

    static final class NotAsking {

        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 1, readOnly = false) boolean asking) {
            asking = false;
        }
    }

    static final class NeverOver {

        @Advice.OnMethodExit
        static void exit(@Advice.This Object self, @Advice.Return(readOnly = false) Object outage) {
            if (outage == null) {
                outage = self;
            }
        }
    }

    static final class MadeByLateCallers {

        @Advice.OnMethodEnter
        static void enter(
                @Advice.Argument(0) Supplier<Object> present,
                @Advice.FieldValue("outage") Object last,
                @Advice.FieldValue(value = "limiter", readOnly = false) CellRateLimiter limiter) {
            if (last != null && present.get() == null) {
                limiter = null;
            }
        }
    }

    static final class MadeByEachOutage {

        @Advice.OnMethodEnter
        static void enter(
                @Advice.Argument(0) Supplier<Object> present,
                @Advice.FieldValue("outage") Object last,
                @Advice.FieldValue(value = "limiter", readOnly = false) CellRateLimiter limiter) {
            Object now = present.get();
            if (now != null && now != last) {
                limiter = null;
            }
        }
    }

    static final class NothingRefilled {

        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) long permits) {
            permits = 0;
        }
    }

    static final class CountsItselfAlone {

        @Advice.OnMethodExit
        static void exit(
                @Advice.FieldValue("expected") int expected,
                @Advice.FieldValue("lastCount") int lastCount,
                @Advice.Return(readOnly = false) int nodes) {
            if (expected == 0) {
                nodes = Math.max(1, lastCount);
            }
        }
    }

    static final class ThreeTimesTheRate {

        @Advice.OnMethodExit
        static void exit(@Advice.Argument(0) Rate limit, @Advice.Return(readOnly = false) Rate share) {
            share = new Rate(limit.permits(), limit.period().dividedBy(3));
        }
    }

    static final class ThreeTimesThePlaces {

        @Advice.OnMethodExit
        static void exit(@Advice.Argument(0) Limit limit, @Advice.Return(readOnly = false) Limit share) {
            if (limit.algorithm().countsCallsInFlight()) {
                share = limit.toBuilder()
                        .maxConcurrent(limit.maxConcurrent() * 3)
                        .build();
            }
        }
    }

    static final class Always {

        @Advice.OnMethodExit
        static void end(@Advice.Return(readOnly = false) boolean result) {
            result = true;
        }
    }
}
