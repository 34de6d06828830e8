package io.ratelimited.spring.internals.web;

import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.client.ReactorResourceFactory;

/** Servers that several tests of a class call, one test after the other. Whoever gets one finds every budget full. */
public final class SharedServers implements AfterAllCallback {

    private final Map<List<Object>, RunningServer> running = new HashMap<>();

    /** The one with these classes and properties, started for the first test that wants it. */
    public RunningServer get(Kind kind, List<Class<?>> sources, String... properties) {
        return get(false, kind, sources, properties);
    }

    /** The one that has Spring Security besides. */
    public RunningServer getSecured(Kind kind, List<Class<?>> sources, String... properties) {
        return get(true, kind, sources, properties);
    }

    private RunningServer get(boolean secured, Kind kind, List<Class<?>> sources, String... properties) {
        RunningServer server = running.computeIfAbsent(List.of(secured, kind, sources, List.of(properties)), key -> {
            List<Class<?>> all = with(OwnLoops.class, sources);
            return secured ? kind.startSecured(all, properties) : kind.start(all, properties);
        });
        server.ticker().advance(Duration.ofDays(1));
        return server;
    }

    private static List<Class<?>> with(Class<?> more, List<Class<?>> sources) {
        return Stream.concat(sources.stream(), Stream.of(more)).toList();
    }

    /** Those of all applications end with the first server of Reactor Netty that is closed. */
    @Configuration(proxyBeanMethods = false)
    public static class OwnLoops {

        @Bean
        ReactorResourceFactory loops() {
            ReactorResourceFactory loops = new ReactorResourceFactory();
            loops.setUseGlobalResources(false);
            loops.setShutdownQuietPeriod(Duration.ZERO);
            return loops;
        }
    }

    @Override
    public void afterAll(ExtensionContext context) {
        running.values().forEach(RunningServer::close);
        running.clear();
    }
}
