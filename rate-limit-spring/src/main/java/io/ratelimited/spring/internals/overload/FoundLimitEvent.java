package io.ratelimited.spring.internals.overload;

import io.ratelimited.core.overload.FoundLimitChange;
import io.ratelimited.spring.internals.text.PropertyText;
import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Enabled;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;

/**
 * An event of Java's flight recorder: a change of the limit that {@code ADAPTIVE} has found. Off unless a recording enables
 * it.
 */
@Name("io.ratelimited.FoundLimit")
@Label("Found Limit")
@Description("A change of the adaptive limit, and its reason")
@Category("Rate Limits")
@Enabled(false)
final class FoundLimitEvent extends Event {

    @Label("Limit")
    String limit = "";

    @Label("From")
    int from;

    @Label("To")
    int to;

    @Label("Reason")
    String reason = "";

    static void record(String limit, FoundLimitChange change) {
        FoundLimitEvent event = new FoundLimitEvent();
        if (event.isEnabled()) {
            event.limit = limit;
            event.from = change.from();
            event.to = change.to();
            event.reason = PropertyText.of(change.reason());
            event.commit();
        }
    }
}
