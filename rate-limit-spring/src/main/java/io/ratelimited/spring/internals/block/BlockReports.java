package io.ratelimited.spring.internals.block;

import io.ratelimited.core.BlockedKey;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Policy;
import io.ratelimited.core.Ticker;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.RateLimitBlockedEvent;
import io.ratelimited.spring.internals.text.KeyMask;
import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.text.OncePerMinute;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.util.ClassUtils;

/** Reports blocks that begin: by a {@link RateLimitBlockedEvent}, and to Java's flight recorder. Thread-safe. */
public final class BlockReports {

    private static final LogText.Lines LOG = LogText.lines(BlockReports.class);

    /** A runtime image may leave the module jdk.jfr out. */
    private static final boolean FLIGHT_RECORDER = ClassUtils.isPresent("jdk.jfr.Event", null);

    private final ApplicationEventPublisher events;
    /** By the names of the limits. */
    private final OncePerMinute<String> failures;

    public BlockReports(ApplicationEventPublisher events, Ticker ticker) {
        this.events = events;
        this.failures = new OncePerMinute<>(ticker);
    }

    /** Reports a block. A listener that throws is logged: the call is refused in any case. */
    public void begin(NamedLimit limit, BlockedKey block) {
        boolean shadow = limit.policy() == Policy.SHADOW;
        if (FLIGHT_RECORDER) {
            BlockEvent.record(limit.name(), block, shadow);
        }
        String mask = KeyMask.mask(CanonicalKey.text(block.key()));
        try {
            events.publishEvent(new RateLimitBlockedEvent(limit.name(), mask, block.left(), block.level(), shadow));
        } catch (RuntimeException | Error ex) {
            if (failures.isDue(limit.name())) {
                LOG.warn(
                        "Rate limit '" + limit.name() + "' has blocked the key " + mask
                                + ", but a listener failed. Further failures are logged once per minute.",
                        ex);
            }
        }
    }
}
