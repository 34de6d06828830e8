package io.ratelimited.spring.internals.web.servlet;

import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.IOException;
import java.io.PrintWriter;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;

/**
 * A response that reports to its request when it is complete, before the client can know it, and when it is broken. It is
 * complete before the last byte of a known length is written, before a response without a body is sent, and when its body is
 * closed. A server may send the last byte while the code of the application still runs; otherwise it sends it afterwards.
 * Bytes of a writer are not counted. Keeps the headers of limits when it is reset.
 */
final class FollowedResponse extends HttpServletResponseWrapper {

    private static final int NO_CONTENT = HttpServletResponse.SC_NO_CONTENT;
    private static final int NOT_MODIFIED = HttpServletResponse.SC_NOT_MODIFIED;

    private final HttpServletRequest request;
    private final HttpServletResponse response;
    private final boolean isHead;
    /** Negative while it is not known. */
    private long length = -1;

    private long written;
    private @Nullable ServletOutputStream stream;
    private @Nullable PrintWriter writer;
    /** Looked up while the request is there: a late write may come when the server uses it for another one. */
    private @Nullable ServletRequestState state;

    FollowedResponse(HttpServletRequest request, HttpServletResponse response) {
        super(response);
        this.request = request;
        this.response = response;
        this.isHead = request.getMethod().equals("HEAD");
    }

    @Override
    public void setContentLength(int bytes) {
        length = bytes;
        super.setContentLength(bytes);
    }

    @Override
    public void setContentLengthLong(long bytes) {
        length = bytes;
        super.setContentLengthLong(bytes);
    }

    @Override
    public void setHeader(String name, String value) {
        learnLength(name, value);
        super.setHeader(name, value);
    }

    @Override
    public void addHeader(String name, String value) {
        learnLength(name, value);
        super.addHeader(name, value);
    }

    private void learnLength(String name, @Nullable String value) {
        if (HttpHeaders.CONTENT_LENGTH.equalsIgnoreCase(name)) {
            try {
                length = value == null ? -1 : Long.parseLong(value.strip());
            } catch (NumberFormatException ex) {
                length = -1;
            }
        }
    }

    private void follow() {
        if (state == null) {
            state = ServletRequestState.known(request);
        }
    }

    @Override
    public ServletOutputStream getOutputStream() throws IOException {
        follow();
        ServletOutputStream body = super.getOutputStream();
        if (stream == null) {
            stream = new Body(body);
        }
        return stream;
    }

    @Override
    public PrintWriter getWriter() throws IOException {
        follow();
        PrintWriter body = super.getWriter();
        if (writer == null) {
            writer = new PrintWriter(body) {
                @Override
                public void close() {
                    complete();
                    super.close();
                }
            };
        }
        return writer;
    }

    @Override
    public void flushBuffer() throws IOException {
        follow();
        run(super::flushBuffer, 0);
    }

    @Override
    public void sendRedirect(String location) throws IOException {
        redirected();
        super.sendRedirect(location);
    }

    @Override
    public void sendRedirect(String location, int status) throws IOException {
        redirected();
        super.sendRedirect(location, status);
    }

    @Override
    public void sendRedirect(String location, boolean clearBuffer) throws IOException {
        redirected();
        super.sendRedirect(location, clearBuffer);
    }

    @Override
    public void sendRedirect(String location, int status, boolean clearBuffer) throws IOException {
        redirected();
        super.sendRedirect(location, status, clearBuffer);
    }

    private void redirected() {
        follow();
        complete();
    }

    @Override
    public void resetBuffer() {
        super.resetBuffer();
        written = 0;
    }

    /** A response that is reset may be written by the other door. */
    @Override
    public void reset() {
        super.reset();
        length = -1;
        written = 0;
        stream = null;
        writer = null;
        ServletRequestState.restoreFields(request, response);
    }

    private void complete() {
        if (state != null) {
            state.complete();
        }
    }

    /** @param bytes that are written; 0 if those before are sent */
    private void run(StepwiseOutput.Step step, long bytes) throws IOException {
        if (isLast(bytes) || (bytes == 0 && hasNoBody())) {
            complete();
        }
        written += bytes;
        try {
            step.run();
        } catch (IOException ex) {
            if (state != null) {
                state.broken(ex);
            }
            throw ex;
        }
    }

    private boolean isLast(long bytes) {
        return length >= 0 && written + bytes >= length;
    }

    private boolean hasNoBody() {
        int status = getStatus();
        return isHead || status == NO_CONTENT || status == NOT_MODIFIED;
    }

    private final class Body extends StepwiseOutput {

        /** Whether writes must not block, so that each has to be asked for. */
        private volatile boolean listened;

        private Body(ServletOutputStream body) {
            super(body);
        }

        @Override
        void run(Step step) throws IOException {
            FollowedResponse.this.run(step, 0);
        }

        @Override
        public void write(int one) throws IOException {
            FollowedResponse.this.run(() -> body.write(one), 1);
        }

        @Override
        public void write(byte[] from, int offset, int length) throws IOException {
            // All but the last byte first, since a slow client may take them for minutes.
            boolean splits = length > 1 && !listened && isLast(length) && state != null && state.hasActions();
            int first = splits ? length - 1 : length;
            FollowedResponse.this.run(() -> body.write(from, offset, first), first);
            if (splits) {
                write(from[offset + first]);
            }
        }

        @Override
        public void setWriteListener(WriteListener listener) {
            listened = true;
            super.setWriteListener(listener);
        }

        @Override
        public void close() throws IOException {
            complete();
            super.close();
        }
    }
}
