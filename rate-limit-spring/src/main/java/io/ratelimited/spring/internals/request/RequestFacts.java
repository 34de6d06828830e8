package io.ratelimited.spring.internals.request;

import java.security.Principal;
import org.jspecify.annotations.Nullable;

/** What expressions may read of a web request: the words {@code clientIp}, {@code principal}, {@code header} and {@code session}. */
public interface RequestFacts {

    /** Address of the client as the server resolved it, an IPv6 address reduced to its network; null if unknown. */
    @Nullable
    String clientIp();

    /** The authenticated caller; null if there is none. */
    @Nullable
    Principal principal();

    /** First value of a request header; null if absent. */
    @Nullable
    String header(String name);

    /** Id of the session, if there is one; never creates one. */
    @Nullable
    String session();
}
