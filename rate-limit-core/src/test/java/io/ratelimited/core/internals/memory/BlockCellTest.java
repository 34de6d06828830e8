package io.ratelimited.core.internals.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Threads;
import io.ratelimited.core.internals.memory.block.UndecidedCalls;
import java.time.Duration;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;

/** The block within the state of its key (L1, L2). */
class BlockCellTest {

    private static final long SECOND = 1_000_000_000L;
    private static final Limit LIMIT = Limit.of("cell", Algorithm.TOKEN_BUCKET)
            .rate("5/s")
            .block(Duration.ofSeconds(10))
            .blockMax(Duration.ofSeconds(20))
            .build();

    private final CellParameters parameters = CellFactory.parameters(LIMIT, 0, 0);
    private final BlockCell cell = (BlockCell) parameters.initial(0);

    private void violate() {
        assertThat(cell.take(5, 0)).isZero();
        assertThat(cell.reject(1, 0, 0, 0, at -> false)).isEqualTo(BlockCell.Step.BEGUN);
    }

    /** The budget is full again long before the block ends: whoever looked before the violation must not drop it. */
    @Test
    void aCellIsNotDroppedBeforeItsBlockIsForgiven() {
        violate();
        assertThat(cell.retireIfInitial(5 * SECOND)).isFalse();
        assertThat(cell.keepsBlock(30 * SECOND - 1)).isTrue();
        assertThat(cell.retireIfInitial(30 * SECOND - 1)).isFalse();
        assertThat(cell.keepsBlock(30 * SECOND)).isFalse();
        assertThat(cell.retireIfInitial(30 * SECOND)).isTrue();
        assertThat(cell.reject(1, 30 * SECOND, 0, 30 * SECOND, at -> false)).isEqualTo(BlockCell.Step.MOVED);
    }

    @Test
    void aSuccessorAndACopyHaveTheBlock() {
        violate();
        assertThat(((BlockCell) cell.copy()).left(0)).isEqualTo(10 * SECOND);
        assertThat(((BlockCell) cell.retire()).left(4 * SECOND)).isEqualTo(6 * SECOND);
        assertThat(cell.left(0)).isZero();
    }

    @Test
    void anotherPeriodEndsTheBlockAndAnotherRateKeepsIt() {
        Limit window = Limit.of("cell", Algorithm.FIXED_WINDOW)
                .rate("5/m")
                .block(Duration.ofSeconds(10))
                .build();
        CellParameters first = CellFactory.parameters(window, 0, 0);
        BlockCell blocked = (BlockCell) first.initial(0);
        assertThat(blocked.take(5, 0)).isZero();
        assertThat(blocked.reject(1, 0, 0, 0, at -> false)).isEqualTo(BlockCell.Step.BEGUN);
        for (String rate : new String[] {"7/m", "7/h"}) {
            CellParameters next =
                    CellFactory.parameters(window.toBuilder().rate(rate).build(), 0, 0);
            BlockCell follower = (BlockCell) next.follow(blocked.copy(), 0);
            assertThat(follower.left(0)).as(rate).isEqualTo(rate.equals("7/m") ? 10 * SECOND : 0);
        }
    }

    /** Another thread gives back between the look at the budget and that at the calls. */
    @Test
    void permitsThatComeBackWhileARejectionIsJudgedBeginNoBlock() throws Exception {
        UndecidedCalls calls = new UndecidedCalls();
        Cell.Grant call = new Cell.Grant(5);
        assertThat(cell.reserve(5, 0, 0, call)).isZero();
        calls.add("key", call, 0);
        FutureTask<Boolean> violated = new FutureTask<>(() -> calls.decided("key", call, true));
        Thread other = new Thread(violated);
        BlockCell.Step judged = calls.judge(
                "key",
                deferred -> cell.reject(1, 0, 0, 0, at -> {
                    assertThat(cell.giveBack(call, 5, 0)).isTrue();
                    other.start();
                    Threads.until(() -> violated.isDone() || other.getState() == Thread.State.BLOCKED);
                    return deferred.test(at);
                }));
        assertThat(judged).isEqualTo(BlockCell.Step.NONE);
        assertThat(Threads.get(violated)).isFalse();
    }
}
