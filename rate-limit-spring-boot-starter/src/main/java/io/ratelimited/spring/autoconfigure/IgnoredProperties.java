package io.ratelimited.spring.autoconfigure;

import io.ratelimited.spring.autoconfigure.KnownProperties.Unknown;
import io.ratelimited.spring.internals.boot.NamedBackends;
import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.text.SimilarName;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.context.properties.BoundConfigurationProperties;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.context.properties.source.ConfigurationPropertyState;
import org.springframework.boot.context.properties.source.IterableConfigurationPropertySource;
import org.springframework.context.ApplicationContext;
import org.springframework.core.env.Environment;
import org.springframework.core.env.SystemEnvironmentPropertySource;

/**
 * Warns of properties that look like ours and that nothing reads: those below a prefix that looks like {@code rate-limit}, and
 * those below {@code rate-limit} that do not exist. The limits that they describe would silently not limit.
 *
 * <p>Not warned of are properties that the application binds itself, what the parent context has warned of, and environment
 * variables that are not evidently meant, such as those that Kubernetes sets for a service with the name {@code ratelimit}.
 */
record IgnoredProperties(ApplicationContext context) implements SmartInitializingSingleton {

    private static final LogText.Lines LOG = LogText.lines(IgnoredProperties.class);

    /** Also found in environment variables with underscores for dashes, unlike other prefixes that are similar. */
    private static final List<String> PREFIXES =
            List.of("rate-limits", "rate-limiter", "rate-limiting", "rate-limited", "spring.rate-limit");

    /** Members of ours, so that properties of other libraries are not meant. */
    private static final List<String> MEMBERS =
            List.of("limits", "defaults", "backend", "redis", "http", "clients", "routes", "memory");

    /** With an underscore for the dash of the prefix, Spring Boot reads only variables of properties that it knows. */
    private static final Pattern VARIABLE = Pattern.compile("RATE(?<dash>_)?LIMIT_(?<name>(?<member>[A-Z0-9]+)(_.*)?)");
    /** Variables that Kubernetes and Docker set for a service. */
    private static final Pattern OF_SERVICE =
            Pattern.compile(".*_(SERVICE_(HOST|PORT(_.*)?)|PORT(_\\d+_(TCP|UDP).*)?)");

    private static final ConfigurationPropertyName REDIS_URL = ConfigurationPropertyName.of("rate-limit.redis.url");

    @Override
    public void afterSingletonsInstantiated() {
        Environment environment = context.getEnvironment();
        Set<ConfigurationPropertyName> bound = bound(context);
        Set<String> prefixes = new LinkedHashSet<>(PREFIXES);
        prefixes.addAll(similarPrefixes(environment));
        for (String prefix : prefixes) {
            for (String member : MEMBERS) {
                ConfigurationPropertyName name = ConfigurationPropertyName.of(prefix + "." + member);
                if (isPresent(name, environment) && bound.stream().noneMatch(name::isAncestorOf)) {
                    LOG.warn(
                            "Properties under " + prefix + "." + member + " have no effect, because nothing reads them."
                                    + " Rename the prefix to rate-limit." + member + ". [RL-271]");
                }
            }
        }
        if (isPresent(REDIS_URL, environment) && NamedBackends.of(environment).isEmpty()) {
            LOG.warn("Property " + REDIS_URL
                    + " has no effect: no property sets a backend, so each instance enforces the limits"
                    + " on its own. Set rate-limit.backend: redis, or memory if that is meant. [RL-273]");
        }
        Map<String, String> ignored = ignored(context);
        if (context.getParent() != null) {
            ignored.keySet().removeAll(ignored(context.getParent()).keySet());
        }
        ignored.values().forEach(LOG::warn);
    }

    private static Set<String> similarPrefixes(Environment environment) {
        Set<String> similar = new TreeSet<>();
        for (ConfigurationPropertySource source : ConfigurationPropertySources.get(environment)) {
            if (source instanceof IterableConfigurationPropertySource names) {
                names.stream()
                        .filter(name -> name.getNumberOfElements() > 1 && !KnownProperties.PREFIX.isAncestorOf(name))
                        .map(name -> name.getElement(0, ConfigurationPropertyName.Form.DASHED))
                        .filter(ConfigurationPropertyName::isValid) // a key in brackets need not be
                        .filter(first -> SimilarName.find(first, Set.of(KnownProperties.PREFIX.toString()))
                                .isPresent())
                        .forEach(similar::add);
            }
        }
        return similar;
    }

    private static boolean isPresent(ConfigurationPropertyName name, Environment environment) {
        for (ConfigurationPropertySource source : ConfigurationPropertySources.get(environment)) {
            if (source.containsDescendantOf(name) == ConfigurationPropertyState.PRESENT
                    || source.getConfigurationProperty(name) != null) {
                return true;
            }
        }
        return false;
    }

