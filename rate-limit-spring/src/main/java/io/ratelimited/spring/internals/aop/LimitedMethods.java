package io.ratelimited.spring.internals.aop;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.aop.RateLimitAspect.LimitedCall;
import io.ratelimited.spring.internals.call.LimitEnforcer;
import io.ratelimited.spring.internals.call.LimitUse;
import io.ratelimited.spring.internals.expression.CallExpression;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import io.ratelimited.spring.internals.limit.LimitProperty;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.limit.ResolvedLimit;
import io.ratelimited.spring.internals.request.CurrentRequest;
import io.ratelimited.spring.internals.request.ThreadUse;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.SpringProxy;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.core.DefaultParameterNameDiscoverer;
import org.springframework.core.MethodClassKey;
import org.springframework.core.ParameterNameDiscoverer;
import org.springframework.core.ResolvableType;
import org.springframework.util.ClassUtils;
import org.springframework.util.StringValueResolver;

/**
 * Finds the limits on methods, once per method and class of the target. Before the first of them, all limits that
 * annotations of beans define are made, so that a method may name a limit that another one defines. Thread-safe.
 */
public final class LimitedMethods implements RateLimitAspect.LimitedCalls {

    private final LimitRegistry registry;
    private final LimitEnforcer enforcer;
    private final ConfigurableListableBeanFactory beanFactory;
    private final StringValueResolver placeholders;
    private final CurrentRequest.@Nullable Source requests;
    private final ParameterNameDiscoverer names = new DefaultParameterNameDiscoverer();
    private final Map<Class<?>, Map<Method, Found>> cache = new ConcurrentHashMap<>();
    /** Declarations of {@link #declare} on methods that are not resolved yet. */
    private final Map<MethodClassKey, List<Declared>> unresolved = new ConcurrentHashMap<>();

    private final Set<Class<?>> declared = new HashSet<>();
    private boolean begun;

    public LimitedMethods(
            LimitRegistry registry,
            LimitEnforcer enforcer,
            ConfigurableListableBeanFactory beanFactory,
            CurrentRequest.@Nullable Source requests) {
        this.registry = registry;
        this.enforcer = enforcer;
        this.beanFactory = beanFactory;
        this.placeholders = beanFactory::resolveEmbeddedValue;
        this.requests = requests;
    }

    /**
     * The limits on a method.
     *
     * @param method as called, perhaps of an interface
     * @param targetClass class of the called object
     * @return null when there are none
     * @throws InvalidRateLimitException when one is invalid
     */
    public @Nullable LimitedMethod find(Method method, Class<?> targetClass) {
        return found(method, targetClass).limited;
    }

    private Found found(Method method, Class<?> targetClass) {
        Map<Method, Found> methods = cache.get(targetClass);
        if (methods == null) {
            methods = cache.computeIfAbsent(targetClass, type -> new ConcurrentHashMap<>());
        }
        Found found = methods.get(method);
        if (found == null) {
            found = resolve(method, targetClass);
            methods.put(method, found);
        }
        return found;
    }

    /** {@link #find} for a call: of a method whose limits are invalid every call fails. */
    @Override
    public @Nullable LimitedCall limitsOf(Method method, Class<?> targetClass) {
        try {
            return found(method, targetClass).call;
        } catch (InvalidRateLimitException ex) {
            return new InvalidCall(method, ex);
        }
    }

    /**
     * A method whose limits are invalid. A call returns a failed publisher, if the method returns one: Spring asks for those of
     * reactive scheduled methods before the start is checked, and drops the cause of an exception.
     */
    private record InvalidCall(Method method, InvalidRateLimitException failure) implements LimitedCall {

        @Override
        public boolean blocks() {
            return true;
        }

        @Override
        public Object invoke(MethodInvocation call) {
            Object failed = CallKinds.failed(method.getReturnType(), failure);
            if (failed == null) {
                throw failure;
            }
            return failed;
        }
    }

    /** Makes the limits that annotations define of beans whose class is known without making them, the first time it is called. */
    private synchronized void declareKnown() {
        if (!begun) {
            declare(BeanTypes.of(beanFactory).values());
        }
    }

