package com.example.overload;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.when;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.context.bean.override.mockito.MockitoBean;
import org.springframework.test.web.servlet.client.EntityExchangeResult;
import org.springframework.test.web.servlet.client.RestTestClient;

/** With a small upper bound, so that few reports fill it. */
@SpringBootTest(
        webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT,
        properties = {"rate-limit.limits.reports.min-concurrent=1", "rate-limit.limits.reports.max-concurrent=10"})
@Timeout(120)
class OverloadTest {

    @LocalServerPort
    int port;

    @MockitoBean
    Reports reports;

    /** Each report starts or is rejected before the next is asked for, and none completes before a call was rejected. */
    @Test
    void callsBeyondTheLimitGetA503ResponseAndTheOthersComplete() throws InterruptedException {
        BlockingQueue<Object> events = new LinkedBlockingQueue<>();
        CountDownLatch finish = new CountDownLatch(1);
        when(reports.create()).thenAnswer(call -> {
            events.add("started");
            finish.await();
            return "report";
        });
        int started = 0;
        EntityExchangeResult<?> rejected = null;
        while (rejected == null) {
            new Thread(() -> events.add(report())).start();
            Object event = events.take();
            if (event instanceof EntityExchangeResult<?> response) {
                rejected = response;
            } else {
                started++;
            }
        }
        finish.countDown();
        assertThat(rejected.getStatus().value()).isEqualTo(503);
        assertThat(rejected.getResponseHeaders().getFirst("Retry-After")).isNotNull();
        assertThat(started).isBetween(1, 10);
        for (int call = 1; call <= started; call++) {
            assertThat(((EntityExchangeResult<?>) events.take()).getStatus().value())
                    .isEqualTo(200);
        }
    }

    private EntityExchangeResult<String> report() {
        return RestTestClient.bindToServer()
                .baseUrl("http://localhost:" + port)
                .build()
                .get()
                .uri("/report")
                .header("X-Api-Key", "key-of-gold")
                .exchange()
                .expectBody(String.class)
                .returnResult();
    }
}
