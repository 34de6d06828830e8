package io.ratelimited.spring.web;

class TomcatTest extends HttpFacts {

    TomcatTest() {
        super(RunningServer.Kind.TOMCAT, ServletApp.class);
    }
}
