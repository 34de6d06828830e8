package io.ratelimited.spring.internals.web.servlet;

import jakarta.servlet.DispatcherType;
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
 * complete before the last byte of a known length is written, before a redirect is sent, and when its body is closed. A server
 * may send the last byte while the code of the application still runs; otherwise it sends it afterwards. A head that is sent
 * completes no response, not even one without a body: its handler may still work. Bytes of a writer are not counted. Keeps
 * the headers of limits when it is reset.
 */
final class FollowedResponse extends HttpServletResponseWrapper {

    private final HttpServletRequest request;
    private final HttpServletResponse response;
    private long written;
    private @Nullable ServletOutputStream stream;
    private @Nullable PrintWriter writer;
    /** Looked up while the request is there: a late write may come when the server uses it for another one. */
    private @Nullable ServletRequestState state;

    /** @param request as the application gets it, which Tomcat tells that it is included */
    FollowedResponse(HttpServletRequest request, HttpServletResponse response) {
        super(response);
        this.request = request;
        this.response = response;
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

    /** Tomcat, which ignores a redirect within an include, calls it for that. */
    private void redirected() {
        if (request.getDispatcherType() != DispatcherType.INCLUDE) {
            follow();
            complete();
        }
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
        if (isLast(bytes)) {
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

    /** The length is not noted when it is set: servers ignore that of what is included. */
    private boolean isLast(long bytes) {
        return state != null
                && state.hasActions()
                && Long.toString(written + bytes).equals(getHeader(HttpHeaders.CONTENT_LENGTH));
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
            boolean splits = length > 1 && !listened && isLast(length);
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
