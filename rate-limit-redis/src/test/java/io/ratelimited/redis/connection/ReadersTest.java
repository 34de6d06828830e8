package io.ratelimited.redis.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import org.junit.jupiter.api.Test;

/** Which threads read replies. */
class ReadersTest {

    private final Readers readers = new Readers(new Threads(new ManualTicker(), Runnable::run, task -> {}));

    /** A caller may send a command whose reply is there before it is asked for. */
    @Test
    void aReplyWithinAReplyDoesNotEndTheOuterOne() {
        assertThat(readers.mayRunCallers()).isFalse();
        readers.begin();
        readers.begin();
        readers.end();
        assertThat(readers.mayRunCallers()).isTrue();
        assertThat(readers.catchWaitForItself()).isTrue();
        readers.end();
        assertThat(readers.catchWaitForItself()).isFalse();
    }

    @Test
    void noCallerRunsOnThreadsThatReadOnceOneHasWaitedThereForItself() {
        readers.begin();
        readers.catchWaitForItself();
        assertThat(readers.mayRunCallers()).isFalse();
        readers.end();
    }
}
