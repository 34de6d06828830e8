package io.ratelimited.spring.redis;

import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.SharedSettings;
import io.ratelimited.spring.internals.limit.InstanceDifferences;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.context.ApplicationListener;
import org.springframework.context.event.ContextRefreshedEvent;

/** Compares the configurations of instances once all limits are known, and from then on. Without a limit on Redis it does nothing. */
final class InstanceComparison implements ApplicationListener<ContextRefreshedEvent> {

    private final ObjectProvider<RedisBackend> backend;
    private final ObjectProvider<InstanceDifferences> differences;
    private volatile boolean hasLimits;

    InstanceComparison(ObjectProvider<RedisBackend> backend, ObjectProvider<InstanceDifferences> differences) {
        this.backend = backend;
        this.differences = differences;
    }

    /** A limit on Redis has been made. */
    void hasLimits() {
        hasLimits = true;
    }

    @Override
    public void onApplicationEvent(ContextRefreshedEvent event) {
        if (hasLimits) {
            InstanceDifferences compared = differences.getObject();
            SharedSettings settings = backend.getObject().settings();
            settings.share(compared::own, compared::compare);
            settings.exchange();
        }
    }
}
