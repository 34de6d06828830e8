package io.ratelimited.spring.internals.web;

import org.junit.jupiter.api.Tag;

@Tag("slow")
class TomcatTest extends HttpFacts {

    TomcatTest() {
        super(RunningServer.Kind.TOMCAT, ServletApp.class);
    }
}
