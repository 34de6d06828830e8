package io.ratelimited.spring.internals.web;

class JettyTest extends HttpFacts {

    JettyTest() {
        super(RunningServer.Kind.JETTY, ServletApp.class);
    }
}
