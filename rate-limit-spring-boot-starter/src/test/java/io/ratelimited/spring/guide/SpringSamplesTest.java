package io.ratelimited.spring.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimits;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.samples.contacts.ContactsApplication;

/** An application in a package of the name org.springframework is one as any other. */
@ExtendWith(OutputCaptureExtension.class)
final class SpringSamplesTest {

    private final ApplicationContextRunner runner =
            Contexts.runner(new ManualTicker()).withUserConfiguration(ContactsApplication.class);

    @Test
    void itsLimitsAreThereBeforeTheFirstCall(CapturedOutput output) {
        runner.withPropertyValues("rate-limit.limits.show.rate=12/s").run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output)
                    .containsOnlyOnce("Rate limit show: token-bucket, rate 12/s, burst 20, policy reject, key #name")
                    .containsOnlyOnce("Rate limit find: ");
            ContactsApplication.Desk desk = context.getBean(ContactsApplication.Desk.class);
            assertThat(desk.show("Ada")).isEmpty();
            assertThat(context.getBean(RateLimits.class).peek("show", "Ada").remaining())
                    .isEqualTo(19);
        });
    }

    @Test
    void itsRepositoryThatAnotherBeanIsGivenIsLimitedOncePerCall(CapturedOutput output) {
        runner.run(context -> {
            ContactsApplication.Contacts contacts = context.getBean(ContactsApplication.Contacts.class);
            RateLimits limits = context.getBean(RateLimits.class);
            ContactsApplication.Contact ada = contacts.save(new ContactsApplication.Contact("1", "Ada"));
            assertThat(context.getBean(ContactsApplication.Desk.class).show("Ada"))
                    .containsExactly(ada);
            contacts.delete(ada);
            assertThat(limits.peek("save", null).remaining()).isEqualTo(3);
            assertThat(limits.peek("find", null).remaining()).isEqualTo(4);
            assertThat(limits.peek("delete", null).remaining()).isEqualTo(2);
            contacts.delete(ada);
            contacts.delete(ada);
            assertThatThrownBy(() -> contacts.delete(ada)).isInstanceOf(RateLimitExceededException.class);
            assertThat(output).doesNotContain("Bean '");
        });
    }

    @Test
    void itsMistakesStopTheStart() {
        runner.withPropertyValues("rate-limit.limits.show.key=#nmae")
                .run(context -> assertThat(context.getStartupFailure()).hasMessageContaining("#nmae"));
    }

    @Test
    void itsCallsPastTheProxyAreWarnedOf(CapturedOutput output) {
        runner.run(context -> assertThat(output).containsOnlyOnce("$Desk.showAda calls show of the same object"));
    }
}
