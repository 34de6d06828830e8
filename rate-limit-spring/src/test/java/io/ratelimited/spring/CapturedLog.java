package io.ratelimited.spring;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/** What a test method has logged and printed so far; a parameter of it. */
public final class CapturedLog implements CharSequence {

    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

    private CapturedLog() {}

    @Override
    public String toString() {
        synchronized (bytes) {
            return bytes.toString(StandardCharsets.UTF_8);
        }
    }

    @Override
    public int length() {
        return toString().length();
    }

    @Override
    public char charAt(int index) {
        return toString().charAt(index);
    }

    @Override
    public CharSequence subSequence(int start, int end) {
        return toString().subSequence(start, end);
    }

    /** Captures what is logged, and passes it on. */
    public static final class Capture implements BeforeEachCallback, AfterEachCallback, ParameterResolver {

        private static final ExtensionContext.Namespace NAMESPACE = ExtensionContext.Namespace.create(Capture.class);

        private record Before(PrintStream out, PrintStream err) {}

        @Override
        public void beforeEach(ExtensionContext context) {
            Before before = new Before(System.out, System.err);
            CapturedLog log = log(context);
            context.getStore(NAMESPACE).put(Before.class, before);
            System.setOut(both(before.out, log));
            System.setErr(both(before.err, log));
        }

        @Override
        public void afterEach(ExtensionContext context) {
            Before before = context.getStore(NAMESPACE).get(Before.class, Before.class);
            System.setOut(before.out);
            System.setErr(before.err);
        }

        @Override
        public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
            return parameter.getParameter().getType() == CapturedLog.class;
        }

        @Override
        public CapturedLog resolveParameter(ParameterContext parameter, ExtensionContext context) {
            return log(context);
        }

        private static CapturedLog log(ExtensionContext context) {
            return context.getStore(NAMESPACE)
                    .computeIfAbsent(CapturedLog.class, type -> new CapturedLog(), CapturedLog.class);
        }

        private static PrintStream both(PrintStream before, CapturedLog log) {
            OutputStream stream = new OutputStream() {
                @Override
                public void write(int b) {
                    synchronized (log.bytes) {
                        log.bytes.write(b);
                    }
                    before.write(b);
                }

                @Override
                public void write(byte[] text, int offset, int length) {
                    synchronized (log.bytes) {
                        log.bytes.write(text, offset, length);
                    }
                    before.write(text, offset, length);
                }

                @Override
                public void flush() throws IOException {
                    before.flush();
                }
            };
            return new PrintStream(stream, true, StandardCharsets.UTF_8);
        }
    }
}
