package io.ratelimited.benchmarks;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.locks.LockSupport;

/**
 * A Redis of its own on the loopback interface, which keeps nothing on disk. The binary is {@code redis-server} on the path, or
 * the one that {@code -Dredis.server} names.
 */
final class RedisServer implements AutoCloseable {

    private static final long PATIENCE_NANOS = 10_000_000_000L;

    private final Process process;
    private final int port;

    private RedisServer(Process process, int port) {
        this.process = process;
        this.port = port;
    }

    /** Starts one, and waits until it listens. */
    static RedisServer start() throws IOException {
        int port;
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = socket.getLocalPort();
        }
        Process process = new ProcessBuilder(
                        System.getProperty("redis.server", "redis-server"),
                        "--port",
                        Integer.toString(port),
                        "--bind",
                        "127.0.0.1",
                        "--save",
                        "",
                        "--appendonly",
                        "no")
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
        long end = System.nanoTime() + PATIENCE_NANOS;
        while (!listens(port)) {
            if (!process.isAlive() || System.nanoTime() - end > 0) {
                throw new IOException("redis-server did not start on port " + port + "; name one by -Dredis.server");
            }
            LockSupport.parkNanos(10_000_000);
        }
        return new RedisServer(process, port);
    }

    private static boolean listens(int port) {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            return socket.isConnected();
        } catch (IOException ex) {
            return false;
        }
    }

    int port() {
        return port;
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
