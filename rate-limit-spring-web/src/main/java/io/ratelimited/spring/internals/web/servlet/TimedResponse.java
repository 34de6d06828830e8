package io.ratelimited.spring.internals.web.servlet;

import io.ratelimited.spring.internals.call.CallerTime;
import io.ratelimited.spring.internals.call.CallerWait;
import io.ratelimited.spring.internals.web.servlet.StepwiseOutput.Step;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.Writer;
import org.jspecify.annotations.Nullable;

/** A response whose waits until its client takes bytes are measured. */
final class TimedResponse extends HttpServletResponseWrapper {

    private final CallerTime time;
    private @Nullable ServletOutputStream stream;
    private @Nullable PrintWriter writer;

    TimedResponse(HttpServletResponse response, CallerTime time) {
        super(response);
        this.time = time;
    }

    @Override
    public ServletOutputStream getOutputStream() throws IOException {
        ServletOutputStream body = super.getOutputStream();
        if (stream == null) {
            stream = new TimedOutput(body, time);
        }
        return stream;
    }

    @Override
    public PrintWriter getWriter() throws IOException {
        PrintWriter body = super.getWriter();
        if (writer == null) {
            writer = new TimedPrinter(body, time);
        }
        return writer;
    }

    @Override
    public void flushBuffer() throws IOException {
        timed(time, super::flushBuffer);
    }

    private static void timed(CallerTime time, Step step) throws IOException {
        time.begin();
        try {
            step.run();
        } finally {
            time.end();
        }
    }

    /** A response that is reset may be written by the other door. */
    @Override
    public void reset() {
        super.reset();
        stream = null;
        writer = null;
    }

    /** Has no buffer of its own. */
    private static final class TimedPrinter extends PrintWriter {

        private final PrintWriter body;
        private final CallerTime time;

        private TimedPrinter(PrintWriter body, CallerTime time) {
            super(new TimedWriter(body, time));
            this.body = body;
            this.time = time;
        }

        /** Flushes the body. */
        @Override
        public boolean checkError() {
            time.begin();
            try {
                return super.checkError() || body.checkError();
            } finally {
                time.end();
            }
        }
    }

    private static final class TimedWriter extends Writer {

        private final Writer body;
        private final CallerTime time;

        private TimedWriter(Writer body, CallerTime time) {
            this.body = body;
            this.time = time;
        }

        @Override
        public void write(char[] from, int offset, int length) throws IOException {
            timed(time, () -> body.write(from, offset, length));
        }

        @Override
        public void write(String from, int offset, int length) throws IOException {
            timed(time, () -> body.write(from, offset, length));
        }

        @Override
        public void flush() throws IOException {
            timed(time, body::flush);
        }

        @Override
        public void close() throws IOException {
            timed(time, body::close);
        }
    }

    /** Code that writes without blocking waits from when nothing can be taken until it is told that it can. */
    private static final class TimedOutput extends StepwiseOutput {

        private final CallerTime time;
        private final CallerWait waits;

        private TimedOutput(ServletOutputStream body, CallerTime time) {
            super(body);
            this.time = time;
            this.waits = new CallerWait(time);
        }

        @Override
        void run(Step step) throws IOException {
            timed(time, step);
        }

        @Override
        public boolean isReady() {
            // Begins before it asks: the listener may be called, on another thread, before the answer is here.
            waits.begin();
            boolean ready = body.isReady();
            if (ready) {
                waits.end();
            }
            return ready;
        }

        @Override
        public void setWriteListener(WriteListener listener) {
            waits.begin();
            body.setWriteListener(new WriteListener() {
                @Override
                public void onWritePossible() throws IOException {
                    waits.end();
                    listener.onWritePossible();
                }

                @Override
                public void onError(Throwable failure) {
                    waits.end();
                    listener.onError(failure);
                }
            });
        }
    }
}
