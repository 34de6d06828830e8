package io.ratelimited.redis;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** A bad network between a node and Redis: slow, silent in one or both directions, cut, or losing single replies. */
final class Proxy implements AutoCloseable {

    /** How a command begins. */
    private static final Pattern COMMAND = Pattern.compile("\\*\\d+\r\n\\$");

    private final ServerSocket listener;
    private final int target;
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
    private final LongAdder commands = new LongAdder();
    private final AtomicInteger accepted = new AtomicInteger();
    private final AtomicInteger lost = new AtomicInteger();
    private volatile long delayMillis;
    private volatile boolean silent;
    private volatile boolean refusing;
    private volatile boolean deaf;
    private volatile @Nullable String losesReplyTo;
    /** What becomes of the next packet with replies. */
    private final AtomicReference<UnaryOperator<byte[]>> garbles = new AtomicReference<>(UnaryOperator.identity());

    /** A connection on its way to the server. */
    private final class Pair {

        private final Socket client;
        private final Socket server;
        /** The next reply is lost, and the connection with it. */
        private volatile boolean doomed;

        private Pair(Socket client, Socket server) {
            this.client = client;
            this.server = server;
            sockets.add(client);
            sockets.add(server);
        }

        private boolean sends(String text) {
            Matcher matcher = COMMAND.matcher(text);
            while (matcher.find()) {
                commands.increment();
            }
            String losing = losesReplyTo;
            if (losing != null && text.contains(losing)) {
                losesReplyTo = null;
                doomed = true;
            }
            return !silent;
        }

        private boolean replies() throws IOException {
            if (doomed) {
                lost.incrementAndGet();
                throw new IOException("lost");
            }
            return !silent;
        }

        private void close() {
            closeQuietly(client);
            closeQuietly(server);
            sockets.remove(client);
            sockets.remove(server);
        }
    }

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

    /** While on, new connections are accepted and never answered: those that were stay so when it is off again. */
    void deafen(boolean on) {
        deaf = on;
    }

    /** The server gets the next request that contains the text, but the connection breaks instead of its reply. */
    void loseReplyTo(String text) {
        losesReplyTo = text;
    }

    /** The next packet with replies is another one, on a connection that goes on. */
    void garbleReply(UnaryOperator<byte[]> replies) {
        garbles.set(replies);
    }

    /** How many replies were lost with their connection. */
    int lost() {
        return lost.get();
    }

    /** Commands that clients have sent, whether they have arrived or not. */
    long commands() {
        return commands.sum();
    }

    /** Connections that were accepted so far. */
    int accepted() {
        return accepted.get();
    }

    private void accept() {
        while (!listener.isClosed()) {
            try {
                Socket client = listener.accept();
                if (refusing) {
                    client.close();
                    continue;
                }
                accepted.incrementAndGet();
                client.setTcpNoDelay(true);
                if (deaf) {
                    sockets.add(client);
                    continue;
                }
                Socket server = new Socket(InetAddress.getLoopbackAddress(), target);
                server.setTcpNoDelay(true);
                Pair pair = new Pair(client, server);
                start(() -> pump(pair, true));
                start(() -> pump(pair, false));
                if (refusing) {
                    pair.close();
                }
            } catch (IOException ex) {
                // Closed, or the target is gone: the client sees a cut connection.
            }
        }
    }

    private void pump(Pair pair, boolean requests) {
        byte[] buffer = new byte[1 << 16];
        try (InputStream in = (requests ? pair.client : pair.server).getInputStream();
                OutputStream out = (requests ? pair.server : pair.client).getOutputStream()) {
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                boolean arrives =
                        requests ? pair.sends(new String(buffer, 0, n, StandardCharsets.ISO_8859_1)) : pair.replies();
                if (!arrives) {
                    continue;
                }
                if (requests && delayMillis > 0) {
                    TimeUnit.MILLISECONDS.sleep(delayMillis);
                }
                byte[] packet = Arrays.copyOf(buffer, n);
                out.write(
                        requests
                                ? packet
                                : garbles.getAndSet(UnaryOperator.identity()).apply(packet));
                out.flush();
            }
        } catch (IOException | InterruptedException ex) {
            // Cut.
        } finally {
            pair.close();
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