    /** Makes the limits that annotations of classes define, for each class once. */
    public synchronized void declare(Collection<Class<?>> types) {
        begun = true;
        for (Class<?> type : types) {
            if (!declared.add(type)) {
                continue;
            }
            for (Method method : BeanTypes.methods(type)) {
                List<Declared> limits = declared(method, type);
                limits.forEach(Declared::define);
                unresolved.put(new MethodClassKey(method, type), limits);
            }
        }
    }

    private List<Declared> declared(Method method, Class<?> targetClass) {
        return Declarations.of(method, targetClass).stream().map(Declared::new).toList();
    }

    private ConfiguredLimit register(Declaration declaration, String place, Map<LimitProperty, Object> properties) {
        String name = declaration.name(placeholders);
        if (declaration.isNameless(placeholders)) {
            registry.reserveDefaultName(name, place);
        }
        return registry.register(name, place, properties);
    }

    private Found resolve(Method method, Class<?> targetClass) {
        List<Declared> known = unresolved.remove(new MethodClassKey(method, targetClass));
        List<Declared> declarations = known == null ? declared(method, targetClass) : known;
        if (declarations.isEmpty()) {
            return Found.NOTHING;
        }
        declareKnown();
        Method specific = Declarations.specific(method, ClassUtils.getUserClass(targetClass));
        List<LimitUse> limits = new ArrayList<>();
        Set<String> charged = new HashSet<>();
        String fallbackName = null;
        Method fallback = null;
        for (Declared declared : declarations) {
            ConfiguredLimit limit = declared.limit();
            ResolvedLimit resolved = registry.ofUse(limit.name(), declared.place, declared.properties);
            String key = resolved.text(LimitProperty.KEY);
            String named = resolved.text(LimitProperty.FALLBACK);
            Expressions expressions = new Expressions(limit, declared, resolved, specific);
            if (!charged.add(limit.name() + "\n" + key)) {
                throw expressions.invalid(
                        "key",
                        "the method has this limit twice, with the same key",
                        "Remove one of the two, or give it another name or key.");
            }
            limits.add(expressions.limitUse().declaredAt(declared.place));
            if (named != null) {
                if (fallbackName != null && !fallbackName.equals(named)) {
                    throw expressions.invalid(
                            "fallback",
                            "the method has two fallbacks: " + fallbackName + " and " + named,
                            "Name one fallback; it is called for rejections by any limit.");
                }
                fallbackName = named;
                fallback = Fallbacks.find(
                        specific, targetClass, fallbackName, limit.name(), expressions.place("fallback"));
            }
        }
        LimitedMethod limited = new LimitedMethod(
                specific,
                limits,
                declarations.stream().map(declared -> declared.declaration).toList(),
                fallback,
                enforcer,
                requests);
        LimitedCall call = CallKinds.of(limited, targetClass, declarations.get(0).place);
        boolean blocking = call.blocks();
        limits.forEach(limit -> registry.prepare(limit::reads));
        // Not the uses: requests of a parent context know these limits for longer than this context may live.
        List<ConfiguredLimit> used = limits.stream().map(LimitUse::limit).toList();
        used.forEach(limit -> limit.usedBy(blocking));
        if (requests != null && blocking) {
            requests.prepareBlocking(
                    specific,
                    () -> used.stream()
                            .map(ConfiguredLimit::threadUse)
                            .max(Comparator.naturalOrder())
                            .orElse(ThreadUse.NONE));
        }
        boolean proxy = Proxy.isProxyClass(targetClass) || SpringProxy.class.isAssignableFrom(targetClass);
        if (proxy) {
            return new Found(limited, new ProxiedCalls(limited, call));
        }
        boolean behindProxies =
                ClassUtils.getAllInterfacesForClassAsSet(targetClass).stream().anyMatch(LimitedTypes::contains);
        return new Found(limited, behindProxies ? new ProxiedCalls.Behind(limited, call) : call);
    }

    /** A limited method, and the kind of its calls; both null for a method without limits. */
    private record Found(
            @Nullable LimitedMethod limited, @Nullable LimitedCall call) {

        private static final Found NOTHING = new Found(null, null);
    }

    /** An annotation on a method, the values that it sets, and its limit. */
    private final class Declared {

        private final Declaration declaration;
        private final String place;
        private final Map<LimitProperty, Object> properties;
        private @Nullable ConfiguredLimit limit;

