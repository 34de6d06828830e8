package io.ratelimited.redis;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.StaticCredentialsProvider;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.DefaultClientResources;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import redis.embedded.core.ExecutableProvider;

/**
 * A real server, started and stopped by a test. The binary is the one named by the system property or environment
 * variable {@code redis.server} / {@code REDIS_SERVER}, else {@code redis-server} or {@code valkey-server} on the path,
 * else the one of the embedded-redis jar ({@code redis.server=embedded} asks for that).
 */
public final class RedisProcess implements AutoCloseable {

    /** Below the ports that the system gives to connections; a node of a cluster also opens its port + 10,000. */
    private static final int FIRST_PORT = 10_000;

    private static final int PORTS = 5_000;
    /** Of each port in use, the one behind all of them: held until this process ends, because tests stop servers for a while. */
    private static final List<ServerSocket> TAKEN = new CopyOnWriteArrayList<>();

    private static final Duration PATIENCE = Duration.ofMinutes(1);
    /** One for all tests: each has threads of its own. */
    static final ClientResources RESOURCES = DefaultClientResources.create();

    private static String unpacked;

    private static final RedisClient CLIENT = RedisClient.create(RESOURCES);

    static {
        CLIENT.setOptions(ClientOptions.builder().autoReconnect(false).build());
    }

    private final int port;
    private final List<String> command;
    private final Path directory;
    private volatile Process process;
    private @Nullable StatefulRedisConnection<String, String> connection;

    private RedisProcess(int port, List<String> command, Path directory) {
        this.port = port;
        this.command = command;
        this.directory = directory;
    }

    /**
     * A server on a free port.
     *
     * @param options its own; {@code --requirepass} is also what {@link #ask} says to it
     */
    public static RedisProcess start(String... options) {
        return start(binary(), freePort(), options);
    }

    /** A server of the embedded-redis jar, which is an old one, on a free port. */
    public static RedisProcess startEmbedded(String... options) {
        return start(embedded(), freePort(), options);
    }

    /** A server that nobody can talk to but by TLS. */
    public static RedisProcess startTls(Certificate certificate, String... options) {
        List<String> all = new ArrayList<>(List.of("--port", "0", "--tls-auth-clients", "no"));
        int port = freePort();
        all.addAll(List.of("--tls-port", Integer.toString(port)));
        all.addAll(List.of("--tls-cert-file", certificate.certificate().toString()));
        all.addAll(List.of("--tls-key-file", certificate.key().toString()));
        all.addAll(Arrays.asList(options));
        return start(binary(), port, all.toArray(String[]::new));
    }

    /** Whether the binary is built with TLS: one that is not stumbles over the first of these options. */
    public static boolean speaksTls() {
        return !output(binary(), "--tls-port", "0", "--port", "none").contains("tls-port");
    }

    static RedisProcess start(String binary, int port, String... options) {
        List<String> command = new ArrayList<>(List.of(binary, "--port", Integer.toString(port)));
        command.addAll(List.of("--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--protected-mode", "no"));
        // A replica that connects is served at once, not with those of the next five seconds.
        command.addAll(List.of("--repl-diskless-sync-delay", "0"));
        command.addAll(Arrays.asList(options));
        return launch(port, command);
    }

