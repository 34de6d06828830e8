package io.ratelimited.spring.internals.web;

class TomcatTest extends HttpFacts {

    TomcatTest() {
        super(RunningServer.Kind.TOMCAT, ServletApp.class);
    }
}
