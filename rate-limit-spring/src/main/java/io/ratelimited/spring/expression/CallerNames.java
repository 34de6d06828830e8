package io.ratelimited.spring.expression;

import io.ratelimited.spring.text.LogText;
import java.security.Principal;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.springframework.security.core.AuthenticatedPrincipal;
import org.springframework.security.core.Authentication;
import org.springframework.security.core.userdetails.UserDetails;
import org.springframework.security.oauth2.core.ClaimAccessor;
import org.springframework.util.ClassUtils;

/**
 * The names by which callers are told apart. Spring Security's authentications take the text of a principal that they do not
 * know for its name: a text that may differ at each login, or at each request, so that nothing would be limited.
 */
final class CallerNames {

    private static final LogText.Lines LOG = LogText.lines(CallerNames.class);
    private static final ClassLoader LOADER = CallerNames.class.getClassLoader();
    private static final boolean SECURITY =
            ClassUtils.isPresent("org.springframework.security.core.Authentication", LOADER);
    private static final boolean CLAIMS =
            ClassUtils.isPresent("org.springframework.security.oauth2.core.ClaimAccessor", LOADER);

    /** The text that {@link Object#toString} makes: the name of a class and a number in hexadecimal. */
    private static final Pattern DEFAULT_TEXT = Pattern.compile("(\\[*[\\w.$]*[\\w$;])(?:/0x[0-9a-f]+)?@[0-9a-f]{1,8}");

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

    /** Returns whether a text is that of an object that has none of its own, so that each object is another key. */
    static boolean isDefaultText(String text) {
        int at = text.lastIndexOf('@');
        if (at <= 0 || text.length() - at > 9) {
            return false;
        }
        Matcher matcher = DEFAULT_TEXT.matcher(text);
        if (!matcher.matches()) {
            return false;
        }
        String name = matcher.group(1);
        int made = name.indexOf("$$");
        String type = made > 0 ? name.substring(0, made) : name;
        return type.startsWith("[") || ClassUtils.isPresent(type, ClassUtils.getDefaultClassLoader());
    }

    private static final class Security {

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
            if (WARNED.size() < WARNINGS && !isDefaultText(name) && WARNED.add(type)) {
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
