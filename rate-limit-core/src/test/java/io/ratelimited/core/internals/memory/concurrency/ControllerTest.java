package io.ratelimited.core.internals.memory.concurrency;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.ratelimited.core.internals.memory.concurrency.Controller.Phase;
import io.ratelimited.core.overload.FoundLimitChange.Reason;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** The laws of the step that seeks the limit. */
class ControllerTest {

    private static final double MILLI = 1e6;

    /** One second in which calls took so long, with as many in flight as Little's law says. */
    private static Window second(double answered, double millis, boolean bound) {
        double inFlight = answered * millis / 1000;
        return new Window(
                1_000_000_000L,
                (long) answered,
                millis * MILLI,
                inFlight,
                (long) Math.ceil(1.3 * inFlight),
                0,
                0,
                bound,
                (long) inFlight,
                0,
                1,
                1);
    }

    /** Two hundred calls a second of 50 ms. */
    private static Controller calm() {
        Controller controller = Controller.of(4, 1000);
        for (int i = 0; i < 20; i++) {
            controller = controller.next(second(200, 50, false));
        }
        return controller;
    }

    /** A queue that grows until a limit is set: 400 calls a second are served, however many are in flight. */
    private static Controller short400() {
        Controller controller = calm().next(second(400, 55, false));
        for (int inFlight = 40;
                controller.phase() == Phase.FREE && inFlight < 1000;
                inFlight = (int) (inFlight * 1.3)) {
            controller = controller.next(second(400, inFlight / 0.4, false));
        }
        return controller;
    }

    /** The same, when no more calls are in flight than the limit allows. */
    private static Controller drained() {
        return short400().next(new Window(1_000_000_000L, 400, 200 * MILLI, 80, 104, 0, 0, true, 20, 0, 1, 1));
    }

    /** O1, O3 */
    @Test
    void whateverIsSeenTheLimitStaysWithinItsBoundsAndSinksOnlyWhereCallsAreSlowOrLate() {
        for (int seed = 0; seed < 300; seed++) {
            Random random = new Random(seed);
            int least = 1 + random.nextInt(10);
            int most = least + random.nextInt(500);
            Controller controller = Controller.of(least, most);
            for (int step = 0; step < 200; step++) {
                long answered = random.nextInt(5) == 0 ? 0 : random.nextInt(1_000);
                long late = answered == 0 ? 0 : random.nextInt((int) answered + 1);
                long overloaded = random.nextInt(4) == 0 ? random.nextInt(2_000) : 0;
                boolean none = answered + overloaded == 0;
                Window seen = new Window(
                        1 + random.nextInt(2_000_000_000),
                        answered,
                        none ? 0 : 1 + random.nextInt(1_000_000_000),
                        none ? 0 : 1 + random.nextInt(most),
                        none ? 0 : 1 + random.nextInt(most),
                        late,
                        overloaded,
                        random.nextBoolean(),
                        random.nextInt(most),
                        0,
                        1,
                        1);
                Controller next = controller.next(seen);
                String where = "seed " + seed + ", step " + step + ": " + seen;
                assertThat(next.found()).as(where).isBetween(least, most);
                assertThat(next.places(false)).as(where).isBetween(least, most);
                assertThat(next.places(true)).as(where).isBetween(least, next.places(false));
                assertThat(next.placesOfBest()).as(where).isBetween(least, most);
                assertThat(next.settling()).as(where).isNotNegative();
                boolean searches = controller.phase() == Phase.UP || controller.phase() == Phase.FIRST;
                if (!seen.bound() && controller.phase() != Phase.FREE && !searches) {
                    // O3
                    assertThat(next.found()).as(where).isGreaterThanOrEqualTo(controller.found());
                }
                controller = next;
            }
        }
    }

    /** O2 */
    @Test
    void callsThatAreNotSlowLimitNothingHoweverManyThereAre() {
        for (int seed = 0; seed < 100; seed++) {
            Random random = new Random(seed);
            Controller controller = calm();
            for (int i = 0; i < 200; i++) {
                double rate = random.nextInt(10) == 0 ? 15_000 : 10 + random.nextInt(2_000);
                controller = controller.next(second(rate, 50 + random.nextInt(20), random.nextInt(10) == 0));
                assertThat(controller.phase()).isEqualTo(Phase.FREE);
                assertThat(controller.found()).isEqualTo(1000);
            }
        }
    }

