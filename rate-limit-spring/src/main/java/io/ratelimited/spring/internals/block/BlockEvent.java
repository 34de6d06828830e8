package io.ratelimited.spring.internals.block;

import io.ratelimited.core.BlockedKey;
import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Enabled;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.Timespan;

/** An event of Java's flight recorder: a block of a key that has begun. Off unless a recording enables it. */
@Name("io.ratelimited.Block")
@Label("Rate Limit Block")
@Description("A key that a limit has blocked")
@Category("Rate Limits")
@Enabled(false)
final class BlockEvent extends Event {

    @Label("Limit")
    String limit = "";

    @Label("Lasting")
    @Timespan
    long lasting;

    @Label("Level")
    @Description("Number of consecutive blocks of the key without a violation-free time in between")
    int level;

    @Label("Shadow")
    @Description("Whether the limit is in dry run and rejects no call")
    boolean shadow;

    static void record(String limit, BlockedKey block, boolean shadow) {
        BlockEvent event = new BlockEvent();
        if (event.isEnabled()) {
            event.limit = limit;
            event.lasting = block.left().toNanos();
            event.level = block.level();
            event.shadow = shadow;
            event.commit();
        }
    }
}
