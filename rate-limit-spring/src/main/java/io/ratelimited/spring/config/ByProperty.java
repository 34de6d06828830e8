package io.ratelimited.spring.config;

import io.ratelimited.spring.InvalidRateLimitException;
import org.springframework.context.annotation.Condition;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.core.convert.ConversionException;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotatedTypeMetadata;

/** Conditions by properties that are read before any bean is made. */
abstract class ByProperty implements Condition {

    private static final String ENABLED = "rate-limit.enabled";
    private static final String MODE = "rate-limit.aspect.mode";

    @Override
    public boolean matches(ConditionContext context, AnnotatedTypeMetadata metadata) {
        return matches(context.getEnvironment());
    }

    abstract boolean matches(Environment environment);

    /** The mode is woven, or else proxy: a value that is neither fails startup where the settings are read. */
    static boolean isWoven(Environment environment) {
        return environment.getProperty(MODE, "proxy").strip().equalsIgnoreCase("woven");
    }

    /** Checks that limits apply, or not, as they did when the bean definitions were made, which may be ahead of time. */
    static void requireEnabled(boolean registered, Environment environment) {
        boolean enabled = new Enabled().matches(environment);
        if (enabled != registered) {
            throw fixed(ENABLED, enabled, registered);
        }
    }

    /** As {@link #requireEnabled}, for the mode. */
    static void requireMode(boolean registeredWoven, Environment environment) {
        if (isWoven(environment) != registeredWoven) {
            throw fixed(MODE, registeredWoven ? "proxy" : "woven", registeredWoven ? "woven" : "proxy");
        }
    }

    private static InvalidRateLimitException fixed(String property, Object now, Object then) {
        return new InvalidRateLimitException(
                "Property " + property + " is " + now + ", but was " + then
                        + " when the application was processed ahead of time, which fixes it",
                "Set it to " + then + ", or set it to " + now + " where the application is processed. [RL-102]");
    }

    /** Limits apply. */
    static final class Enabled extends ByProperty {

        @Override
        boolean matches(Environment environment) {
            try {
                return environment.getProperty(ENABLED, Boolean.class, true);
            } catch (ConversionException ex) {
                throw InvalidRateLimitException.ofProperty(
                        ENABLED, "must be true or false", environment.getProperty(ENABLED));
            }
        }
    }

    /** No limit applies. */
    static final class Disabled extends ByProperty {

        @Override
        boolean matches(Environment environment) {
            return !new Enabled().matches(environment);
        }
    }

    /** Methods are limited by proxies. */
    static final class Proxied extends ByProperty {

        @Override
        boolean matches(Environment environment) {
            return !isWoven(environment);
        }
    }

    /** Methods are limited in classes that AspectJ has woven. */
    static final class Woven extends ByProperty {

        @Override
        boolean matches(Environment environment) {
            return isWoven(environment);
        }
    }
}
