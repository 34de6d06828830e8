package io.ratelimited.spring.guide;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;

/** The page on logins has a charge for each way in which a method reports an incorrect password. */
class LoginChargesTest {

    private static final String BROKEN = "of a user store that fails";

    static class Logins {

        @RateLimited(name = "thrown", rate = "9/h")
        void thrown(String password) {
            if (!returned(password)) {
                throw new IllegalArgumentException("incorrect password");
            }
        }

        @RateLimited(name = "returned", rate = "9/h")
        boolean returned(String password) {
            if (password.equals(BROKEN)) {
                throw new IllegalStateException("no user store");
            }
            return password.equals("right");
        }

        @RateLimited(name = "found", rate = "9/h")
        @Nullable
        String found(String password) {
            return returned(password) ? "ann" : null;
        }

        @RateLimited(name = "optional", rate = "9/h")
        Optional<String> optional(String password) {
            return Optional.ofNullable(found(password));
        }

        @RateLimited(name = "answered", rate = "9/h")
        ResponseEntity<String> answered(String password) {
            return returned(password)
                    ? ResponseEntity.noContent().build()
                    : ResponseEntity.status(HttpStatus.UNAUTHORIZED).build();
        }
    }

    private interface Login {
        void with(Logins logins, String password);
    }

    private record Way(String row, String limit, Login login) {}

    static List<Way> ways() {
        return List.of(
                new Way("throws an exception", "thrown", Logins::thrown),
                new Way("returns a `boolean`", "returned", Logins::returned),
                new Way("returns the user or `null`", "found", Logins::found),
                new Way("returns an `Optional`", "optional", Logins::optional),
                new Way("returns a `ResponseEntity`", "answered", Logins::answered));
    }

    @ParameterizedTest
    @MethodSource("ways")
    void aCorrectPasswordIsFreeAndAnythingElseCostsAPermit(Way way) throws Exception {
        String page = DocPage.section("stop-guessing-passwords.md", "Without Spring Security")
                .text();
        List<String> charges = Pattern.compile("(?m)^\\| " + Pattern.quote(way.row) + "[^|]*\\| `([^`]+)`")
                .matcher(page)
                .results()
                .map(row -> row.group(1))
                .toList();
        assertThat(charges).hasSize(1);
        Contexts.runner(new ManualTicker())
                .withBean(Logins.class)
                .withPropertyValues("rate-limit.limits." + way.limit + ".charge=" + charges.get(0))
                .run(context -> {
                    Logins logins = context.getBean(Logins.class);
                    RateLimits limits = context.getBean(RateLimits.class);
                    way.login.with(logins, "right");
                    assertThat(limits.peek(way.limit, null).remaining()).isEqualTo(9);
                    attempt(way, logins, "wrong");
                    assertThat(limits.peek(way.limit, null).remaining()).isEqualTo(8);
                    attempt(way, logins, BROKEN);
                    assertThat(limits.peek(way.limit, null).remaining()).isEqualTo(7);
                });
    }

    private static void attempt(Way way, Logins logins, String password) {
        try {
            way.login.with(logins, password);
        } catch (IllegalArgumentException | IllegalStateException ex) {
            assertThat(ex).hasMessageMatching("incorrect password|no user store");
        }
    }
}
