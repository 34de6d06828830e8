package io.ratelimited.spring.internals.web;

import org.junit.jupiter.api.Tag;

@Tag("slow")
class ReactorNettyTest extends HttpFacts {

    ReactorNettyTest() {
        super(RunningServer.Kind.REACTOR_NETTY, ReactiveApp.class);
    }
}