    /** The warnings by what they are about. */
    private static Map<String, String> ignored(ApplicationContext context) {
        Set<ConfigurationPropertyName> bound = bound(context);
        Map<String, String> warnings = new LinkedHashMap<>();
        for (ConfigurationPropertySource source : ConfigurationPropertySources.get(context.getEnvironment())) {
            if (source.getUnderlyingSource() instanceof SystemEnvironmentPropertySource variables) {
                for (String variable : variables.getPropertyNames()) {
                    ofVariable(variable, bound).ifPresent(warning -> warnings.putIfAbsent(variable, warning));
                }
            } else if (source instanceof IterableConfigurationPropertySource names) {
                names.stream()
                        .filter(name -> KnownProperties.PREFIX.isAncestorOf(name) && !bound.contains(name))
                        .forEach(name -> ofProperty(name, source)
                                .ifPresent(warning -> warnings.putIfAbsent(name.toString(), warning)));
            }
        }
        return warnings;
    }

    /** What beans of this context and its parents have bound, also those of the application. */
    private static Set<ConfigurationPropertyName> bound(ApplicationContext context) {
        Set<ConfigurationPropertyName> bound = new HashSet<>();
        for (ApplicationContext each = context; each != null; each = each.getParent()) {
            BoundConfigurationProperties properties = BoundConfigurationProperties.get(each);
            if (properties != null) {
                bound.addAll(properties.getAll().keySet());
            }
        }
        return bound;
    }

    /** A warning without the value, which can be a password. */
    private static Optional<String> ofProperty(ConfigurationPropertyName name, ConfigurationPropertySource source) {
        ConfigurationProperty property = source.getConfigurationProperty(name);
        String origin =
                property == null || property.getOrigin() == null ? "" : " Origin: " + property.getOrigin() + ".";
        return KnownProperties.unknown(name)
                .map(unknown -> "Property " + name + " has no effect, because this version has no such property"
                        + KnownProperties.similar(name, unknown)
                                .map(near -> " (did you mean " + near + "?)")
                                .orElse("")
                        + "." + origin + " Correct or remove it. If the application itself reads it, set logging.level."
                        + IgnoredProperties.class.getName() + " to error. [RL-340]");
    }

    private static Optional<String> ofVariable(String variable, Set<ConfigurationPropertyName> bound) {
        Matcher matcher = VARIABLE.matcher(variable.toUpperCase(Locale.ROOT));
        if (!matcher.matches()
                || OF_SERVICE.matcher(variable).matches()
                || !isMember(matcher.group("member").toLowerCase(Locale.ROOT))) {
            return Optional.empty();
        }
        ConfigurationPropertyName name = ConfigurationPropertyName.adapt("ratelimit_" + matcher.group("name"), '_');
        Optional<Unknown> unknown = KnownProperties.unknown(name);
        // Spring Boot reads the first form or fails startup, unless another source has the property or its list.
        boolean read = matcher.group("dash") == null
                ? unknown.isEmpty() || bound.contains(name)
                : isReadWithDashes(variable, bound);
        return read
                ? Optional.empty()
                : Optional.of("Environment variable " + variable + " has no effect"
                        + unknown.map(found -> ", because this version has no such property" + remedy(name, found))
                                .orElse(". Write RATELIMIT_" + matcher.group("name"))
                        + ". [RL-340]");
    }

    private static String remedy(ConfigurationPropertyName name, Unknown unknown) {
        Optional<String> near = KnownProperties.similar(name, unknown);
        if (near.isEmpty() && unknown.isNamed()) {
            return ". If it has a name with dashes, start it with RATE_LIMIT_, write each dash as _, and set another"
                    + " property of that name in a file. Otherwise, correct or remove it";
        }
        return near.map(property -> " (did you mean " + variable(property, "") + "?)")
                        .orElse("") + ". Correct or remove it";
    }

    /** Whether a name is one of ours, so that no other program is meant. */
    private static boolean isMember(String name) {
        Set<String> members = KnownProperties.members();
        return members.contains(name) || SimilarName.find(name, members).isPresent();
    }

    /** Whether Spring Boot reads a variable with underscores for dashes, or would if no other source had its property or list. */
    private static boolean isReadWithDashes(String variable, Set<ConfigurationPropertyName> bound) {
        String list = variable.replaceFirst("_\\d+$", "");
        return KnownProperties.paths().stream().anyMatch(path -> variable.equalsIgnoreCase(variable(path, "_")))
                || bound.stream()
                        .anyMatch(name -> variable.equalsIgnoreCase(variable(name.toString(), "_"))
                                || list.equalsIgnoreCase(variable(list(name), "_")));
    }

    /** The list that a property is, or is an element of; empty for another property. */
    private static String list(ConfigurationPropertyName name) {
        ConfigurationPropertyName list = name.isLastElementIndexed() ? name.getParent() : name;
        return KnownProperties.unknown(list.append("[0]")).isEmpty() ? list.toString() : "";
    }

    /** The variable of a property. */
    private static String variable(String property, String dash) {
        return property.replace("-", dash)
                .replaceAll("\\]", "")
                .replaceAll("[.\\[]", "_")
                .toUpperCase(Locale.ROOT);
    }
}
