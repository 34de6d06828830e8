package io.ratelimited.benchmarks;

import io.ratelimited.spring.RateLimited;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** A request to a server of Spring MVC over a connection that is kept open, from its first byte to the last of its answer. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 8, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(
        value = 3,
        jvmArgsAppend = {"-Xms1g", "-Xmx1g", "-XX:+AlwaysPreTouch", "-XX:+UseTransparentHugePages"})
@State(Scope.Benchmark)
public class RequestBenchmark {

    private static final byte[] END_OF_HEAD = "\r\n\r\n".getBytes(StandardCharsets.US_ASCII);

    private @Nullable ConfigurableApplicationContext context;
    private int port;

    /** Starts the server. */
    @Setup(Level.Trial)
    public void setUp() {
        SpringApplication application = new SpringApplication(Application.class);
        application.setDefaultProperties(Map.of(
                "bucket4j.enabled", "false",
                "spring.cloud.gateway.server.webflux.enabled", "false",
                "server.port", "0",
                "server.address", "127.0.0.1",
                "server.tomcat.max-keep-alive-requests", "-1"));
        ConfigurableApplicationContext started = application.run();
        context = started;
        port = started.getEnvironment().getRequiredProperty("local.server.port", Integer.class);
    }

    /** Stops it. */
    @TearDown(Level.Trial)
    public void tearDown() {
        if (context != null) {
            context.close();
        }
    }

    /** A connection of a thread. */
    @State(Scope.Thread)
    public static class Connection {

        private @Nullable Socket socket;
        private OutputStream out = OutputStream.nullOutputStream();
        private InputStream in = InputStream.nullInputStream();

        /** Connects. */
        @Setup(Level.Trial)
        public void setUp(RequestBenchmark server) throws IOException {
            Socket connected = new Socket(InetAddress.getLoopbackAddress(), server.port);
            connected.setTcpNoDelay(true);
            socket = connected;
            out = connected.getOutputStream();
            in = new BufferedInputStream(connected.getInputStream());
        }

        /** Disconnects. */
        @TearDown(Level.Trial)
        public void tearDown() throws IOException {
            if (socket != null) {
                socket.close();
            }
        }

        /** Asks, and reads the head of the answer and its one byte of body. */
        private int get(String path) throws IOException {
            out.write(("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n").getBytes(StandardCharsets.US_ASCII));
            int read = 0;
            int bytes = 0;
            for (int matched = 0; matched < END_OF_HEAD.length; bytes++) {
                read = in.read();
                if (read < 0) {
                    throw new IOException("the server closed the connection");
                }
                matched = read == END_OF_HEAD[matched] ? matched + 1 : read == '\r' ? 1 : 0;
            }
            if (in.read() != 'a') {
                throw new IOException("not the expected answer");
            }
            return bytes;
        }
    }

    @Benchmark
    public int floorRequest(Connection connection) throws IOException {
        return connection.get("/plain?id=7");
    }

    @Benchmark
    public int oursRequest(Connection connection) throws IOException {
        return connection.get("/limited?id=7");
    }

    @Benchmark
    public int oursRequestByParameter(Connection connection) throws IOException {
        return connection.get("/keyed?id=7");
    }

    /** The handlers. */
    @RestController
    public static class Handlers {

        /** Without a limit. */
        @GetMapping(path = "/plain", produces = "text/plain")
        public String plain(@RequestParam String id) {
            return "a";
        }

        /** One limit for all. */
        @RateLimited(rate = "1000000000/s")
        @GetMapping(path = "/limited", produces = "text/plain")
        public String limited(@RequestParam String id) {
            return "a";
        }

        /** A limit per caller. */
        @RateLimited(rate = "1000000000/s", key = "#id")
        @GetMapping(path = "/keyed", produces = "text/plain")
        public String keyed(@RequestParam String id) {
            return "a";
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {

        @Bean
        Handlers handlers() {
            return new Handlers();
        }
    }
}