    /**
     * A Sentinel that watches a primary under the name {@code primary}.
     *
     * @param more lines of its configuration
     */
    public static RedisProcess sentinel(int primaryPort, int quorum, String... more) {
        int port = freePort();
        try {
            Path file = Files.createTempFile("sentinel", ".conf");
            List<String> lines = new ArrayList<>(List.of(
                    "port " + port,
                    "bind 127.0.0.1",
                    "sentinel monitor primary 127.0.0.1 " + primaryPort + " " + quorum,
                    "sentinel down-after-milliseconds primary 1000",
                    "sentinel failover-timeout primary 2000"));
            lines.addAll(Arrays.asList(more));
            Files.write(file, lines);
            return launch(port, List.of(binary(), file.toString(), "--sentinel"));
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    private static RedisProcess launch(int port, List<String> command) {
        try {
            RedisProcess server = new RedisProcess(port, command, Files.createTempDirectory("redis-" + port));
            Runtime.getRuntime().addShutdownHook(new Thread(server::destroy));
            server.restart();
            return server;
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    /** Starts it, again after a kill: empty. */
    public void restart() {
        try {
            process = new ProcessBuilder(command)
                    .directory(directory.toFile())
                    .redirectErrorStream(true)
                    .redirectOutput(directory.resolve("log").toFile())
                    .start();
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
        until(() -> !process.isAlive() || answers(), "redis on port " + port + " answers", PATIENCE);
        if (!process.isAlive()) {
            throw new IllegalStateException("redis on port " + port + " has ended: " + log());
        }
    }

    /** What a program that ends by itself has written. */
    static String output(String... command) {
        try {
            Process program =
                    new ProcessBuilder(command).redirectErrorStream(true).start();
            program.getOutputStream().close();
            return new String(program.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    String log() {
        try {
            return Files.readString(directory.resolve("log"));
        } catch (IOException ex) {
            return ex.toString();
        }
    }

    private boolean answers() {
        if (!isTls()) {
            return answers(port);
        }
        try {
            return ask(RedisCommands::ping).equals("PONG");
        } catch (RedisException ex) {
            return false;
        }
    }

    private boolean isTls() {
        return command.contains("--tls-port");
    }

    private static boolean answers(int port) {
        try (java.net.Socket socket = new java.net.Socket(java.net.InetAddress.getLoopbackAddress(), port)) {
            socket.setSoTimeout(500);
            socket.getOutputStream().write("PING\r\n".getBytes(StandardCharsets.US_ASCII));
            String reply = new String(socket.getInputStream().readNBytes(5), StandardCharsets.US_ASCII);
            return reply.equals("+PONG") || reply.equals("-NOAU");
        } catch (IOException ex) {
            return false;
        }
    }

    public static void until(BooleanSupplier condition, String what, Duration patience) {
        long end = System.nanoTime() + patience.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - end > 0) {
                throw new AssertionError("not within " + patience + ": " + what);
            }
            try {
                TimeUnit.MILLISECONDS.sleep(5);
            } catch (InterruptedException ex) {
                throw new IllegalStateException(ex);
            }
        }
    }

    public int port() {
        return port;
    }

    private RedisURI uri() {
        RedisURI uri = RedisURI.create("127.0.0.1", port);
        int password = command.indexOf("--requirepass");
        if (password >= 0) {
            uri.setCredentialsProvider(new StaticCredentialsProvider(
                    null, command.get(password + 1).toCharArray()));
        }
        uri.setSsl(isTls());
        uri.setVerifyPeer(false);
        return uri;
    }

    /** Talks to the server directly. */
    public <T> T ask(Function<RedisCommands<String, String>, T> question) {
        return question.apply(connection().sync());
    }

    /** Kept from question to question. */
    private synchronized StatefulRedisConnection<String, String> connection() {
        if (connection == null || !connection.isOpen()) {
            connection = CLIENT.connect(uri());
        }
        return connection;
    }

    private synchronized void hangUp() {
        if (connection != null) {
            connection.close();
            connection = null;
        }
    }

    /** What a Sentinel knows; it does not understand the commands of a server. */
    String infoSentinel() {
        return send("INFO sentinel");
    }

    /** The beginning of the reply to a command that only a Sentinel understands. */
    String send(String command) {
        try (java.net.Socket socket = new java.net.Socket(java.net.InetAddress.getLoopbackAddress(), port)) {
            socket.setSoTimeout(2000);
            socket.getOutputStream().write((command + "\r\n").getBytes(StandardCharsets.US_ASCII));
            byte[] reply = new byte[8192];
            int length = socket.getInputStream().read(reply);
            return new String(reply, 0, Math.max(0, length), StandardCharsets.US_ASCII);
        } catch (IOException ex) {
            return ex.toString();
        }
    }

    /** SIGSTOP: the server keeps its connections and answers nothing. */
    public void freeze() {
        signal("STOP");
    }

    /** SIGCONT. */
    public void thaw() {
        signal("CONT");
    }

    /** SIGKILL. */
    public void kill() {
        hangUp();
        process.destroyForcibly();
        await();
    }

    /** Also when a test run is given up. */
    private void destroy() {
        Process running = process;
        if (running != null) {
            running.destroyForcibly();
        }
    }

    private void signal(String name) {
        try {
            int status = new ProcessBuilder("kill", "-" + name, Long.toString(process.pid()))
                    .start()
                    .waitFor();
            if (status != 0) {
                throw new IllegalStateException("kill -" + name + " failed");
            }
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        } catch (InterruptedException ex) {
            throw new IllegalStateException(ex);
        }
    }

    private void await() {
        try {
            process.waitFor();
        } catch (InterruptedException ex) {
            throw new IllegalStateException(ex);
        }
    }

    @Override
    public void close() {
        kill();
        try (Stream<Path> files = Files.walk(directory)) {
            files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    /** A port that no other process of the tests is given before this one ends. */
    static int freePort() {
        while (true) {
            int port = FIRST_PORT + ThreadLocalRandom.current().nextInt(PORTS);
            if (isFree(port) && isFree(port + 10_000) && take(port + PORTS)) {
                return port;
            }
        }
    }

    private static boolean take(int port) {
        try {
            TAKEN.add(new ServerSocket(port, 1, InetAddress.getLoopbackAddress()));
            return true;
        } catch (IOException ex) {
            return false;
        }
    }

    private static boolean isFree(int port) {
        try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
            return socket.isBound();
        } catch (IOException ex) {
            return false;
        }
    }

    /** The binary that tests use unless they say otherwise. */
    public static String binary() {
        String named = System.getProperty("redis.server", System.getenv().getOrDefault("REDIS_SERVER", ""));
        if (named.equals("embedded")) {
            return embedded();
        }
        return named.isBlank() ? onPath().orElseGet(RedisProcess::embedded) : named;
    }

    static Optional<String> onPath() {
        return Stream.of(System.getenv().getOrDefault("PATH", "").split(File.pathSeparator, -1))
                .flatMap(directory -> Stream.of("redis-server", "valkey-server").map(name -> Path.of(directory, name)))
                .filter(Files::isExecutable)
                .map(Path::toString)
                .findFirst();
    }

    /** Unpacked once. */
    public static synchronized String embedded() {
        if (unpacked == null) {
            try {
                unpacked = ExecutableProvider.newJarResourceProvider().get().getAbsolutePath();
            } catch (IOException ex) {
                throw new UncheckedIOException("no redis-server: set -Dredis.server=/path/to/redis-server", ex);
            }
        }
        return unpacked;
    }
}
