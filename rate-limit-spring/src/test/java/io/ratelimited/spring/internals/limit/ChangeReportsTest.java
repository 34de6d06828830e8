package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimitChangedEvent;
import io.ratelimited.spring.RateLimitChangedEvent.Scope;
import io.ratelimited.spring.RateLimitResetEvent;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.internals.text.KeyMask;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.event.EventListener;
import org.springframework.security.authentication.AnonymousAuthenticationToken;
import org.springframework.security.authentication.TestingAuthenticationToken;
import org.springframework.security.core.authority.AuthorityUtils;
import org.springframework.security.core.context.SecurityContextHolder;

/** What is said of a change that is in force, and by whom it was made. */
@ExtendWith(CapturedLog.Capture.class)
class ChangeReportsTest {

    private final Changes changes = new Changes();

    @AfterEach
    void forgetCaller() {
        SecurityContextHolder.clearContext();
    }

    @Test
    void aResetIsLoggedWithItsAuthorAndItsKeyMasked(CapturedLog output) {
        run(context -> {
            SecurityContextHolder.getContext()
                    .setAuthentication(new TestingAuthenticationToken("ann", "", AuthorityUtils.NO_AUTHORITIES));

            limits(context).reset("search", "bob");

            assertThat(output)
                    .contains("Rate limit 'search', key " + KeyMask.mask("bob") + ": reset (scope instance, by ann)");
            assertThat(changes.seen).isEmpty();
            assertThat(changes.resets)
                    .containsExactly(new RateLimitResetEvent("search", KeyMask.mask("bob"), Scope.INSTANCE, "ann"));
        });
    }

    /** A backend that does not respond may have made it: it is known who ended a block, if one has ended. */
    @Test
    void aResetThatFailsIsReportedToo(CapturedLog output) {
        ContextRunner.limited(new ManualTicker())
                .withBean(LimiterFactory.class, Unresponsive::new)
                .withBean(Changes.class, () -> changes)
                .withPropertyValues(
                        "rate-limit.limits.search.rate=100/s", "rate-limit.limits.search.backend=unresponsive")
                .run(context -> assertThatIllegalStateException()
                        .isThrownBy(() -> limits(context).reset("search", "bob"))
                        .withMessage("no reply"));

        assertThat(output)
                .contains("key " + KeyMask.mask("bob") + ": a reset failed, and may have been made (scope instance)");
        assertThat(changes.resets)
                .containsExactly(new RateLimitResetEvent("search", KeyMask.mask("bob"), Scope.INSTANCE, null));
    }

    @Test
    void anUpdateIsReportedWithWhatWasAndWhatIs(CapturedLog output) {
        run(context -> {
            limits(context).change("search", LimitChange.rate("200/s").burst(400));

            assertThat(changes.seen)
                    .containsExactly(new RateLimitChangedEvent(
                            "search",
                            null,
                            Map.of("rate", "100/s", "burst", 100L),
                            Map.of("rate", "200/s", "burst", 400L),
                            Scope.INSTANCE,
                            null));
        });
        assertThat(output)
                .containsPattern(
                        "INFO .*Rate limit 'search': rate 100/s -> 200/s, burst 100 -> 400 \\(scope instance\\)\n");
    }

    @Test
    void thePolicyAndTheTiersAreReportedToo() {
        run(context -> {
            limits(context)
                    .change(
                            "search",
                            LimitChange.of("policy", "wait")
                                    .with("max-wait", "250ms")
                                    .with("tiers.gold.rate", "2000/s"));

            RateLimitChangedEvent change = changes.only();
            assertThat(change.before())
                    .isEqualTo(Map.of("policy", "reject", "tiers.gold.rate", "1000/s", "tiers.gold.burst", 1000L));
            assertThat(change.after())
                    .isEqualTo(Map.of(
                            "policy",
                            "wait",
                            "maxWait",
                            "250ms",
                            "tiers.gold.rate",
                            "2000/s",
                            "tiers.gold.burst",
                            2000L));
        });
    }

    @Test
    void nothingIsReportedOfWhatChangesNothing() {
        run(context -> {
            limits(context).change("search", LimitChange.rate("100/s"));
            assertThatThrownBy(() -> limits(context)
                            .change("search", LimitChange.rate("5/s").with("slots", "3")))
                    .isInstanceOf(InvalidRateLimitException.class);

            assertThat(changes.seen).isEmpty();
        });
    }

    @Test
    void whomSpringSecurityKnowsIsThePrincipal(CapturedLog output) {
        run(context -> {
            SecurityContextHolder.getContext()
                    .setAuthentication(new TestingAuthenticationToken("ann\nRate limit 'login'", "secret", "OPERATOR"));
            limits(context).change("search", LimitChange.of("burst", "50"));
            SecurityContextHolder.getContext()
                    .setAuthentication(new AnonymousAuthenticationToken(
                            "key", "anonymousUser", AuthorityUtils.createAuthorityList("ANONYMOUS")));
            limits(context).change("search", LimitChange.of("burst", "60"));

            assertThat(changes.seen)
                    .extracting(RateLimitChangedEvent::principal)
                    .containsExactly("ann\nRate limit 'login'", null);
        });
        assertThat(output).contains("burst 100 -> 50 (scope instance, by ann\\u000aRate limit 'login')");
    }

