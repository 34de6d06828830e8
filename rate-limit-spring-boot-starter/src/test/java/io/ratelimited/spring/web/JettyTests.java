package io.ratelimited.spring.web;

class JettyTests extends HttpFacts {

    JettyTests() {
        super(RunningServer.Kind.JETTY, ServletApp.class);
    }
}
