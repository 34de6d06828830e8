package org.springframework.cloud.context.environment;

import java.util.Set;
import org.springframework.context.ApplicationEvent;

/** Stands for the event of Spring Cloud, which is known by its name. */
public final class EnvironmentChangeEvent extends ApplicationEvent {

    private static final long serialVersionUID = 1L;

    private final transient Set<String> keys;

    public EnvironmentChangeEvent(Object source, Set<String> keys) {
        super(source);
        this.keys = keys;
    }

    public Set<String> getKeys() {
        return keys;
    }
}
