package io.ratelimited.spring.limit;

import java.util.OptionalInt;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.thread.Threading;
import org.springframework.core.env.Environment;

/**
 * The threads that serve requests. Where they are a bounded pool, callers that sleep in them keep all other requests out.
 *
 * @param number 0 where there are as many as needed
 */
public record RequestThreads(int number) {

    /** As many as needed. */
    public static final RequestThreads UNBOUNDED = new RequestThreads(0);

    /** Of Tomcat and of Jetty, where nothing is set. */
    private static final int DEFAULT_NUMBER = 200;

    private static final int DEFAULT_MAX_WAITING = 1000;

    /** The threads of a servlet application, as its properties set them; an application sets those of its own server only. */
    public static RequestThreads ofServlets(Environment environment) {
        if (Threading.VIRTUAL.isActive(environment)) {
            return UNBOUNDED;
        }
        OptionalInt stated = Stream.of("server.tomcat.threads.max", "server.jetty.threads.max")
                .mapToInt(name -> environment.getProperty(name, Integer.class, 0))
                .filter(number -> number > 0)
                .min();
        return new RequestThreads(stated.orElse(DEFAULT_NUMBER));
    }

    /** How many may sleep so that half of the threads are left for other requests. */
    public int half() {
        return number == 0 ? Integer.MAX_VALUE : Math.max(1, number / 2);
    }

    /** The default of {@code max-waiting} that leaves half of the threads; null if that of the core does. */
    @Nullable
    Integer maxWaiting() {
        return half() < DEFAULT_MAX_WAITING ? half() : null;
    }
}
