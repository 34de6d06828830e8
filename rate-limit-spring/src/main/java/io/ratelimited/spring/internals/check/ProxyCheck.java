package io.ratelimited.spring.internals.check;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.aop.BeanTypes;
import io.ratelimited.spring.internals.aop.Controllers;
import io.ratelimited.spring.internals.aop.Declaration;
import io.ratelimited.spring.internals.aop.Declarations;
import io.ratelimited.spring.internals.aop.KotlinNames;
import io.ratelimited.spring.internals.aop.LimitedMethod;
import io.ratelimited.spring.internals.text.LogText;
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
import org.jspecify.annotations.Nullable;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.InitializingBean;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import org.springframework.util.ClassUtils;

/** Finds limited methods of a class whose calls Spring's proxies do not see, so that no limit is asked, or make fail. */
record ProxyCheck(Class<?> type, Map<Method, LimitedMethod> limited) {

    private static final LogText.Lines LOG = LogText.lines(ProxyCheck.class);

    /** By name, because their module is optional. */
    private static final List<String> CALLBACKS =
            List.of("jakarta.annotation.PostConstruct", "jakarta.annotation.PreDestroy");

    /** By name, because its module is optional. {@code McpTool} makes every method accessible. */
    private static final String TOOL = "org.springframework.ai.tool.annotation.Tool";

    /**
     * Requires that proxies can see every call of the limited methods.
     *
     * @param bean the bean; null if it is not made yet
     * @throws InvalidRateLimitException when no proxy can see a limited method
     */
    void check(@Nullable Object bean) {
        boolean byInterface = Proxy.isProxyClass(type) || (bean != null && AopUtils.isJdkDynamicProxy(bean));
        limited.forEach((method, found) -> requireVisible(method, found, byInterface));
        limited.forEach(this::requireUnlimitedFallback);
    }

    /** A fallback is called on the object behind the proxy, so that its own limits would not be asked. */
    private void requireUnlimitedFallback(Method method, LimitedMethod found) {
        Method fallback = found.fallback();
        List<Declaration> own = fallback == null ? List.of() : Declarations.of(fallback, type);
        if (!own.isEmpty()) {
            throw new InvalidRateLimitException(
                    found.limits().get(0).limit().name(),
                    Declarations.of(method, type).get(0).place(),
                    "fallback " + KotlinNames.of(own.get(0).method()) + " is limited itself ("
                            + own.get(0).place() + "), but as a fallback it is called without its limit",
                    (own.get(0).ofClass() ? "Exempt it with @RateLimitExempt" : "Remove its annotation")
                            + ", or weave (rate-limit.aspect.mode: woven). [RL-107]");
        }
    }

    /** @param byInterface whether the proxy calls the object instead of overriding its methods */
    private void requireVisible(Method method, LimitedMethod found, boolean byInterface) {
        int modifiers = method.getModifiers();
        String flaw = null;
        if (Modifier.isPrivate(modifiers)) {
            flaw = "private" + in(method);
        } else if (Modifier.isStatic(modifiers)) {
            flaw = "static" + in(method);
        } else if (Modifier.isFinal(modifiers) && !byInterface) {
            flaw = "final" + in(method);
        } else if (!byInterface && BeanTypes.isOfOtherPackage(method, type)) {
            flaw = "package-private" + in(method) + ", which is in another package";
        }
        if (flaw == null && !Declarations.makesBean(method)) {
            return;
        }
        Declaration declaration = Declarations.of(method, type).get(0);
        String limit = found.limits().get(0).limit().name();
        if (flaw != null) {
            throw new InvalidRateLimitException(
                    limit,
                    declaration.place(),
                    "method " + KotlinNames.of(method) + " is " + flaw + ", so Spring's proxies cannot intercept it",
                    "Make it an overridable method that other beans call, "
                            + (declaration.ofClass()
                                    ? "exempt it with @RateLimitExempt, annotate methods instead of the class, "
                                    : "")
                            + "or weave (rate-limit.aspect.mode: woven). [RL-108]");
        }
        throw new InvalidRateLimitException(
                limit,
                declaration.place(),
                "method " + KotlinNames.of(method) + " creates a bean: it is called once, and the bean is not limited",
                "Annotate the methods of the bean instead. [RL-108]");
    }

    /** The origin of an inherited method, for messages. */
    private String in(Method method) {
        return method.getDeclaringClass() == type
                ? ""
                : " in " + method.getDeclaringClass().getName();
    }

