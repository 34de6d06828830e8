package io.ratelimited.spring.internals.web.servlet;

import io.ratelimited.spring.internals.call.CallerTime;
import io.ratelimited.spring.internals.call.CallerWait;
import jakarta.servlet.ReadListener;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletInputStream;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.Part;
import java.io.BufferedReader;
import java.io.FilterReader;
import java.io.IOException;
import java.util.Collection;
import java.util.Enumeration;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A request whose waits for bytes of its client are measured, also where the container reads a form. */
final class TimedRequest extends HttpServletRequestWrapper {

    private final CallerTime time;
    private @Nullable ServletInputStream stream;
    private @Nullable BufferedReader reader;

    TimedRequest(HttpServletRequest request, CallerTime time) {
        super(request);
        this.time = time;
    }

    @Override
    public ServletInputStream getInputStream() throws IOException {
        ServletInputStream body = super.getInputStream();
        if (stream == null) {
            stream = new TimedInput(body, time);
        }
        return stream;
    }

    @Override
    public BufferedReader getReader() throws IOException {
        BufferedReader body = super.getReader();
        if (reader == null) {
            reader = new BufferedReader(new FilterReader(body) {
                @Override
                public int read(char[] into, int from, int length) throws IOException {
                    return timed(time, () -> body.read(into, from, length));
                }
            });
        }
        return reader;
    }

    @Override
    public @Nullable String getParameter(String name) {
        return timed(() -> super.getParameter(name));
    }

    @Override
    public Enumeration<String> getParameterNames() {
        return timed(super::getParameterNames);
    }

    @Override
    public String @Nullable [] getParameterValues(String name) {
        return timed(() -> super.getParameterValues(name));
    }

    @Override
    public Map<String, String[]> getParameterMap() {
        return timed(super::getParameterMap);
    }

    private <T extends @Nullable Object> T timed(Supplier<T> form) {
        time.begin();
        try {
            return form.get();
        } finally {
            time.end();
        }
    }

    @Override
    public Collection<Part> getParts() throws IOException, ServletException {
        time.begin();
        try {
            return super.getParts();
        } finally {
            time.end();
        }
    }

    @Override
    public @Nullable Part getPart(String name) throws IOException, ServletException {
        time.begin();
        try {
            return super.getPart(name);
        } finally {
            time.end();
        }
    }

    private static int timed(CallerTime time, StepwiseInput.Step step) throws IOException {
        time.begin();
        try {
            return step.run();
        } finally {
            time.end();
        }
    }

    /** Code that reads without blocking waits from when nothing is ready until it is told that something is. */
    private static final class TimedInput extends StepwiseInput {

        private final CallerTime time;
        private final CallerWait waits;

        private TimedInput(ServletInputStream body, CallerTime time) {
            super(body);
            this.time = time;
            this.waits = new CallerWait(time);
        }

        @Override
        int run(Step step) throws IOException {
            return timed(time, step);
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
        public void setReadListener(ReadListener listener) {
            waits.begin();
            body.setReadListener(new ReadListener() {
                @Override
                public void onDataAvailable() throws IOException {
                    waits.end();
                    listener.onDataAvailable();
                }

                @Override
                public void onAllDataRead() throws IOException {
                    waits.end();
                    listener.onAllDataRead();
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
