package io.ratelimited.benchmarks;

import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.options.CommandLineOptions;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;

/**
 * JMH with the options it is given, but each benchmark small, for a moment and in this process: shows that all of them
 * run, and measures nothing.
 */
public final class Quick {

    private Quick() {}

    /** Takes the options of JMH. */
    public static void main(String[] args) throws Exception {
        new Runner(new OptionsBuilder()
                        .parent(new CommandLineOptions(args))
                        .forks(0)
                        .warmupIterations(0)
                        .measurementIterations(1)
                        .measurementTime(TimeValue.milliseconds(20))
                        .param("algorithm", "TOKEN_BUCKET")
                        .param("keys", "1")
                        .param("limits", "1")
                        .param("outcome", "admitted")
                        .shouldFailOnError(true)
                        .build())
                .run();
    }
}
