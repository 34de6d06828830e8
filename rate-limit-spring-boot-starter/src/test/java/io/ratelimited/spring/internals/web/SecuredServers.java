package io.ratelimited.spring.internals.web;

import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.util.List;

/** Servers with Spring Security for tests of other packages. */
public final class SecuredServers implements AutoCloseable {

    private final RunningServer server;

    private SecuredServers(RunningServer server) {
        this.server = server;
    }

    /** @param kind the name of a {@link Kind} */
    public static SecuredServers start(String kind, List<Class<?>> sources) {
        return new SecuredServers(Kind.valueOf(kind).startSecured(sources));
    }

    public int port() {
        return server.port();
    }

    @Override
    public void close() {
        server.close();
    }
}
