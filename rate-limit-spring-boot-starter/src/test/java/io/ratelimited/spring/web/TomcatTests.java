package io.ratelimited.spring.web;

class TomcatTests extends HttpFacts {

    TomcatTests() {
        super(RunningServer.Kind.TOMCAT, ServletApp.class);
    }
}
