package io.ratelimited.spring.internals.web;

class ReactorNettyTest extends HttpFacts {

    ReactorNettyTest() {
        super(RunningServer.Kind.REACTOR_NETTY, ReactiveApp.class);
    }
}
