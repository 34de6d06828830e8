package io.ratelimited.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.BDDMockito.given;
import static org.mockito.Mockito.times;
import static org.mockito.Mockito.verify;

import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimits;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.samples.contacts.ContactsApplication;
import org.springframework.samples.contacts.ContactsApplication.Contact;
import org.springframework.samples.contacts.ContactsApplication.Contacts;
import org.springframework.samples.contacts.ContactsApplication.Desk;
import org.springframework.test.context.bean.override.convention.TestBean;
import org.springframework.test.context.bean.override.mockito.MockitoBean;
import org.springframework.test.context.bean.override.mockito.MockitoSpyBean;
import org.springframework.test.context.junit.jupiter.SpringJUnitConfig;

/** In the tests of an application its mocks have no limit, and its spies have theirs. */
@SpringJUnitConfig(ContactsApplication.class)
@ImportAutoConfiguration({RateLimitAutoConfiguration.class, AopAutoConfiguration.class})
final class MockedBeansTest {

    @TestBean
    @SuppressWarnings("UnusedVariable")
    private Ticker ticker;

    @MockitoBean
    private Contacts contacts;

    @MockitoSpyBean
    private Desk desk;

    @Autowired
    private RateLimits limits;

    @Autowired
    private RateLimitOperations operations;

    static Ticker ticker() {
        return new ManualTicker();
    }

    @Test
    void mockOfLimitedRepositoryHasNoLimit() {
        given(contacts.save(any())).willAnswer(call -> call.getArgument(0));
        for (int i = 0; i < 20; i++) {
            contacts.save(new Contact("1", "Ada"));
        }
        verify(contacts, times(20)).save(any());
    }

    @Test
    void limitsOfMockHaveTheNamesOfTheMockedType() {
        assertThat(operations.limits())
                .extracting(NamedLimit::name)
                .containsExactly("Contacts.countByName", "delete", "find", "save", "show");
    }

    @Test
    void callOfSpyCountsOnce() {
        given(contacts.findByName("Grace")).willReturn(List.of(new Contact("2", "Grace")));
        assertThat(desk.show("Grace")).hasSize(1);
        verify(desk).show("Grace");
        assertThat(limits.peek("show", "Grace").remaining()).isEqualTo(19);
    }
}
