package io.ratelimited.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.BDDMockito.given;

import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimited;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Configuration;
import org.springframework.test.context.bean.override.mockito.MockitoBean;
import org.springframework.test.context.junit.jupiter.SpringJUnitConfig;

/** A test that mocks beans with limits starts, also without the beans that only the mocked ones need, and warns of nothing. */
@ExtendWith(OutputCaptureExtension.class)
@SpringJUnitConfig(MockedServicesTest.App.class)
@ImportAutoConfiguration({RateLimitAutoConfiguration.class, AopAutoConfiguration.class})
final class MockedServicesTest {

    @MockitoBean
    private Orders orders;

    @MockitoBean
    private Prices prices;

    @Autowired
    private RateLimitOperations operations;

    @Test
    void mocksWarnOfNothing(CapturedOutput output) {
        given(prices.price()).willReturn(2);
        for (int i = 0; i < 5; i++) {
            orders.place("ann");
            assertThat(prices.price()).isEqualTo(2);
        }
        assertThat(operations.limits()).extracting(NamedLimit::name).contains("price");
        assertThat(output).doesNotContain("[RL-");
    }

    static class Orders {

        @RateLimited(name = "place", rate = "1/m", key = "@tenants.of(#user)")
        public void place(String user) {}

        public void all() {
            place("ann");
        }
    }

    static final class Prices {

        @RateLimited(name = "price", rate = "1/m")
        public int price() {
            return 1;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class App {}
}
