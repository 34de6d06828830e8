package io.ratelimited.spring.internals.web;

import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;

/** The same on the other servers. */
@Tag("proof")
final class RouteAttacksProofTest extends RouteAttacksTest {

    static Stream<Kind> kinds() {
        return Stream.of(Kind.JETTY, Kind.REACTOR_NETTY);
    }
}
