package io.ratelimited.spring.internals.web.servlet;

import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import java.io.IOException;

/**
 * The body of a response at whose end limits have something to do. After a write that fails, Spring MVC waits for the server to
 * end the request, and Jetty does not always: so the failure ends it.
 */
final class FollowedOutput extends ServletOutputStream {

    private final ServletOutputStream body;
    private final ServletRequestState state;

    FollowedOutput(ServletOutputStream body, ServletRequestState state) {
        this.body = body;
        this.state = state;
    }

    private IOException failed(IOException failure) {
        state.broken(failure);
        return failure;
    }

    @Override
    public void write(int one) throws IOException {
        try {
            body.write(one);
        } catch (IOException ex) {
            throw failed(ex);
        }
    }

    @Override
    public void write(byte[] from, int offset, int length) throws IOException {
        try {
            body.write(from, offset, length);
        } catch (IOException ex) {
            throw failed(ex);
        }
    }

    @Override
    public void flush() throws IOException {
        try {
            body.flush();
        } catch (IOException ex) {
            throw failed(ex);
        }
    }

    @Override
    public void close() throws IOException {
        try {
            body.close();
        } catch (IOException ex) {
            throw failed(ex);
        }
    }

    @Override
    public boolean isReady() {
        return body.isReady();
    }

    @Override
    public void setWriteListener(WriteListener listener) {
        body.setWriteListener(listener);
    }
}
