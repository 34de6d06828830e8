package io.ratelimited.core.memory.concurrency;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.overload.LimitChange.Reason;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** The laws of the step that seeks the limit. */
class ControllerTest {

    private static final double MILLI = 1e6;

    /** One second in which calls took so long, with as many in flight as Little's law says. */
    private static Window second(long answered, double millis, boolean bound) {
        double inFlight = answered * millis / 1000;
        return new Window(1_000_000_000L, answered, millis * MILLI, inFlight, (long) Math.ceil(inFlight), 0, 0, bound);
    }

    private static Controller quiet() {
        Controller controller = Controller.of(4, 1000);
        for (int i = 0; i < 20; i++) {
            controller = controller.next(second(200, 50, false));
        }
        return controller;
    }

    /** O1, O3 */
    @Test
    void whateverIsSeenTheLimitStaysWithinItsBoundsAndRisesOnlyWhereItRefuses() {
        for (int seed = 0; seed < 200; seed++) {
            Random random = new Random(seed);
            int least = 1 + random.nextInt(10);
            int most = least + random.nextInt(500);
            Controller controller = Controller.of(least, most);
            for (int step = 0; step < 200; step++) {
                long answered = random.nextInt(5) == 0 ? 0 : random.nextInt(1_000);
                long late = answered == 0 ? 0 : random.nextInt((int) answered + 1);
                Window seen = new Window(
                        1 + random.nextInt(2_000_000_000),
                        answered,
                        answered == 0 ? 0 : random.nextInt(1_000_000_000),
                        answered == 0 ? 0 : 1 + random.nextInt(most),
                        answered == 0 ? 0 : 1 + random.nextInt(most),
                        late,
                        random.nextInt(4) == 0 ? random.nextInt(2_000) : 0,
                        random.nextBoolean());
                Controller next = controller.next(seen);
                String where = "seed " + seed + ", step " + step + ": " + seen;
                assertThat(next.limit()).as(where).isBetween(least, most);
                assertThat(next.places()).as(where).isBetween(least, most);
                assertThat(next.placesOfBest()).as(where).isBetween(least, most);
                if (!seen.bound()) {
                    // O3
                    assertThat(next.limit()).as(where).isLessThanOrEqualTo(controller.limit());
                }
                controller = next;
            }
        }
    }

    /** O2 */
    @Test
    void aLimitThatRefusesNothingStaysWellAboveWhatIsInFlight() {
        Controller controller = quiet();
        assertThat(controller.limit()).isBetween(30, 40);
        assertThat(controller.base()).isEqualTo(50 * MILLI);
        Random random = new Random(1);
        for (int i = 0; i < 200; i++) {
            Window seen = second(10 + random.nextInt(190), 40 + random.nextInt(20), false);
            int before = controller.limit();
            controller = controller.next(seen);
            assertThat(controller.limit()).isGreaterThanOrEqualTo(Math.min(before, 3 * (int) seen.most()));
        }
    }

    @Test
    void callsThatTakeNoLongerAlthoughOthersAreRefusedRaiseTheLimit() {
        Controller controller = quiet();
        int before = controller.limit();
        controller = controller.next(second(600, 52, true));
        assertThat(controller.limit()).isBetween((int) (1.2 * before), (int) (1.3 * before));
        assertThat(controller.reason()).isEqualTo(Reason.ROOM);
    }

    /** A service of 400 calls a second, with a time of 50 ms for a call that waits for no other. */
    @Test
    void aQueueOfItsOwnIsDrainedAndTheBaseTimeKept() {
        Controller controller = quiet();
        for (int i = 0; i < 40; i++) {
            double inFlight = controller.places();
            controller = controller.next(second(400, Math.max(50, inFlight / 400 * 1000), true));
        }
        assertThat(controller.limit()).isBetween(20, 40);
        assertThat(controller.base()).isBetween(25 * MILLI, 55 * MILLI);
    }

    /** The same dependency takes 250 ms, however few are admitted, and serves any number. */
    @Test
    void aDependencyThatHasBecomeSlowIsNotTakenForAQueue() {
        Controller controller = quiet();
        for (int i = 0; i < 10; i++) {
            controller = controller.next(second((long) (controller.places() / 0.055), 55, true));
        }
        for (int i = 0; i < 40; i++) {
            controller = controller.next(second((long) (controller.places() / 0.25), 250, true));
        }
        assertThat(controller.base()).isBetween(200 * MILLI, 260 * MILLI);
        assertThat(controller.limit()).isGreaterThan(200);
    }

    @Test
    void lateAnswersLowerTheLimitOnlyWhereFewerInFlightWouldBeFaster() {
        Controller controller = quiet();
        Window late = new Window(1_000_000_000L, 400, 80 * MILLI, 32, 32, 200, 0, true);
        assertThat(controller.next(late).limit()).isLessThan(controller.limit());
        Window lateAnyway = new Window(1_000_000_000L, 400, 50 * MILLI, 32, 32, 400, 0, true);
        assertThat(controller.next(lateAnyway).limit()).isEqualTo(controller.limit());
    }

