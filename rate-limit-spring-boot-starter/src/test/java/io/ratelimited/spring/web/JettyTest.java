package io.ratelimited.spring.web;

class JettyTest extends HttpFacts {

    JettyTest() {
        super(RunningServer.Kind.JETTY, ServletApp.class);
    }
}