        Declared(Declaration declaration) {
            this.declaration = declaration;
            this.place = declaration.place();
            this.properties = declaration.properties(placeholders);
        }

        /** Makes the limit if the annotation defines it, not only uses it. */
        void define() {
            if (!LimitProperty.definition(properties).isEmpty()) {
                limit();
            }
        }

        ConfiguredLimit limit() {
            ConfiguredLimit made = limit == null ? register(declaration, place, properties) : limit;
            limit = made;
            return made;
        }
    }

    /** Makes and checks the expressions of one limit on one method. */
    private final class Expressions {

        private final ConfiguredLimit limit;
        private final @Nullable Method annotated;
        private final Declared declared;
        private final ResolvedLimit use;
        private final Method method;
        private final boolean once;

        Expressions(ConfiguredLimit limit, Declared declared, ResolvedLimit use, Method method) {
            Declaration declaration = declared.declaration;
            this.limit = limit;
            this.annotated = declaration.annotatedMethod();
            this.declared = declared;
            this.use = use;
            this.method = method;
            // Calls in flight are counted one after the other: the first of a request has ended before the next begins.
            this.once = declaration.isOncePerRequest() && !limit.countsInFlight();
        }

        /** Positions of the arguments by the names that expressions may use. */
        private Map<String, Integer> parameters() {
            Map<String, Integer> parameters = new HashMap<>();
            for (int i = 0; i < method.getParameterCount(); i++) {
                parameters.put("a" + i, i);
                parameters.put("p" + i, i);
            }
            addNames(parameters, method);
            // Last, because the expression was written for its names: the method may give them to other parameters.
            if (annotated != null && annotated.getParameterCount() == method.getParameterCount()) {
                addNames(parameters, annotated);
            }
            return parameters;
        }

        private void addNames(Map<String, Integer> parameters, Method named) {
            @Nullable String[] found = names.getParameterNames(named);
            for (int i = 0; found != null && i < found.length; i++) {
                String parameter = found[i];
                if (parameter != null) {
                    parameters.put(parameter, i);
                }
            }
        }

        LimitUse limitUse() {
            String charge = use.text(LimitProperty.CHARGE);
            limit.warnOfTiersWithout(use.text(LimitProperty.TIER), place("tier"));
            CallExpression key = expression("key", use.text(LimitProperty.KEY));
            if (key != null && key.plainParameter() >= 0) {
                Class<?> type = ResolvableType.forMethodParameter(
                                method, key.plainParameter(), declared.declaration.owner())
                        .toClass();
                if (LimitUse.isNeverKey(type)) {
                    throw invalid(
                            "key",
                            key + " is not a key, but an object of " + type,
                            "Use its id, or its toString() if each object has a different text.");
                }
            }
            if (charge != null && limit.countsInFlight()) {
                throw invalid(
                        "charge",
                        "charge is \"" + charge + "\", but " + limit.limit().algorithm()
                                + " counts calls in flight and does not support it",
                        "Remove it, or use an algorithm that counts over time.");
            }
            return LimitUse.of(
                    limit,
                    key,
                    use,
                    place("permits"),
                    place("priority"),
                    this::expression,
                    once ? new LimitUse.Once(limit.name() + "\n" + use.text(LimitProperty.KEY), method) : null);
        }

        private @Nullable CallExpression expression(String attribute, @Nullable String text) {
            if (text == null) {
                return null;
            }
            try {
                return new CallExpression(
                        attribute, limit.name(), text, method, declared.declaration.owner(), parameters(), beanFactory);
            } catch (IllegalArgumentException ex) {
                throw new InvalidRateLimitException(
                        limit.name(),
                        place(attribute),
                        attribute + " " + ex.getMessage(),
                        "Correct the expression. [RL-106]",
                        ex);
            }
        }

        /** The annotation or property that sets an attribute, and the method if that is a property. */
        String place(String attribute) {
            String place = use.place(attribute);
            return place.equals(declared.place) ? place : place + ", used by " + declared.place;
        }

        InvalidRateLimitException invalid(String attribute, String problem, String remedy) {
            return new InvalidRateLimitException(limit.name(), place(attribute), problem, remedy + " [RL-109]");
        }
    }
}
