package io.ratelimited.spring.internals.web.servlet;

import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import java.io.IOException;

/** The body of a response each of whose writes, flushes and its close is done in a way of the subclass. */
abstract class StepwiseOutput extends ServletOutputStream {

    final ServletOutputStream body;

    StepwiseOutput(ServletOutputStream body) {
        this.body = body;
    }

    /** What a method does with the body. */
    interface Step {

        void run() throws IOException;
    }

    abstract void run(Step step) throws IOException;

    @Override
    public void write(int one) throws IOException {
        run(() -> body.write(one));
    }

    @Override
    public void write(byte[] from, int offset, int length) throws IOException {
        run(() -> body.write(from, offset, length));
    }

    @Override
    public void flush() throws IOException {
        run(body::flush);
    }

    @Override
    public void close() throws IOException {
        run(body::close);
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
