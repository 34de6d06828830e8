package io.ratelimited.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimited.spring.internals.limit.LimitProperty;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Members of a request to change a limit. Parameters that a query has several times come from Spring Boot as lists. */
class ChangeRequestTest {

    private static Map<LimitProperty, Object> change(String member, Object value) {
        return new ChangeRequest("busy", Map.of(member, value)).properties();
    }

    @Test
    void theyAreTheElementsOfAList() {
        assertThat(change("priorities", List.of("critical", "batch")))
                .isEqualTo(change("priorities", "critical,batch"))
                .containsEntry(LimitProperty.PRIORITIES, List.of("critical", "batch"));
    }

    @Test
    void theyAreTheRatesToTry() {
        assertThat(new ChangeRequest("busy", Map.of("candidates", List.of("50/m", "100/m"), "for", "1h")).candidates())
                .isEqualTo("50/m,100/m");
    }

    @Test
    void theyAreAMistakeWhereOneValueIsMeant() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> change("burst", List.of("1", "2")))
                .withMessageContaining("burst of rate limit 'busy' cannot be \"1,2\"; use a whole number");
    }

    @Test
    void aRevertHasNoOtherMembers() {
        assertThat(new ChangeRequest("search", Map.of("revert", "true")).reverts())
                .isTrue();
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new ChangeRequest("search", Map.of("revert", "true", "rate", "9/s")).reverts());
    }
}
