package io.ratelimited.spring.internals.expression;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.ratelimited.spring.internals.request.RequestFacts;
import java.security.Principal;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.beans.factory.support.DefaultListableBeanFactory;

/** A failure of what a caller has written is the caller's, and one of the server is not. */
class InvalidCallTest {

    /** Of a server whose sessions and users are not available. */
    private static final class Facts implements RequestFacts {

        @Override
        public String clientIp() {
            return "192.0.2.1";
        }

        @Override
        public Principal principal() {
            throw new IllegalStateException("no users");
        }

        @Override
        public @Nullable String header(String name) {
            return null;
        }

        @Override
        public String session() {
            throw new IllegalStateException("no sessions");
        }
    }

    /** A bean, as expressions see it. */
    public static class Owners {

        public String of(@Nullable String key) {
            throw new IllegalStateException("no owners of " + key);
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "header('X-Tenant').substring(0, 3)             | true",
                "{clientIp, header('X-Tenant').substring(0, 3)} | true",
                "session                                        | false",
                "{header('X-Tenant'), session}                  | false",
                "{header('X-Tenant'), principal}                | false",
                "@owners.of(header('X-Tenant'))                 | false"
            })
    void onlyTheTextOfACallerIsAMistakeOfTheCaller(String text, boolean ofCaller) {
        DefaultListableBeanFactory beans = new DefaultListableBeanFactory();
        beans.registerSingleton("owners", new Owners());
        CallExpression key = CallExpression.ofRequest("key", "tenants", text, beans);
        Throwable failure = catchThrowable(() -> key.value(null, new Object[0], new Facts()));
        assertThat(failure).isInstanceOf(IllegalStateException.class);
        assertThat(failure instanceof InvalidCallException).isEqualTo(ofCaller);
    }
}
