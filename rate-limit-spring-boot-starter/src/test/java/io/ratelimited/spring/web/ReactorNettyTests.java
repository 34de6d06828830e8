package io.ratelimited.spring.web;

class ReactorNettyTests extends HttpFacts {

    ReactorNettyTests() {
        super(RunningServer.Kind.REACTOR_NETTY, ReactiveApp.class);
    }
}
