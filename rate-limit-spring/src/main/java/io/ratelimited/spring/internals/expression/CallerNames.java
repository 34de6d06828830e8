package io.ratelimited.spring.internals.expression;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.spring.internals.text.LogText;
import java.net.URI;
import java.security.Principal;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
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

    private static final String HEXADECIMAL = "0123456789abcdef";
    /** Places in a text at which the name of a class is looked for: callers may write any number of them. */
    private static final int LOOKS = 8;

    private static final int LONGEST_NAME = 256;
    /** Of a hidden class, with what is before it, as in {@code /0x00007f5ee6d3c8c8}. */
    private static final int LONGEST_NUMBER = 24;

    /** In the text of each authentication of Spring Security, beside the session and the address. */
    private static final String PROTECTED = "Credentials=[PROTECTED]";

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
     * @throws IllegalArgumentException for a text that differs for each object, or at each login
     */
    static @Nullable Object part(Object part) {
        // Most keys are strings, of which the JVM sees at once that they are, and only by a search that they are no
        // Principal.
        if (part instanceof String text) {
            requireText(text);
            return text;
        }
        Object known = part instanceof Principal caller ? of(caller) : part;
        if (known instanceof CharSequence || known instanceof URI) {
            String text = known.toString();
            requireText(text);
            return text;
        }
        return known;
    }

    /**
     * A key that code states by hand, with the names of callers in it.
     *
     * @throws IllegalArgumentException for an object that is no key, or a text that differs for each object
     */
    public static @Nullable Object inKey(@Nullable Object key) {
        Object known = key == null ? null : part(key);
        return known == null || known instanceof String ? known : CanonicalKey.frozen(known, CallerNames::part);
    }

    private static void requireText(String text) {
        String of = defaultText(text);
        if (of != null) {
            throw new IllegalArgumentException(LogText.escaped(of)
                    + " is the text of an object without toString(), which differs for each object: use its"
                    + " id");
        }
        if (text.contains(PROTECTED)) {
            throw new IllegalArgumentException(
                    "the text of an authentication differs at each login: use its name, as in"
                            + " \"principal?.name\"");
        }
    }

    /** The part of a text that is that of an object that has none of its own, so that each object is another key; null for none. */
    private static @Nullable String defaultText(String text) {
        for (int at = text.indexOf('@', 1), looks = 0;
                at > 0 && looks < LOOKS;
                at = text.indexOf('@', at + 1), looks++) {
            int end = at + 1;
            while (end < text.length() && HEXADECIMAL.indexOf(text.charAt(end)) >= 0) {
                end++;
            }
            boolean number = end > at + 1 && end <= at + 9 && (end == text.length() || isEnd(text.charAt(end)));
            int hidden = number ? text.lastIndexOf("/0x", at) : -1;
            int nameEnd = hidden > Math.max(0, at - LONGEST_NUMBER) ? hidden : at;
            int begin = number && nameEnd > 0 ? begin(text, nameEnd) : nameEnd;
            if (begin < nameEnd && isClass(text.substring(begin, nameEnd))) {
                return text.substring(begin, end);
            }
        }
        return null;
    }

    private static boolean isEnd(char next) {
        return !Character.isJavaIdentifierPart(next) && "-.@".indexOf(next) < 0;
    }

    private static int begin(String text, int at) {
        int begin = at;
        while (begin > Math.max(0, at - LONGEST_NAME)
                && (Character.isJavaIdentifierPart(text.charAt(begin - 1))
                        || ".[;".indexOf(text.charAt(begin - 1)) >= 0)) {
            begin--;
        }
        return begin;
    }

    /** Looks for the file, because class loaders keep something of each name that they are asked to load, and callers invent names. */
    private static boolean isClass(String text) {
        if (text.startsWith("[")) {
            return true;
        }
        int made = text.indexOf("$$");
        String name = made > 0 ? text.substring(0, made) : text;
        String file = ClassUtils.convertClassNameToResourcePath(name) + ClassUtils.CLASS_FILE_SUFFIX;
        ClassLoader loader = ClassUtils.getDefaultClassLoader();
        return (loader == null ? LOADER : loader).getResource(file) != null;
    }

    /** Returns whether the security context of this thread says who its caller is, or that nobody is logged in. */
    static boolean isKnownToThread() {
        return SECURITY && Security.isKnownToThread();
    }

    /** The caller that the security context of this thread knows; null for one who is not logged in. */
    static @Nullable Principal ofThread() {
        return SECURITY ? Security.ofThread() : null;
    }

    private static final class Security {

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
            warnOf(principal, name);
            return name;
        }

        private static void warnOf(Object principal, String name) {
            String type = principal.getClass().getName();
            if (WARNED.size() < WARNINGS && defaultText(name) == null && WARNED.add(type)) {
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