    @Test
    void moreAndMoreInFlightThatServeNoMoreSetALimitOfWhatIsServed() {
        Controller controller = short400();
        assertThat(controller.phase()).isEqualTo(Phase.DRAIN);
        assertThat(controller.reason()).isEqualTo(Reason.SERVES_NO_MORE);
        assertThat(controller.found()).isBetween(15, 50);
        assertThat(controller.base()).isBetween(45 * MILLI, 60 * MILLI);
    }

    @Test
    void aDependencyThatBecameSlowIsNoShortage() {
        Controller controller = calm();
        for (double millis : new double[] {60, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000}) {
            controller = controller.next(second(200, millis, false));
            assertThat(controller.phase()).isEqualTo(Phase.FREE);
        }
        assertThat(controller.base()).isEqualTo(1000 * MILLI);
    }

    @Test
    void aTestWithFewerTellsAQueueOfOurOwnFromASlowDependency() {
        Controller drained = drained();
        assertThat(drained.phase()).isEqualTo(Phase.TEST);
        Controller own = drained.next(second(400, drained.limit() / 0.4, true));
        assertThat(own.phase()).isEqualTo(Phase.BELOW);
        Controller others = drained.next(second(drained.limit() / 0.2, 200, true));
        assertThat(others.phase()).isEqualTo(Phase.FREE);
        assertThat(others.found()).isEqualTo(1000);
        assertThat(others.reason()).isEqualTo(Reason.ROOM);
        assertThat(others.base()).isEqualTo(200 * MILLI);
    }

    /** With Little's law: 400 a second of 200 ms need 80 in flight, so many of them were admitted before the test. */
    @Test
    void aTestGoesOnWhileCallsFromBeforeItEnd() {
        Controller drained = drained();
        Controller goesOn = drained.next(
                new Window(1_000_000_000L, 400, 200 * MILLI, drained.limit(), 30, 0, 0, true, 20, 0, 1, 1));
        assertThat(goesOn.phase()).isEqualTo(Phase.TEST);
        assertThat(goesOn.found()).isEqualTo(drained.found());
        assertThat(goesOn.next(second(drained.limit() / 0.2, 200, true)).phase())
                .isEqualTo(Phase.FREE);
        assertThat(goesOn.next(second(400, drained.limit() / 0.4, true)).phase())
                .isEqualTo(Phase.BELOW);
    }

    /** As many calls a second as before, but of 700 ms. */
    private static Controller slower() {
        return calm().next(new Window(400_000_000L, 40, 700 * MILLI, 100, 150, 0, 0, false, 150, 0, 1, 1));
    }

    private static Window quarterOfABaseline(long answered, long left) {
        return new Window(25_000_000L, answered, 700 * MILLI, 150, 170, 0, 0, false, left, 0, 1, 1);
    }

    @Test
    void oneShortWindowInWhichManyArriveAndHardlyAnyEndsIsChance() {
        Controller once = slower().next(quarterOfABaseline(1, 171));
        assertThat(once.phase()).isEqualTo(Phase.FREE);
        Controller over = once.next(quarterOfABaseline(15, 160)).next(quarterOfABaseline(1, 181));
        assertThat(over.phase()).isEqualTo(Phase.FREE);
        assertThat(over.next(quarterOfABaseline(1, 202)).phase()).isEqualTo(Phase.DRAIN);
    }

    /** Arrivals at twelve times the usual rate, none of which ends. */
    private static Controller held() {
        Controller controller = calm();
        for (int left = 60; controller.phase() == Phase.FREE && left < 400; left += 48) {
            controller = controller.next(new Window(20_000_000L, 0, 0, 0, 0, 0, 0, false, left, 0, 1, 1));
        }
        assertThat(controller.phase()).isEqualTo(Phase.HOLD);
        return controller;
    }

    /** So many calls of 50 ms or other ones end while a limit is to be reached, and 300 are left. */
    private static Window hanging(long answered, double millis) {
        return new Window(4_000_000_000L, answered, millis * MILLI, 300, 300, 0, 0, true, 300, 0, 1, 1);
    }