    @Test
    void callsThatOthersRefuseLowerTheLimit() {
        Controller controller = quiet();
        Window refused = new Window(1_000_000_000L, 100, 50 * MILLI, 30, 30, 0, 300, true);
        assertThat(controller.next(refused).limit()).isLessThan(controller.limit());
        assertThat(controller.next(refused).reason()).isEqualTo(Reason.LATE);
    }

    @Test
    void otherBoundsHoldAtOnceAndTheBaseTimeStays() {
        Controller controller = quiet().within(1, 10);
        assertThat(controller.limit()).isEqualTo(10);
        assertThat(controller.places()).isEqualTo(10);
        assertThat(controller.base()).isEqualTo(50 * MILLI);
        assertThat(controller.within(20, 30).limit()).isEqualTo(20);
        assertThat(controller.reason()).isEqualTo(Reason.BOUNDS);
    }

    /** A service of 200 calls a second and 20 ms, whose base time was learned while more and more waited. */
    @Test
    void aBaseTimeThatWasLearnedInAQueueIsFound() {
        Controller controller = Controller.of(4, 1000).next(second(200, 100, true));
        for (int i = 0; i < 600; i++) {
            double inFlight = controller.places();
            controller = controller.next(second(200, Math.max(20, inFlight / 200 * 1000), true));
        }
        assertThat(controller.base()).isLessThan(40 * MILLI);
        assertThat(controller.limit()).isLessThan(14);
    }

    /** Calls are quick by a base time that is too long, and more in flight end no faster. */
    @Test
    void growthThatServesNoMoreLowersTheBaseTime() {
        Controller controller = Controller.of(4, 1000).next(second(200, 100, true));
        for (int i = 0; i < 20; i++) {
            double inFlight = 20 * Math.pow(1.25, i);
            controller = controller.next(
                    new Window(1_000_000_000L, 200, 100 * MILLI, inFlight, (long) inFlight, 0, 0, true));
        }
        assertThat(controller.base()).isLessThan(95 * MILLI);
    }

    /** One slow window in which fewer end is a pause of the process; two are a wall, from which the limit grows slowly. */
    @Test
    void aPauseIsNoWall() {
        Controller before = quiet().next(second(600, 52, true));
        Window slow = new Window(1_000_000_000L, 300, 150 * MILLI, 45, 45, 0, 0, true);
        Window quick = second(500, 52, true);
        Controller afterPause = before.next(slow).next(quick);
        Controller afterWall = before.next(slow).next(slow);
        for (int i = 0; i < 6; i++) {
            afterPause = afterPause.next(quick);
            afterWall = afterWall.next(quick);
        }
        assertThat(before.next(slow).limit()).isLessThan(before.limit());
        assertThat(afterPause.limit()).isGreaterThan(before.limit());
        assertThat(afterWall.limit()).isLessThan(before.limit());
    }

    /** A service of four processors that each call keeps busy for 10 ms. */
    @Test
    void atTheLowerBoundSlowCallsAreTheNewBaseTime() {
        Controller controller = Controller.of(4, 1000).next(second(200, 10, false));
        for (int i = 0; i < 100; i++) {
            controller = controller.next(second(100, 40, true));
        }
        assertThat(controller.limit()).isGreaterThanOrEqualTo(4);
        assertThat(controller.base()).isGreaterThan(19 * MILLI);
    }

    @Test
    void theBestClassHasRoomForItsChancesWhereTheLimitIsSmall() {
        assertThat(Controller.of(1, 1000).within(1, 16).placesOfBest()).isEqualTo(16);
        Controller nine = quiet().within(1, 9).within(9, 1000);
        assertThat(nine.limit()).isEqualTo(9);
        assertThat(nine.placesOfBest()).isEqualTo(18);
        Controller many = Controller.of(1, 400).within(1, 1000);
        assertThat(many.limit()).isEqualTo(400);
        assertThat(many.placesOfBest()).isEqualTo(520);
    }

    /** Steps wait until the calls from before have ended, so that a step is not judged by them. */
    @Test
    void stepsWaitForTheCallsFromBefore() {
        Controller controller = quiet();
        assertThat(controller.settling()).isZero();
        Controller below = controller.next(second(600, 70, true));
        assertThat(below.places()).isLessThan(below.limit());
        assertThat(below.settling()).isEqualTo((long) (70 * MILLI));
    }

    @Test
    void theFirstWindowIsShort() {
        assertThat(Controller.of(4, 1000).isOver(Controller.SHORTEST, 15)).isFalse();
        assertThat(Controller.of(4, 1000).isOver(Controller.SHORTEST, 16)).isTrue();
    }

    @Test
    void aWindowIsOverWhenItHasLastedAndEnoughCallsHaveEnded() {
        Controller controller = quiet();
        assertThat(controller.isOver(Controller.SHORTEST - 1, 1_000)).isFalse();
        assertThat(controller.isOver(Controller.SHORTEST, 49)).isFalse();
        assertThat(controller.isOver(Controller.SHORTEST, 50)).isTrue();
        assertThat(controller.isOver(2_000_000_000L, 16)).isTrue();
    }
}
