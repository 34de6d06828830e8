package io.ratelimited.redis;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/** A bad network between a node and Redis: slow, silent or cut. */
final class Proxy implements AutoCloseable {

    private final ServerSocket listener;
    private final int target;
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
    private volatile long delayMillis;
    private volatile boolean silent;
    private volatile boolean refusing;

    Proxy(int target) {
        this.target = target;
        try {
            this.listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
        start(this::accept);
    }

    int port() {
        return listener.getLocalPort();
    }

    /** Every packet takes so much longer, in both directions together. */
    void delay(long millis) {
        delayMillis = millis;
    }

    /** Connections stay, and nothing arrives. What was sent meanwhile is lost. */
    void silence(boolean on) {
        silent = on;
    }

    /** Cuts all connections, and refuses new ones while on. */
    void cut(boolean on) {
        refusing = on;
        if (on) {
            sockets.forEach(Proxy::closeQuietly);
        }
    }

    private void accept() {
        while (!listener.isClosed()) {
            try {
                Socket client = listener.accept();
                if (refusing) {
                    client.close();
                    continue;
                }
                Socket server = new Socket(InetAddress.getLoopbackAddress(), target);
                client.setTcpNoDelay(true);
                server.setTcpNoDelay(true);
                sockets.add(client);
                sockets.add(server);
                start(() -> pump(client, server, true));
                start(() -> pump(server, client, false));
            } catch (IOException ex) {
                // Closed, or the target is gone: the client sees a cut connection.
            }
        }
    }

    private void pump(Socket from, Socket to, boolean slow) {
        byte[] buffer = new byte[1 << 16];
        try (InputStream in = from.getInputStream();
                OutputStream out = to.getOutputStream()) {
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                if (silent) {
                    continue;
                }
                if (slow && delayMillis > 0) {
                    TimeUnit.MILLISECONDS.sleep(delayMillis);
                }
                out.write(buffer, 0, n);
                out.flush();
            }
        } catch (IOException | InterruptedException ex) {
            // Cut.
        } finally {
            closeQuietly(from);
            closeQuietly(to);
        }
    }

    private static void start(Runnable task) {
        Thread thread = new Thread(task, "proxy");
        thread.setDaemon(true);
        thread.start();
    }

    private static void closeQuietly(Socket socket) {
        try {
            socket.close();
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    @Override
    public void close() {
        try {
            listener.close();
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
        sockets.forEach(Proxy::closeQuietly);
    }
}