    @Test
    void callsThatHangAlthoughNoOtherIsAdmittedAreNoQueue() {
        Controller controller = held();
        while (controller.phase() == Phase.HOLD) {
            controller = controller.next(new Window(20_000_000L, 0, 0, 0, 0, 0, 0, true, 300, 0, 1, 1));
        }
        assertThat(controller.phase()).isEqualTo(Phase.DRAIN);
        assertThat(controller.isOver(4_000_000_000L, 5, 0, 300)).isTrue();
        assertThat(controller.isOver(3_999_000_000L, 5, 0, 300)).isFalse();
        assertThat(controller.isOver(4_000_000_000L, 100, 0, 300))
                .as("a queue that is served")
                .isFalse();
        assertThat(controller.next(hanging(5, 50)).phase()).isEqualTo(Phase.FREE);
        assertThat(controller.next(hanging(0, 0)).phase()).isEqualTo(Phase.FREE);
        Controller collapse = controller.next(hanging(2, 700));
        assertThat(collapse.phase()).as("a collapse").isEqualTo(Phase.DRAIN);
        assertThat(collapse.next(hanging(0, 0)).phase()).as("no longer").isEqualTo(Phase.FREE);
    }

    /** The window of a sign has few answers, which are slow by chance. */
    @Test
    void whetherCallsHangIsJudgedByThoseThatEndMeanwhile() {
        Controller controller = held();
        while (controller.phase() == Phase.HOLD) {
            controller = controller.next(new Window(20_000_000L, 1, 95 * MILLI, 300, 300, 0, 0, true, 300, 0, 1, 1));
        }
        assertThat(controller.phase()).isEqualTo(Phase.DRAIN);
        assertThat(controller.next(hanging(5, 50)).phase()).isEqualTo(Phase.FREE);
        assertThat(controller.next(hanging(0, 0)).phase()).isEqualTo(Phase.FREE);
    }

    /** Of 100 calls half time out, and so many are left. */
    private static Window halfTimedOut(int left) {
        return new Window(250_000_000L, 50, 500 * MILLI, left, 300, 0, 50, false, left, 0, 1, 1);
    }

    @Test
    void timeOutsLimitWhereOthersTakeTheirPlaces() {
        Controller shortage = calm().next(halfTimedOut(300)).next(halfTimedOut(300));
        assertThat(shortage.phase()).isEqualTo(Phase.DRAIN);
        assertThat(shortage.reason()).isEqualTo(Reason.LATE);
        Controller past = calm().next(second(200, 50, false));
        past = past.next(new Window(250_000_000L, 50, 50 * MILLI, 10, 13, 0, 0, false, 310, 0, 1, 1));
        for (int left = 260; left > 0; left -= 50) {
            past = past.next(halfTimedOut(left));
            assertThat(past.phase()).isEqualTo(Phase.FREE);
        }
    }

    /** Calls of one permit, and a share of calls of a hundred. */
    @Test
    void rareCallsOfManyPermitsChangeNoNumberOfAnswers() {
        Controller controller = Controller.of(4, 1000);
        for (int i = 0; i < 20; i++) {
            controller =
                    controller.next(new Window(1_000_000_000L, 400, 50 * MILLI, 20, 26, 0, 0, false, 20, 0, 50, 2));
        }
        assertThat(controller.isOver(35_000_000L, 32, 0, 20)).isTrue();
        assertThat(controller.isOver(35_000_000L, 31, 0, 20)).isFalse();
        assertThat(controller.watched()).isEqualTo(60);
    }

    @Test
    void aTestWhoseCallsAllHangEnds() {
        Controller drained = drained();
        assertThat(drained.isOver(4_000_000_000L, 0, 0, 20)).isTrue();
        assertThat(drained.isOver(3_999_000_000L, 0, 0, 20)).isFalse();
        assertThat(drained.isOver(4_000_000_000L, 3, 0, 20)).isFalse();
        assertThat(drained.next(new Window(4_000_000_000L, 0, 0, 0, 0, 0, 0, true, 20, 0, 1, 1))
                        .phase())
                .isEqualTo(Phase.FREE);
    }

