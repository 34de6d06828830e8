package io.ratelimited.spring.internals.expression;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.spring.internals.text.LogText;
import java.net.URI;
import java.security.Principal;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.springframework.security.authentication.AuthenticationTrustResolver;
import org.springframework.security.authentication.AuthenticationTrustResolverImpl;
import org.springframework.security.core.AuthenticatedPrincipal;
import org.springframework.security.core.Authentication;
import org.springframework.security.core.context.SecurityContextHolder;
import org.springframework.security.core.userdetails.UserDetails;
import org.springframework.security.oauth2.core.ClaimAccessor;
import org.springframework.util.ClassUtils;

/**
 * The names by which callers are told apart. Spring Security's authentications take the text of a principal that they do not
 * know for its name: a text that may differ at each login, or at each request, so that nothing would be limited.
 */
public final class CallerNames {

    private static final LogText.Lines LOG = LogText.lines(CallerNames.class);
    private static final ClassLoader LOADER = CallerNames.class.getClassLoader();
    private static final boolean SECURITY =
            ClassUtils.isPresent("org.springframework.security.core.Authentication", LOADER);
    private static final boolean CLAIMS =
            ClassUtils.isPresent("org.springframework.security.oauth2.core.ClaimAccessor", LOADER);

    /** The most classes of principals that are warned of. */
    private static final int WARNINGS = 20;

    private static final Set<String> WARNED = ConcurrentHashMap.newKeySet();

    private CallerNames() {}

    /** The name of a caller; null for one without a name. */
    static @Nullable String of(Principal caller) {
        return SECURITY && caller instanceof Authentication authentication
                ? Security.name(authentication)
                : caller.getName();
    }

    /**
     * The value that stands for a key, or for a part of one: a caller's name, and the text of what is text.
     *
     * @throws IllegalArgumentException for a caller whose name is a text that differs for each object
     */
    static @Nullable Object part(Object part) {
        // Most keys are strings, of which the JVM sees at once that they are, and only by a search that they are no
        // Principal.
        if (part instanceof String) {
            return part;
        }
        Object known = part instanceof Principal caller ? of(caller) : part;
        return known instanceof CharSequence || known instanceof URI ? known.toString() : known;
    }

    /**
     * A key with the names of callers in it.
     *
     * @throws IllegalArgumentException for an object that is no key, or a caller whose name differs for each object
     */
    public static @Nullable Object inKey(@Nullable Object key) {
        return inKey(key, CallerNames::part);
    }

    /** @param parts as {@link #part}, for the key and for each of its parts */
    static @Nullable Object inKey(@Nullable Object key, Function<Object, @Nullable Object> parts) {
        Object known = key == null ? null : parts.apply(key);
        return known == null || known instanceof String ? known : CanonicalKey.frozen(known, parts);
    }

    /**
     * Checks that a text is not made of the text of an object that is another one at each login. The text alone tells nothing,
     * because clients may write the same one.
     *
     * @param object of the call for which the text is a key
     * @throws IllegalArgumentException when it contains the text of the object, or of its principal
     */
    static void requireNoTextOf(@Nullable Object object, String text) {
        requireNotIn(text, object);
        if (SECURITY) {
            Security.requireNoTextOf(object, text);
        }
    }

    private static void requireNotIn(String text, @Nullable Object object) {
        if (object != null && CallerTexts.isWithoutText(object) && text.contains(object.toString())) {
            throw CallerTexts.withoutText(object);
        }
    }

    /** Returns whether the security context of this thread says who its caller is, or that nobody is logged in. */
    static boolean isKnownToThread() {
        return SECURITY && Security.isKnownToThread();
    }

    /** The caller that the security context of this thread knows; null for one who is not logged in. */
    public static @Nullable Principal ofThread() {
        return SECURITY ? Security.ofThread() : null;
    }

    private static final class Security {

        /** In the text of each authentication, beside the session and the address. */
        private static final String PROTECTED = "Credentials=[PROTECTED]";

        private static final AuthenticationTrustResolver TRUST = new AuthenticationTrustResolverImpl();

        private static boolean isKnownToThread() {
            return SecurityContextHolder.getContext().getAuthentication() != null;
        }

        private static @Nullable Principal ofThread() {
            Authentication authentication = SecurityContextHolder.getContext().getAuthentication();
            return authentication == null || TRUST.isAnonymous(authentication) ? null : authentication;
        }

        private static @Nullable String name(Authentication authentication) {
            Object principal = authentication.getPrincipal();
            String name = authentication.getName();
            if (principal == null
                    || principal instanceof CharSequence
                    || principal instanceof Number
                    || principal instanceof Enum
                    || principal instanceof UUID
                    || !principal.toString().equals(name)) {
                return name;
            }
            if (principal instanceof UserDetails user) {
                return user.getUsername();
            }
            if (principal instanceof AuthenticatedPrincipal authenticated) {
                return authenticated.getName();
            }
            if (principal instanceof Principal named) {
                return named.getName();
            }
            String subject = CLAIMS ? Claims.subject(principal) : null;
            if (subject != null) {
                return subject;
            }
            if (CallerTexts.isWithoutText(principal)) {
                throw CallerTexts.withoutText(principal);
            }
            warnOf(principal);
            return name;
        }

        private static void requireNoTextOf(@Nullable Object object, String text) {
            if (!(object instanceof Authentication authentication)) {
                return;
            }
            if (text.contains(PROTECTED) && text.contains(authentication.toString())) {
                throw new IllegalArgumentException(
                        "the text of an authentication differs at each login: use its name, as in"
                                + " \"principal?.name\"");
            }
            requireNotIn(text, authentication.getPrincipal());
        }

        private static void warnOf(Object principal) {
            String type = principal.getClass().getName();
            if (WARNED.size() < WARNINGS && WARNED.add(type)) {
                LOG.warn("The key of callers is the text of a " + LogText.escaped(type)
                        + ", which Spring Security uses as the name: if it differs at each login, nothing is limited."
                        + " Let the class implement AuthenticatedPrincipal, or use a key such as"
                        + " \"principal?.principal?.id\". [RL-232]");
            }
        }
    }

    private static final class Claims {

        private static @Nullable String subject(Object principal) {
            return principal instanceof ClaimAccessor claims ? claims.getClaimAsString("sub") : null;
        }
    }
}
