package io.ratelimited.redis.internals.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.RedisCommandExecutionException;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Which errors say that a script has written nothing, in the words of the versions of Redis. */
class UnchangedTest {

    private static boolean isUnchanged(String error) {
        return Replies.hasChangedNothing(new RedisCommandExecutionException(error));
    }

    /** The state of the server: it is asked before the first write, and cannot change while a script runs. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "READONLY You can't write against a read only replica. script: b2ca, on @user_script:1.",
                "ERR READONLY You can't write against a read only replica. script: b2ca, on @user_script:1.",
                "ERR Error running script (call to f_b2ca): @user_script:1: @user_script: 1: -READONLY You can't write",
                "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
                "NOREPLICAS Not enough good replicas to write. script: b2ca, on @user_script:1.",
                "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
                "ERR Error running script (call to f_b2ca): @user_script:1: @user_script: 1: -MISCONF Errors writing",
                "OOM command not allowed when used memory > 'maxmemory'. script: b2ca, on @user_script:1.",
                "ERR Error running script (call to f_b2ca): @user_script:1: @user_script: 1: -OOM command not allowed",
                "ERR Script attempted to execute a write command while the cluster is down and readonly script: b2ca"
            })
    void aServerThatTakesNoWritesHasWrittenNothing(String error) {
        assertThat(isUnchanged(error)).isTrue();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "LOADING Redis is loading the dataset in memory",
                "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
                "CLUSTERDOWN Hash slot not served",
                "MOVED 15953 10.0.0.7:6379",
                "ASK 15953 10.0.0.7:6379",
                "TRYAGAIN Multiple keys request during rehashing of slot",
                "CROSSSLOT Keys in request don't hash to the same slot",
                "NOTIME ERR This Redis command is not allowed from script"
            })
    void aServerThatDoesNotBeginAScriptHasWrittenNothing(String error) {
        assertThat(isUnchanged(error)).isTrue();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "NOPERM User limits has no permissions to run the 'pexpire' command script: b2ca, on @user_script:9.",
                "ERR Error running script (call to f_b2ca): @user_script:9: The user executing the script can't run this",
                "ERR Error running script (call to f_b2ca): @user_script:9: Script killed by user with SCRIPT KILL...",
                "WRONGTYPE Operation against a key holding the wrong kind of value script: b2ca, on @user_script:1.",
                "ERR upstream failure",
                "ERR LOADING",
                "OOMPH",
                "ERR a key named READONLY "
            })
    void anyOtherErrorMayHaveComeAfterAWrite(String error) {
        assertThat(isUnchanged(error)).isFalse();
    }

    @Test
    void aCommandThatWasNotSentHasWrittenNothingAndOneWithoutAReplyMayHave() {
        assertThat(Replies.hasChangedNothing(new CompletionException(Replies.notSent("not connected"))))
                .isTrue();
        assertThat(Replies.hasChangedNothing(new TimeoutException("Redis did not respond in time")))
                .isFalse();
    }
}