    @Test
    void whileCallsAreHeldThoseOfLowerClassesLeavePlacesToTheHighest() {
        Controller held = held();
        assertThat(held.places(false)).isEqualTo(held.found());
        assertThat(held.places(true)).isEqualTo((int) Math.round(0.75 * held.limit()));
        assertThat(held.placesOfBest()).isEqualTo((int) Math.round(1.3 * held.limit()));
        Controller after = held.next(second(400, 50, false));
        assertThat(after.places(true)).isEqualTo(after.places(false)).isEqualTo(1000);
    }

    @Test
    void slowCallsBecomeTheBaselineAlsoWhereMostWindowsHaveFewAnswers() {
        Controller controller = slower();
        for (int i = 0; i < 160; i++) {
            controller = controller.next(quarterOfABaseline(i % 20 == 0 ? 10 : 4, 150));
        }
        assertThat(controller.base()).isEqualTo(700 * MILLI);
    }

    /** A service of 400 calls a second, with a latency of 50 ms for a call that waits for no other. */
    @Test
    void aLimitIsTrackedWhereMoreInFlightServeNoMore() {
        Controller controller = short400();
        for (int i = 0; i < 200; i++) {
            double inFlight = controller.places(false);
            controller = controller.next(second(400, Math.max(50, inFlight / 0.4), true));
        }
        assertThat(controller.found()).isBetween(18, 40);
    }

    @Test
    void aLimitGrowsBackWhenMoreInFlightServeMoreAgain() {
        Controller controller = short400();
        for (int i = 0; i < 100 && controller.phase() != Phase.FREE; i++) {
            double inFlight = Math.min(500, controller.places(false));
            controller = controller.next(second(inFlight / 0.05, 50, inFlight < 500));
        }
        assertThat(controller.found()).isGreaterThan(400);
    }

    /** As many in flight, and calls that are as slow. */
    private static Window stillStanding(int inFlight) {
        return new Window(
                2_000_000_000L, 2L * inFlight, 500 * MILLI, inFlight, inFlight, 0, 0, true, inFlight, 0, 1, 1);
    }

    /** Late answers of a number in flight that stands still, as behind the threads of a server. */
    @Test
    void aNumberInFlightThatStandsStillWhileCallsAreSlowIsLimitedBelowIt() {
        Controller controller = Controller.of(4, 1000);
        controller = controller.next(second(80, 50, false));
        for (int i = 0; i < 10 && controller.phase() == Phase.FREE; i++) {
            controller =
                    controller.next(new Window(200_000_000L, 80, 500 * MILLI, 200, 200, 0, 0, false, 199, 0, 1, 1));
        }
        assertThat(controller.phase()).isEqualTo(Phase.DRAIN);
        assertThat(controller.cap()).isEqualTo(180);
        assertThat(controller.found()).isEqualTo(110);
        // A test that does not see clearly fewer goes on, once: most of its calls were admitted before.
        Controller test = controller.next(stillStanding(120)).next(stillStanding(120));
        assertThat(test.phase()).isEqualTo(Phase.TEST);
        assertThat(test.next(stillStanding(110)).phase()).isEqualTo(Phase.FREE);
        assertThat(test.next(stillStanding(120)).phase()).isEqualTo(Phase.FIRST);
    }

    /** As in a service behind threads: 400 calls a second are served, and windows are short, since many more calls than usual came. */
    private static Window ofThreads(int most) {
        return new Window(20_000_000L, 8, 500 * MILLI, most, most, 0, 0, false, most - 1, 0, 1, 1);
    }

    @Test
    void aNumberInFlightThatStandsStillIsLimitedAlsoWhereTheServiceWasBusy() {
        Controller controller = calm();
        for (int i = 0; i < 100 && controller.phase() == Phase.FREE; i++) {
            assertThat(controller.isOver(20_000_000L, 8, 0, 199)).isTrue();
            controller = controller.next(ofThreads(200));
        }
        assertThat(controller.phase()).isEqualTo(Phase.DRAIN);
        assertThat(controller.cap()).isEqualTo(180);
    }

