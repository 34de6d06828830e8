package io.ratelimited.spring;

import org.springframework.boot.autoconfigure.AutoConfigurationImportFilter;
import org.springframework.boot.autoconfigure.AutoConfigurationMetadata;

/**
 * Leaves Resilience4j out of the applications of the tests, which take every auto-configuration of the class path: its aspects have AspectJ
 * match each method of each bean, which was half the time of a start. {@link AmongOtherAspectsTest} names the ones that it needs.
 */
final class OtherLibraries implements AutoConfigurationImportFilter {

    @Override
    public boolean[] match(String[] classes, AutoConfigurationMetadata metadata) {
        boolean[] kept = new boolean[classes.length];
        for (int i = 0; i < classes.length; i++) {
            kept[i] = classes[i] == null || !classes[i].startsWith("io.github.resilience4j.");
        }
        return kept;
    }
}
