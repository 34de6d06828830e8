package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.Outcome;
import java.net.URI;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@ExtendWith(CapturedLog.Capture.class)
class LimitedClientsTest {

    @Test
    void startupLogsOneLineForEachClientWithItsPolicy(CapturedLog log) {
        LimitedClientsContext.runner(
                        new ManualTicker(),
                        "rate-limit.limits.partner.rate=20/s",
                        "rate-limit.clients.partner.hosts=api.partner.example,*.partner.test",
                        "rate-limit.clients.partner.limits=partner",
                        "rate-limit.clients.partner.max-wait=PT2S",
                        "rate-limit.clients.partner.key=header('X-Account')",
                        "rate-limit.clients.mail.hosts=mail.example",
                        "rate-limit.clients.mail.policy=reject",
                        "rate-limit.clients.mail.max-pause=PT10M")
                .run(context -> assertThat(log.toString().lines().filter(line -> line.contains("Client ")))
                        .satisfiesExactlyInAnyOrder(
                                line -> assertThat(line)
                                        .contains("INFO")
                                        .endsWith(
                                                "Client mail: hosts [mail.example], limits [], obey [retry-after,"
                                                        + " rate-limit], max-pause 10m, policy reject (rate-limit.clients.mail)"),
                                line -> assertThat(line)
                                        .contains("INFO")
                                        .endsWith("Client partner: hosts [api.partner.example, *.partner.test], limits"
                                                + " [partner], obey [retry-after, rate-limit], max-pause 1m, policy wait"
                                                + " up to 2s, key header('X-Account') (rate-limit.clients.partner)")));
    }

    /** The dry run of a client judges with its wait, and delays no call; a call in flight waits for no other one. */
    @ParameterizedTest
    @CsvSource({
        "rate=1/s, true, 3",
        "rate=1/s, false, 3",
        "max-concurrent=1, true, 1",
        "max-concurrent=1, false, 1",
    })
    void theDryRunOfAClientJudgesWithItsWait(String limit, boolean blocking, int admitted) {
        ManualTicker ticker = new ManualTicker();
        List<Outcome> outcomes = new ArrayList<>();
        LimitedClientsContext.runner(
                        ticker,
                        "rate-limit.limits.partner." + limit,
                        "rate-limit.limits.partner.algorithm="
                                + (limit.startsWith("rate") ? "token-bucket" : "concurrency"),
                        "rate-limit.clients.partner.hosts=partner.example",
                        "rate-limit.clients.partner.limits=partner",
                        "rate-limit.clients.partner.max-wait=PT2S",
                        "rate-limit.clients.partner.policy=shadow")
                .withBean(DecisionObserver.class, () -> decision -> outcomes.add(decision.outcome()))
                .run(context -> {
                    LimitedClient client = context.getBean(LimitedClients.class)
                            .all()
                            .iterator()
                            .next();
                    for (int call = 0; call < 5; call++) {
                        OutgoingRequest request =
                                new OutgoingRequest("GET", URI.create("https://partner.example/"), name -> null);
                        if (blocking) {
                            client.enter(request);
                        } else {
                            assertThat(client.enterAsync(request, null)).isCompleted();
                        }
                    }
                    assertThat(ticker.elapsed()).isZero();
                    assertThat(outcomes)
                            .hasSize(5)
                            .startsWith(Collections.nCopies(admitted, Outcome.ADMITTED)
                                    .toArray(Outcome[]::new))
                            .endsWith(Collections.nCopies(5 - admitted, Outcome.SHADOWED)
                                    .toArray(Outcome[]::new));
                });
    }
}
