package io.ratelimited.spring.internals.web.reactive;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.netty.channel.epoll.Epoll;
import io.netty.channel.unix.DomainSocketAddress;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.web.RunningServer;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.reactor.netty.NettyReactiveWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** An application behind a proxy on the same machine, which connects by a unix domain socket. */
@Tag("slow")
class UnixSocketTest {

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @RestController
    static class App {

        @RateLimited(rate = "1/h", key = "clientIp")
        @GetMapping("/ip")
        String ip() {
            return "admitted";
        }
    }

    private static ConfigurableApplicationContext start(Path socket) {
        return new SpringApplicationBuilder(App.class)
                .web(WebApplicationType.REACTIVE)
                .initializers(context -> ((GenericApplicationContext) context)
                        .registerBean(
                                WebServerFactoryCustomizer.class,
                                () -> (WebServerFactoryCustomizer<NettyReactiveWebServerFactory>)
                                        factory -> factory.addServerCustomizers(server ->
                                                server.bindAddress(() -> new DomainSocketAddress(socket.toString())))))
                .run(
                        "--rate-limit.http.trusted-proxies=10.0.0.0/8",
                        "--spring.main.banner-mode=off",
                        "--spring.reactor.netty.shutdown-quiet-period=0s",
                        "--spring.autoconfigure.exclude=" + RunningServer.SECURITY
                                + ",org.springframework.boot.tomcat.autoconfigure.reactive.TomcatReactiveWebServerAutoConfiguration"
                                + ",org.springframework.boot.jetty.autoconfigure.reactive.JettyReactiveWebServerAutoConfiguration");
    }

    private static String get(Path socket, String forwardedFor) throws IOException {
        try (SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(socket))) {
            String request =
                    "GET /ip HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Forwarded-For: " + forwardedFor + "\r\n\r\n";
            channel.write(StandardCharsets.US_ASCII.encode(request));
            return new String(Channels.newInputStream(channel).readAllBytes(), StandardCharsets.US_ASCII);
        }
    }

    @Test
    void callersAreThoseOfTheProxyOnTheUnixSocket(@TempDir Path directory) throws IOException {
        assumeTrue(Epoll.isAvailable(), "Netty needs its native transport for unix domain sockets");
        Path socket = directory.resolve("s");
        try (ConfigurableApplicationContext context = start(socket)) {
            assertThat(context.isRunning()).isTrue();
            assertThat(get(socket, "203.0.113.5")).contains("200 OK");
            assertThat(get(socket, "198.51.100.9")).contains("200 OK");
            assertThat(get(socket, "192.0.2.1, 203.0.113.5")).contains("429 Too Many Requests");
            assertThat(get(socket, "192.0.2.1, 198.51.100.9, 10.1.2.3")).contains("429 Too Many Requests");
        }
    }
}
