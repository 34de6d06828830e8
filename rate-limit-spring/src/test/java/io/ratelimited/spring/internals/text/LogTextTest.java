package io.ratelimited.spring.internals.text;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;

class LogTextTest {

    @Test
    void aFailureOfSeveralLinesKeepsItsStack() {
        IllegalStateException cause = new IllegalStateException("first\nsecond");
        Throwable shown = LogText.escaped(new RuntimeException("a\r\nb", cause));
        StringWriter text = new StringWriter();
        shown.printStackTrace(new PrintWriter(text, true));
        assertThat(text.toString().lines())
                .startsWith("java.lang.RuntimeException: a\\u000d\\u000ab")
                .contains("Caused by: java.lang.IllegalStateException: first\\u000asecond")
                .anyMatch(line -> line.contains("at " + LogTextTest.class.getName() + ".aFailureOfSeveralLines"));
        assertThat(shown.getCause().getStackTrace()).isEqualTo(cause.getStackTrace());
    }

    @Test
    void aFailureThatCausesItselfEnds() {
        Exception one = new Exception("one");
        Exception other = new Exception("other", one);
        one.initCause(other);
        assertThat(LogText.escaped(one)).hasToString("java.lang.Exception: one");
    }
}
