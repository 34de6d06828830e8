package io.ratelimited.spring.check;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.aop.Controllers;
import io.ratelimited.spring.aop.Declaration;
import io.ratelimited.spring.aop.LimitedMethod;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.support.AopUtils;
import org.springframework.context.annotation.Bean;
import org.springframework.core.annotation.AnnotatedElementUtils;

/** Finds the calls of a class with limited methods that Spring's proxies do not see: they would go without a limit. */
final class ProxyCheck {

    private static final Log LOG = LogFactory.getLog(ProxyCheck.class);

    private final Class<?> type;
    private final Map<Method, LimitedMethod> limited;

    ProxyCheck(Class<?> type, Map<Method, LimitedMethod> limited) {
        this.type = type;
        this.limited = limited;
    }

    /**
     * Checks that proxies can see every call of the limited methods.
     *
     * @param bean null if it is not made yet
     * @throws InvalidRateLimitException when no proxy can see a limited method
     */
    void check(@Nullable Object bean) {
        if (!Proxy.isProxyClass(type) && (bean == null || !AopUtils.isJdkDynamicProxy(bean))) {
            limited.keySet().forEach(this::requireOverridable);
        }
        limited.forEach(this::requireUnlimitedFallback);
    }

    /** Warns of a bean with methods that no limit sees. */
    static void warnIfUnlimited(String name, Object bean) {
        List<Method> unlimited = BeanProxies.unlimited(bean);
        if (!unlimited.isEmpty()) {
            LOG.warn("Bean '" + name + "' is not limited: nothing stands before "
                    + unlimited.stream().map(Method::toGenericString).sorted().collect(Collectors.joining(", "))
                    + ". It was made before Spring's proxies, or registered as an instance, or is a proxy that was made"
                    + " by hand around an object that is no bean, or is itself part of the aspects, or spring.aop.auto"
                    + " is false: let a bean that is made later have the methods, or weave"
                    + " (rate-limit.aspect.mode: woven).");
        }
    }

    /** A fallback is called on the object itself, behind the proxy: limits of its own would not be asked. */
    private void requireUnlimitedFallback(Method method, LimitedMethod found) {
        Method fallback = found.fallback();
        List<Declaration> own = fallback == null ? List.of() : Declaration.of(fallback, type);
        if (!own.isEmpty()) {
            throw new InvalidRateLimitException(
                    found.limits().get(0).limit().name(),
                    Declaration.of(method, type).get(0).place(),
                    "fallback " + own.get(0).method().getName() + " is limited itself ("
                            + own.get(0).place() + "), but as a fallback it is called without its limit",
                    (own.get(0).ofClass() ? "Exempt it with @RateLimitExempt" : "Remove its annotation")
                            + ", or weave (rate-limit.aspect.mode: woven).");
        }
    }

    private void requireOverridable(Method method) {
        int modifiers = method.getModifiers();
        String flaw = null;
        if (Modifier.isPrivate(modifiers)) {
            flaw = "private";
        } else if (Modifier.isStatic(modifiers)) {
            flaw = "static";
        } else if (Modifier.isFinal(modifiers)) {
            flaw = "final";
        }
        boolean makesBean = AnnotatedElementUtils.hasAnnotation(method, Bean.class);
        if (flaw == null && !makesBean) {
            return;
        }
        Declaration declaration = Declaration.of(method, type).get(0);
        String limit = limited(method).limits().get(0).limit().name();
        if (flaw != null) {
            throw new InvalidRateLimitException(
                    limit,
                    declaration.place(),
                    "method " + method.getName() + " is " + flaw
                            + ", so that Spring's proxies cannot limit calls of it",
                    "Make it an overridable method that other beans call, "
                            + (declaration.ofClass() ? "exempt it with @RateLimitExempt, " : "")
                            + "or weave (rate-limit.aspect.mode: woven).");
        }
        if (!declaration.ofClass()) {
            throw new InvalidRateLimitException(
                    limit,
                    declaration.place(),
                    "method " + method.getName() + " makes a bean: it is called once, and the bean is not limited",
                    "Annotate the methods of the bean instead.");
        }
    }

    private LimitedMethod limited(Method method) {
        LimitedMethod found = limited.get(method);
        if (found == null) {
            throw new IllegalStateException(method.toString());
        }
        return found;
    }

    /** Warns of methods that an annotation on their class does not reach. */
    void warnOfHiddenMethods() {
        Set<Method> fallbacks = limited.values().stream()
                .flatMap(method -> Stream.ofNullable(method.fallback()))
                .collect(Collectors.toSet());
        boolean controller = Controllers.hasHandlers(type);
        List<String> hidden = Stream.of(type.getDeclaredMethods())
                .filter(method -> !method.isSynthetic() && !limited.containsKey(method) && !fallbacks.contains(method))
                .filter(method -> (method.getModifiers() & (Modifier.PRIVATE | Modifier.STATIC)) == 0)
                .filter(method ->
                        controller ? !Controllers.isCalledAlong(method) : !Modifier.isPublic(method.getModifiers()))
                .filter(method -> !Declaration.ofClass(method, type).isEmpty() && !Declaration.isExempt(method))
                .map(Method::getName)
                .distinct()
                .sorted()
                .toList();
        if (!hidden.isEmpty()) {
            LOG.warn("@RateLimited on " + type.getName()
                    + (controller
                            ? " limits the handler methods of the controller only, and not " + hidden + ": annotate"
                            : " limits public methods only, and not " + hidden + ": make them public, annotate")
                    + " them, or exempt them with @RateLimitExempt.");
        }
    }

    /** Warns of calls within one object. */
    void warnOfSelfCalls() {
        SelfCalls.of(type, limited.keySet()).forEach((caller, callees) -> {
            Set<String> before = limits(caller);
            Map<String, Set<String>> unseen = new TreeMap<>();
            callees.forEach(callee -> {
                Set<String> limits = limits(callee);
                limits.removeAll(before);
                if (!limits.isEmpty()) {
                    unseen.computeIfAbsent(callee.getName(), name -> new TreeSet<>())
                            .addAll(limits);
                }
            });
            unseen.forEach((callee, limits) -> LOG.warn(type.getName() + "." + caller.getName() + " calls " + callee
                    + " of the same object, which Spring's proxy does not see: rate limit '"
                    + String.join("', '", limits)
                    + "' does not limit this call. Call it from another bean, let the class"
                    + " be injected into itself, or weave (rate-limit.aspect.mode: woven)."));
        });
    }

    private Set<String> limits(Method method) {
        LimitedMethod found = limited.get(method);
        Set<String> names = new TreeSet<>();
        if (found != null) {
            found.limits().forEach(limit -> names.add(limit.limit().name()));
        }
        return names;
    }
}
