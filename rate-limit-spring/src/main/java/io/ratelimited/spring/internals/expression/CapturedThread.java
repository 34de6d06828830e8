package io.ratelimited.spring.internals.expression;

import io.ratelimited.spring.internals.request.RequestFacts;
import java.security.Principal;
import org.jspecify.annotations.Nullable;

/**
 * The caller of a call without a request, read when the call starts: another thread, with the security context of another
 * user, may complete the call.
 *
 * @param known whether the thread of the call knew its caller, or that nobody was logged in
 * @param caller null for one who is not logged in
 */
record CapturedThread(boolean known, @Nullable Principal caller) implements RequestFacts {

    /** Reads the security context of this thread. */
    static CapturedThread now() {
        return new CapturedThread(CallerNames.isKnownToThread(), CallerNames.ofThread());
    }

    @Override
    public @Nullable Principal principal() {
        if (!known) {
            throw CallRoot.notInRequest("principal");
        }
        return caller;
    }

    @Override
    public @Nullable String clientIp() {
        throw CallRoot.notInRequest("clientIp");
    }

    @Override
    public @Nullable String session() {
        throw CallRoot.notInRequest("session");
    }

    @Override
    public @Nullable String header(String name) {
        throw CallRoot.notInRequest("header('" + name + "')");
    }
}
