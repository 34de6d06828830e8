package io.ratelimited.benchmarks;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Connections to one of the servers that are kept open and served by one thread: each has one request pending at a time, of
 * one of {@link #CALLERS}. Any answer but 200 is an error, and so is none; of a server that rejects, 429 is expected, too.
 */
final class WebFluxClient implements AutoCloseable {

    private static final int CALLERS = 10_000;
    private static final int PATIENCE_MILLIS = 10_000;
    private static final byte[] ADMITTED = ascii("HTTP/1.1 200 ");
    private static final byte[] REJECTED = ascii("HTTP/1.1 429 ");
    private static final byte[] HEADERS_END = ascii("\r\n\r\n");
    private static final byte[] LAST_CHUNK = ascii("\r\n0\r\n\r\n");
    private static final Pattern LENGTH = Pattern.compile("\r\ncontent-length: *(\\d+)\r\n", Pattern.CASE_INSENSITIVE);

    private final Selector selector = Selector.open();
    private final List<Connection> connections = new ArrayList<>();
    private final byte[][] requests = new byte[CALLERS][];
    private final boolean rejects;

    /**
     * @param number of connections
     * @param rejects whether 429 is expected, too
     */
    WebFluxClient(int port, int number, boolean rejects) throws IOException {
        this.rejects = rejects;
        for (int i = 0; i < CALLERS; i++) {
            requests[i] = ascii("GET /people HTTP/1.1\r\nHost: localhost\r\n" + WebFluxServers.CALLER + ": caller-" + i
                    + "\r\n\r\n");
        }
        for (int i = 0; i < number; i++) {
            connections.add(new Connection(port));
        }
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    /**
     * Sends requests for a while, and waits for the last answer.
     *
     * @param latencies nanoseconds from a request to its answer; the last ones if there are more
     * @return the number of requests
     */
    int send(long nanos, long[] latencies) throws IOException {
        int count = 0;
        int pending = 0;
        long end = System.nanoTime() + nanos;
        for (Connection connection : connections) {
            connection.send();
            pending++;
        }
        while (pending > 0) {
            await();
            for (SelectionKey key : selector.selectedKeys()) {
                Connection connection = (Connection) key.attachment();
                if (connection.isAnswered()) {
                    long now = System.nanoTime();
                    latencies[count++ % latencies.length] = now - connection.begun;
                    if (now - end < 0) {
                        connection.send();
                    } else {
                        pending--;
                    }
                }
            }
            selector.selectedKeys().clear();
        }
        return count;
    }

    /** One answer, as text. */
    String answer() throws IOException {
        Connection connection = connections.get(0);
        connection.send();
        while (!connection.isAnswered()) {
            await();
            selector.selectedKeys().clear();
        }
        return new String(connection.in.array(), 0, connection.in.position(), StandardCharsets.US_ASCII);
    }

    private void await() throws IOException {
        if (selector.select(PATIENCE_MILLIS) == 0) {
            throw new IOException("no answer for " + PATIENCE_MILLIS + " ms");
        }
    }

    @Override
    public void close() throws IOException {
        for (Connection connection : connections) {
            connection.socket.close();
        }
        selector.close();
    }

    private final class Connection {

        private final SocketChannel socket;
        private final ByteBuffer in = ByteBuffer.allocate(4096);
        private long begun;

        private Connection(int port) throws IOException {
            socket = SocketChannel.open(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
            socket.setOption(StandardSocketOptions.TCP_NODELAY, true);
            socket.configureBlocking(false);
            socket.register(selector, SelectionKey.OP_READ, this);
        }

        private void send() throws IOException {
            in.clear();
            ByteBuffer out =
                    ByteBuffer.wrap(requests[ThreadLocalRandom.current().nextInt(CALLERS)]);
            begun = System.nanoTime();
            // Shorter than any buffer of a socket that has nothing to send.
            if (socket.write(out) < out.limit()) {
                throw new IOException("a request was not sent at once");
            }
        }

        /** Reads what has come. */
        private boolean isAnswered() throws IOException {
            if (socket.read(in) < 0) {
                throw new IOException("the server closed the connection");
            }
            int length = in.position();
            if (length >= ADMITTED.length && !holds(ADMITTED, 0) && !(rejects && holds(REJECTED, 0))) {
                throw new IOException("not admitted: " + new String(in.array(), 0, length, StandardCharsets.US_ASCII));
            }
            return isComplete(length);
        }

        /** By the fields of the answer. They are looked at once, since an answer comes in one piece as a rule. */
        private boolean isComplete(int length) {
            int begin = ADMITTED.length;
            while (begin <= length - HEADERS_END.length && !holds(HEADERS_END, begin)) {
                begin++;
            }
            int body = begin + HEADERS_END.length;
            if (body > length) {
                return false;
            }
            Matcher stated = LENGTH.matcher(new String(in.array(), 0, body, StandardCharsets.US_ASCII));
            return stated.find()
                    ? length >= body + Integer.parseInt(stated.group(1))
                    : length >= body + LAST_CHUNK.length && holds(LAST_CHUNK, length - LAST_CHUNK.length);
        }

        private boolean holds(byte[] expected, int position) {
            for (int i = 0; i < expected.length; i++) {
                if (in.get(position + i) != expected[i]) {
                    return false;
                }
            }
            return true;
        }
    }
}
