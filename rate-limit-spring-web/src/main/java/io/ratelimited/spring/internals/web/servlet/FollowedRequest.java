package io.ratelimited.spring.internals.web.servlet;

import jakarta.servlet.ServletInputStream;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import java.io.BufferedReader;
import java.io.FilterReader;
import java.io.IOException;
import org.jspecify.annotations.Nullable;

/** A request that learns when the rest of its body does not come: exceptions of a server may be those of its client, too. */
final class FollowedRequest extends HttpServletRequestWrapper {

    private @Nullable ServletInputStream stream;
    private @Nullable BufferedReader reader;

    FollowedRequest(HttpServletRequest request) {
        super(request);
    }

    @Override
    public ServletInputStream getInputStream() throws IOException {
        ServletInputStream body = super.getInputStream();
        if (stream == null) {
            stream = new StepwiseInput(body) {
                @Override
                int run(Step step) throws IOException {
                    return followed(step);
                }
            };
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
                    return followed(() -> body.read(into, from, length));
                }
            });
        }
        return reader;
    }

    private int followed(StepwiseInput.Step step) throws IOException {
        try {
            return step.run();
        } catch (IOException ex) {
            ServletRequestState.lost(getRequest());
            throw ex;
        }
    }
}
