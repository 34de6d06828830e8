package io.ratelimited.spring.internals.boot;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.web.TrustedProxies;
import java.util.Locale;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.cloud.CloudPlatform;
import org.springframework.boot.web.server.WebServer;
import org.springframework.boot.web.server.context.WebServerApplicationContext;
import org.springframework.context.ApplicationContext;
import org.springframework.core.env.Environment;
import org.springframework.util.ClassUtils;
import org.springframework.util.StringUtils;

/**
 * Compares {@code rate-limit.http.trusted-proxies} with {@code server.forward-headers-strategy}. A server that reads
 * forwarding headers itself ({@code native}) replaces the peer's address and may remove the headers, so nothing is left
 * to count hops in. Below the change that {@code framework} makes, the original is still visible.
 */
public final class ForwardedHeadersCheck implements Runnable {

    private static final LogText.Lines LOG = LogText.lines(ForwardedHeadersCheck.class);
    private static final String STRATEGY = "server.forward-headers-strategy";
    private static final String[] TOMCAT_HEADERS = {
        "server.tomcat.remoteip.remote-ip-header", "server.tomcat.remoteip.protocol-header"
    };

    private static final boolean HAS_SERVERS = ClassUtils.isPresent(
            "org.springframework.boot.web.server.context.WebServerApplicationContext",
            ForwardedHeadersCheck.class.getClassLoader());

    private final Environment environment;
    private final ApplicationContext context;
    private final boolean proxiesKnown;
    private final Function<ApplicationContext, @Nullable String> forwarding;
    private final BooleanSupplier readsClientIp;
    private final Runnable watchForProxies;

    /**
     * @param proxies null when none is trusted
     * @param forwarding describes what of the application's own reads the headers; null if nothing does
     * @param readsClientIp whether any limit reads the address of clients
     * @param watchForProxies reports requests that have passed a proxy
     * @throws InvalidRateLimitException when the server reads forwarding headers that are to be read here
     */
    public ForwardedHeadersCheck(
            ApplicationContext context,
            @Nullable TrustedProxies proxies,
            Function<ApplicationContext, @Nullable String> forwarding,
            BooleanSupplier readsClientIp,
            Runnable watchForProxies) {
        this.context = context;
        this.environment = context.getEnvironment();
        this.proxiesKnown = proxies != null;
        this.forwarding = forwarding;
        this.readsClientIp = readsClientIp;
        this.watchForProxies = watchForProxies;
        if (proxiesKnown) {
            requireRawRequests();
        }
    }

    private void requireRawRequests() {
        String setting = strategy().equals("native") ? STRATEGY + "=native" : null;
        if (setting != null && !environment.containsProperty(STRATEGY)) {
            setting += ", the default on " + CloudPlatform.getActive(environment);
        }
        for (String header : TOMCAT_HEADERS) {
            if (setting == null && StringUtils.hasText(environment.getProperty(header))) {
                setting = header;
            }
        }
        if (setting != null) {
            throw new InvalidRateLimitException(
                    TrustedProxies.PROPERTY + " cannot be used with " + setting
                            + ": the server changes the address and the headers before they can be read",
                    "Set " + STRATEGY + " to framework if links of the application need the headers, otherwise to none,"
                            + " and remove server.tomcat.remoteip.*; or remove " + TrustedProxies.PROPERTY
                            + ". [RL-115]");
        }
    }

    /** As Spring Boot decides it. */
    private String strategy() {
        String set = environment.getProperty(STRATEGY);
        if (set != null) {
            return set.strip().toLowerCase(Locale.ROOT);
        }
        CloudPlatform platform = CloudPlatform.getActive(environment);
        return platform != null && platform.isUsingForwardHeaders() ? "native" : "none";
    }

    /** Warns where a caller can name any address as its own. */
    @Override
    public void run() {
        if (proxiesKnown || !readsClientIp.getAsBoolean()) {
            return;
        }
        String strategy = strategy();
        String why = strategy.equals("framework") || (strategy.equals("native") && !isTomcat())
                ? STRATEGY + " is " + strategy
                : forwarding.apply(context);
        if (why != null) {
            LOG.warn(TrustedProxies.leftmost(why)
                    + (strategy.equals("native")
                            ? " With " + TrustedProxies.PROPERTY + ", " + STRATEGY + " must be framework or none."
                            : "")
                    + " [RL-212]");
        } else if (strategy.equals("none")) {
            watchForProxies.run();
        }
    }

    private boolean isTomcat() {
        return HAS_SERVERS && Embedded.isTomcat(context);
    }

    /** Tomcat believes the proxies of its own list alone, and reads from the right. */
    private static final class Embedded {

        private static boolean isTomcat(ApplicationContext context) {
            WebServer server =
                    context instanceof WebServerApplicationContext application ? application.getWebServer() : null;
            return server != null && server.getClass().getName().startsWith("org.springframework.boot.tomcat.");
        }
    }
}