    @Test
    void aNumberInFlightThatChangesIsNotLimitedHoweverManyShortWindowsShowIt() {
        Controller controller = calm();
        for (int i = 0; i < 500; i++) {
            controller = controller.next(ofThreads(200 + i % 7 / 3));
            assertThat(controller.phase()).isEqualTo(Phase.FREE);
        }
        assertThat(controller.base()).isEqualTo(500 * MILLI);
    }

    /** Else nothing would be learned where all calls are of the highest class: as many would be in flight in both steps. */
    @Test
    void theHighestClassTakesTheStepAboveAndPaysForNoStepBelow() {
        Controller below = short400().next(second(400, 70, true)).next(second(400, 70, true));
        assertThat(below.phase()).isEqualTo(Phase.BELOW);
        assertThat(below.placesOfBest()).isGreaterThanOrEqualTo((int) Math.round(1.3 * below.limit()));
        Controller above = below.next(second(400, 80, true));
        assertThat(above.phase()).isEqualTo(Phase.ABOVE);
        assertThat(above.limit()).isEqualTo(below.limit());
        assertThat((double) above.placesOfBest()).isCloseTo(1.15 * below.placesOfBest(), within(1.0));
    }

    @Test
    void withoutKnowledgeASearchBeginsLowAndDoublesWhileMoreAreServed() {
        Controller controller = Controller.of(4, 1000).next(second(10, 50, false));
        for (int i = 0; i < 3; i++) {
            controller =
                    controller.next(new Window(100_000_000L, 30, 900 * MILLI, 1000, 1000, 0, 0, true, 1000, 0, 1, 1));
            if (controller.phase() != Phase.FREE) {
                break;
            }
        }
        assertThat(controller.found()).isEqualTo(20);
        controller = controller.next(new Window(1_000_000_000L, 900, 900 * MILLI, 500, 1000, 0, 0, true, 20, 0, 1, 1));
        StringBuilder levels = new StringBuilder();
        for (int i = 0; i < 30 && controller.phase() != Phase.BELOW; i++) {
            levels.append(controller.found()).append(' ');
            double inFlight = controller.places(false);
            controller = controller.next(second(Math.min(1000, inFlight / 0.05), Math.max(50, inFlight), true));
        }
        assertThat(levels.toString()).startsWith("20 40 80 ");
        assertThat(controller.found()).isBetween(40, 110);
    }

    @Test
    void otherBoundsHoldAtOnceAndTheBaseTimeStays() {
        Controller controller = calm().within(1, 10);
        assertThat(controller.found()).isEqualTo(10);
        assertThat(controller.places(false)).isEqualTo(10);
        assertThat(controller.base()).isEqualTo(50 * MILLI);
        assertThat(controller.reason()).isEqualTo(Reason.BOUNDS);
        assertThat(short400().within(200, 300).found()).isEqualTo(200);
    }

    /** Steps wait until the calls from before have ended, so that a step is not judged by them. */
    @Test
    void stepsWaitForTheCallsFromBefore() {
        assertThat(calm().settling()).isZero();
        Controller tracking = short400().next(second(400, 70, true)).next(second(400, 70, true));
        assertThat(tracking.phase()).isEqualTo(Phase.BELOW);
        assertThat(tracking.places(false)).isLessThan(tracking.found());
        assertThat(tracking.settling()).isEqualTo((long) (70 * MILLI));
    }

    @Test
    void aWindowIsOverWhenItHasLastedAndEnoughCallsHaveEnded() {
        Controller none = Controller.of(4, 1000);
        assertThat(none.isOver(Tuning.SHORTEST, 3, 0, 9)).isFalse();
        assertThat(none.isOver(Tuning.SHORTEST, 4, 0, 9)).isTrue();
        Controller controller = calm();
        assertThat(controller.isOver(Tuning.SHORTEST, 1_000, 0, 9)).isFalse();
        assertThat(controller.isOver(35_000_000L, 15, 0, 9)).isFalse();
        assertThat(controller.isOver(35_000_000L, 16, 0, 9)).isTrue();
        assertThat(controller.isOver(2_000_000_000L, 1, 0, 9)).isTrue();
        assertThat(controller.watched()).isEqualTo(30);
        assertThat(controller.isOver(25_000_000L, 0, 0, 30)).isTrue();
    }
}