    /** Warns of methods that the annotation on their class does not limit. */
    void warnOfHiddenMethods() {
        Set<Method> fallbacks = limited.values().stream()
                .flatMap(method -> Stream.ofNullable(method.fallback()))
                .collect(Collectors.toSet());
        boolean controller = Controllers.hasHandlers(type);
        List<String> hidden = BeanTypes.methods(type).stream()
                .filter(method -> method.getDeclaringClass() == type)
                .filter(method -> !limited.containsKey(method) && !fallbacks.contains(method))
                .filter(method -> (method.getModifiers() & (Modifier.PRIVATE | Modifier.STATIC)) == 0)
                .filter(method ->
                        controller ? !Controllers.assistsHandler(method) : !Modifier.isPublic(method.getModifiers()))
                .filter(method -> !Declarations.ofClass(method, type).isEmpty() && !Declarations.isExempt(method))
                .map(Method::getName)
                .distinct()
                .sorted()
                .toList();
        if (!hidden.isEmpty()) {
            LOG.warn("@RateLimited on " + type.getName()
                    + (controller
                            ? " limits the handler methods of the controller only, and not " + hidden + ": annotate"
                            : " limits public methods only, and not " + hidden + ": make them public, annotate")
                    + " them, or exempt them with @RateLimitExempt. [RL-203]");
        }
        List<String> factories = BeanTypes.methods(type).stream()
                .filter(Declarations::makesBean)
                .map(Method::getName)
                .sorted()
                .toList();
        if (limited.isEmpty() && !factories.isEmpty() && Declarations.areOnClass(type)) {
            LOG.warn("@RateLimited on " + type.getName() + " limits no call, because " + factories
                    + " create beans: annotate the methods of the beans. [RL-203]");
        }
    }

    /** Warns of annotations on interfaces and superclasses that do not apply, because others do. */
    void warnOfHiddenAnnotations() {
        BeanTypes.methods(type).stream()
                .flatMap(method -> Declarations.warningsOfHidden(method, type))
                .distinct()
                .sorted()
                .forEach(LOG::warn);
    }

    /** Warns of limited methods that the container calls when it makes or ends the object, which no proxy sees. */
    void warnOfCallbacks() {
        limited.forEach((method, found) -> {
            if (isCallback(method) && !Declarations.of(method, type).get(0).ofClass()) {
                LOG.warn("The container calls " + type.getName() + "." + KotlinNames.of(method)
                        + " on the object itself, which bypasses Spring's proxy: rate limit '"
                        + String.join("', '", limitNames(method))
                        + "' does not limit this call. Let it call a limited method of another bean, or weave"
                        + " (rate-limit.aspect.mode: woven). [RL-204]");
            }
        });
    }

    /**
     * Warns of tools that no model can call: Spring AI makes a public method accessible only if the class of the object is not
     * public, and that of a proxy is.
     */
    void warnOfTools() {
        limited.forEach((method, found) -> {
            if (Modifier.isPublic(method.getModifiers())
                    && !Modifier.isPublic(method.getDeclaringClass().getModifiers())
                    && MergedAnnotations.from(method).isPresent(TOOL)) {
                LOG.warn("Spring AI cannot call " + type.getName() + "." + KotlinNames.of(method)
                        + ", which has the limit '" + String.join("', '", limitNames(method))
                        + "': its class is not public. Make the class public, or weave"
                        + " (rate-limit.aspect.mode: woven). [RL-220]");
            }
        });
    }

    private boolean isCallback(Method method) {
        MergedAnnotations annotations = MergedAnnotations.from(method, SearchStrategy.SUPERCLASS);
        return CALLBACKS.stream().anyMatch(annotations::isPresent)
                || isMethodOf(InitializingBean.class, method)
                || isMethodOf(DisposableBean.class, method);
    }

    private boolean isMethodOf(Class<?> contract, Method method) {
        return contract.isAssignableFrom(type)
                && ClassUtils.hasMethod(contract, method.getName(), method.getParameterTypes());
    }

    /** Warns of limited methods that the object calls on itself. */
    void warnOfSelfCalls() {
        SelfCalls.of(type, limited.keySet()).forEach((caller, callees) -> {
            Set<String> ofCaller = limitNames(caller);
            Map<String, Set<String>> unseen = new TreeMap<>();
            callees.forEach(callee -> {
                Set<String> limits = limitNames(callee);
                limits.removeAll(ofCaller);
                if (!limits.isEmpty()) {
                    unseen.computeIfAbsent(callee.getName(), name -> new TreeSet<>())
                            .addAll(limits);
                }
            });
            Class<?> owner = Proxy.isProxyClass(type) ? caller.getDeclaringClass() : type;
            unseen.forEach(
                    (callee, limits) -> LOG.warn(
                            owner.getName() + "." + caller.getName() + " calls " + callee
                                    + " of the same object, which bypasses Spring's proxy: rate limit '"
                                    + String.join("', '", limits)
                                    + "' does not limit this call. Call it from another bean, or on the"
                                    + " bean that an ObjectProvider of the class returns, or weave (rate-limit.aspect.mode: woven). [RL-201]"));
        });
    }

    private Set<String> limitNames(Method method) {
        LimitedMethod found = limited.get(method);
        Set<String> names = new TreeSet<>();
        if (found != null) {
            found.limits().forEach(limit -> names.add(limit.limit().name()));
        }
        return names;
    }
}
