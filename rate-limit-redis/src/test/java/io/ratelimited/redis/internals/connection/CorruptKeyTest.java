package io.ratelimited.redis.internals.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.RedisCommandExecutionException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a server says when a script cannot read a key, in the words of its versions. */
class CorruptKeyTest {

    @ParameterizedTest
    @ValueSource(
            strings = {
                "WRONGTYPE Operation against a key holding the wrong kind of value script: b2ca, on @user_script:1.",
                "ERR value is not an integer or out of range script: b2ca, on @user_script:1.",
                "ERR Error running script (call to f_b2ca): @user_script:1: @user_script: 1: ERR value is not an integer or out of range",
                "ERR invalid expire time in 'pexpire' command script: b2ca, on @user_script:1.",
                "ERR value is not a valid float script: b2ca, on @user_script:1.",
                "ERR user_script:1: attempt to compare nil with number script: b2ca, on @user_script:1."
            })
    void aScriptThatFailsAtAValueHasAKeyThatCannotBeRead(String error) {
        assertThat(Replies.isCorruptKey(new RedisCommandExecutionException(error)))
                .isTrue();
    }

    @Test
    void aServerWithoutMemoryDoesNot() {
        assertThat(Replies.isCorruptKey(new RedisCommandExecutionException(
                        "OOM command not allowed when used memory > 'maxmemory'. script: b2ca, on @user_script:1.")))
                .isFalse();
    }
}
