package io.ratelimited.redis.simulation;

import io.ratelimited.redis.simulation.Simulations.Plans;
import java.io.IOException;
import java.nio.file.Path;

/** A change of the shipped code, which the simulation must notice. It names methods and functions, and quotes no line. */
sealed interface Mutant permits MethodMutant, ScriptMutant {

    /** What is wrong then. */
    String breaks();

    /** The schedules that show it. */
    Plans plans();

    /**
     * Writes the changed classes or scripts.
     *
     * @throws AssertionError when what the mutant changes does not exist
     */
    void writeTo(Path classes) throws IOException;
}