    @Test
    void theAuthorThatIsStatedIsThePrincipalOfItsChangesAlone() {
        run(context -> {
            changedBy("ann", context).change("search", LimitChange.of("burst", "50"));
            limits(context).change("search", LimitChange.of("burst", "60"));

            assertThat(changes.seen)
                    .extracting(RateLimitChangedEvent::principal)
                    .containsExactly("ann", null);
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aListenerThatThrowsIsLoggedAndTheChangeStands(boolean error, CapturedLog output) {
        run(context -> {
            changes.action = change -> {
                if (error) {
                    throw new NoClassDefFoundError("broken");
                }
                throw new IllegalStateException("broken");
            };

            assertThat(limits(context)
                            .change("search", LimitChange.of("burst", "50"))
                            .burst())
                    .isEqualTo(50);

            assertThat(limits(context).peek("search", "ann").remaining()).isEqualTo(50);
            assertThat(changes.seen).hasSize(1);
        });
        assertThat(output).contains("Rate limit 'search': a listener of the change or reset failed", "broken");
    }

    @Test
    void aListenerMayWaitForAChangeByAnotherThread() {
        run(context -> {
            changes.action = change -> {
                if (change.limit().equals("search")) {
                    CompletableFuture.runAsync(() -> limits(context).change("login", LimitChange.of("burst", "9")))
                            .orTimeout(20, TimeUnit.SECONDS)
                            .join();
                }
            };

            limits(context).change("search", LimitChange.of("burst", "50"));

            assertThat(limits(context).limit("login").limit().burst()).isEqualTo(9);
        });
    }

    @Test
    void aKeyIsReportedByItsMask(CapturedLog output) {
        run(context -> {
            limits(context).override("search", "sk-secret", LimitChange.of("tier", "gold"), null);

            assertThat(changes.only())
                    .isEqualTo(new RateLimitChangedEvent(
                            "search",
                            KeyMask.mask("sk-secret"),
                            Map.of(),
                            Map.of("tier", "gold"),
                            Scope.INSTANCE,
                            null));
        });
        assertThat(output)
                .contains("Rate limit 'search', key " + KeyMask.mask("sk-secret")
                        + ": tier unset -> gold (scope instance)")
                .doesNotContain("sk-secret");
    }

    @Test
    void thePageShowsTheLineOfTheLog(CapturedLog output) throws Exception {
        run(context -> changedBy("ann", context)
                .change("search", LimitChange.rate("200/s").burst(400)));
        String page = Files.readString(Path.of("..", "docs", "changes.md"));
        String line = page.lines()
                .filter(text -> text.startsWith("Rate limit 'search': "))
                .findFirst()
                .orElseThrow();
        assertThat(output).contains(line);
    }

    private void run(Consumer<ConfigurableApplicationContext> test) {
        ContextRunner.limited(new ManualTicker())
                .withBean(Changes.class, () -> changes)
                .withPropertyValues(
                        "rate-limit.limits.search.rate=100/s",
                        "rate-limit.limits.search.tier='gold'",
                        "rate-limit.limits.search.tiers.gold.rate=1000/s",
                        "rate-limit.limits.login.rate=5/m")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    test.accept(context);
                });
    }

    private static TestLimits changedBy(String author, ApplicationContext context) {
        return limits(context).changedBy(author);
    }

    private static TestLimits limits(ApplicationContext context) {
        return TestLimits.of(context);
    }

    private static final class Unresponsive implements LimiterFactory {

        @Override
        public String backend() {
            return "unresponsive";
        }

        @Override
        public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
            RateLimiter memory = new InMemoryRateLimiter(limit, Ticker.system(), 100);
            return (RateLimiter) Proxy.newProxyInstance(
                    getClass().getClassLoader(), new Class<?>[] {RateLimiter.class}, (proxy, method, args) -> {
                        if (method.getName().equals("reset")) {
                            throw new IllegalStateException("no reply");
                        }
                        return method.invoke(memory, args);
                    });
        }
    }

    static class Changes {

        private final List<RateLimitChangedEvent> seen = new ArrayList<>();
        private final List<RateLimitResetEvent> resets = new ArrayList<>();
        private Consumer<RateLimitChangedEvent> action = change -> {};

        @EventListener
        void onReset(RateLimitResetEvent reset) {
            resets.add(reset);
        }

        @EventListener
        void onChange(RateLimitChangedEvent change) {
            seen.add(change);
            action.accept(change);
        }

        private RateLimitChangedEvent only() {
            assertThat(seen).hasSize(1);
            return seen.get(0);
        }
    }
}
