package io.ratelimited.spring.internals.web;

import org.junit.jupiter.api.Tag;

@Tag("slow")
class JettyTest extends HttpFacts {

    JettyTest() {
        super(RunningServer.Kind.JETTY, ServletApp.class);
    }
}
