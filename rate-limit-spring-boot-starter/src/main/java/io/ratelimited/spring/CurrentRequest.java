package io.ratelimited.spring;

import io.ratelimited.core.Decision;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The web request that a call belongs to: where keys are read from and headers are written to. */
public interface CurrentRequest {

    /** Address of the client as the server resolved it, an IPv6 address reduced to its network; null if unknown. */
    @Nullable
    String clientIp();

    /** The authenticated caller; null if there is none. */
    java.security.@Nullable Principal principal();

    /** First value of a request header; null if absent. */
    @Nullable
    String header(String name);

    /** Id of the session, if there is one; never creates one. */
    @Nullable
    String session();

    /** A limit has decided on a call of this request. */
    void decided(NamedLimit limit, Outcome outcome, Supplier<Decision> decision);

    /** Finds the request of a call. */
    interface Source {

        /**
         * Finds the request of the calling thread.
         *
         * @return null outside a web request
         */
        @Nullable
        CurrentRequest current();

        /**
         * Finds the request of a subscription to a reactive type.
         *
         * @param reactorContext looks up a key in the context of the subscription; null if it is absent
         * @return null outside a web request
         */
        default @Nullable CurrentRequest current(Function<Object, @Nullable Object> reactorContext) {
            return current();
        }
    }
}
