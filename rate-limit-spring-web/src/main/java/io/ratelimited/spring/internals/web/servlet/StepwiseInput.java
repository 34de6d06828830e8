package io.ratelimited.spring.internals.web.servlet;

import jakarta.servlet.ReadListener;
import jakarta.servlet.ServletInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;

/** The body of a request each of whose reads is done in a way of the subclass. */
abstract class StepwiseInput extends ServletInputStream {

    final ServletInputStream body;

    StepwiseInput(ServletInputStream body) {
        this.body = body;
    }

    /** What a method reads of the body. */
    interface Step {

        int run() throws IOException;
    }

    abstract int run(Step step) throws IOException;

    @Override
    public int read() throws IOException {
        return run(body::read);
    }

    @Override
    public int read(byte[] into, int from, int length) throws IOException {
        return run(() -> body.read(into, from, length));
    }

    /** The default asks whether the body is ready, which is an error of Jetty where reads block. */
    @Override
    public int read(ByteBuffer into) throws IOException {
        return run(() -> body.read(into));
    }

    @Override
    public int available() throws IOException {
        return body.available();
    }

    @Override
    public void close() throws IOException {
        body.close();
    }

    @Override
    public boolean isFinished() {
        return body.isFinished();
    }

    @Override
    public boolean isReady() {
        return body.isReady();
    }

    @Override
    public void setReadListener(ReadListener listener) {
        body.setReadListener(listener);
    }
}
