package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.CapturedLog;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

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
}
