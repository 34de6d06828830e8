package io.ratelimited.spring.internals.aop;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.RateLimitExempt;
import io.ratelimited.spring.RateLimited;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.SmartFactoryBean;
import org.springframework.context.annotation.Bean;
import org.springframework.core.BridgeMethodResolver;
import org.springframework.core.ResolvableType;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.annotation.AnnotationConfigurationException;
import org.springframework.core.annotation.MergedAnnotation;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/** Finds the annotations that limit a method. */
public final class Declarations {

    private static final ClassValue<List<MergedAnnotation<RateLimited>>> ON_CLASS = new ClassValue<>() {
        @Override
        protected List<MergedAnnotation<RateLimited>> computeValue(Class<?> type) {
            return nearest(MergedAnnotations.from(type, SearchStrategy.TYPE_HIERARCHY));
        }
    };

    private Declarations() {}

    /**
     * The annotations that limit a method: its own, or else those of methods that it overrides or implements, or else those
     * of its class, which are for public methods, and for the handler methods of a controller.
     *
     * @param method as called, perhaps of an interface
     * @throws InvalidRateLimitException when the method is limited and exempt at once
     */
    public static List<Declaration> of(Method method, Class<?> targetClass) {
        Class<?> userClass = ClassUtils.getUserClass(targetClass);
        Method specific = specific(method, userClass);
        MergedAnnotations found = annotations(specific, userClass);
        List<MergedAnnotation<RateLimited>> own = nearest(found);
        MergedAnnotation<RateLimitExempt> exempt = found.get(RateLimitExempt.class);
        if (exempt.isPresent()) {
            int nearer = own.isEmpty() ? -1 : compareDistance(exempt, own.get(0));
            if (nearer == 0) {
                Declaration limited = all(own, specific, userClass, false).get(0);
                throw new InvalidRateLimitException(
                        KotlinNames.of(specific),
                        limited.place(),
                        "the method has @RateLimited and @RateLimitExempt",
                        "Remove one of the two. [RL-109]");
            }
            if (nearer < 0) {
                return List.of();
            }
        }
        if (!own.isEmpty()) {
            return all(own, specific, userClass, false);
        }
        if (Modifier.isStatic(specific.getModifiers())
                || specific.getDeclaringClass() == Object.class
                || ReflectionUtils.isObjectMethod(specific)) {
            return List.of();
        }
        List<Declaration> ofClass = ofClass(specific, userClass);
        return ofClass.isEmpty() || Controllers.isLimitedByClass(specific, userClass) ? ofClass : List.of();
    }

    /** The method that objects of a class run when one is called; of a generated class that of its interface. */
    public static Method specific(Method method, Class<?> userClass) {
        Method ofKotlin = KotlinOverrides.behind(ClassUtils.getMostSpecificMethod(method, userClass), userClass);
        return ofKotlin == null ? written(AopUtils.getMostSpecificMethod(method, userClass), userClass) : ofKotlin;
    }

    /**
     * The written method behind a bridge, or behind a method of a generated class. Spring takes a bridge of a class for one of
     * the default method of its interface, also where it leads to the superclass that overrides this one.
     */
    static Method written(Method method, Class<?> userClass) {
        if (isGenerated(method.getDeclaringClass())) {
            return ofInterface(method);
        }
        Method ofKotlin = KotlinOverrides.behind(method, userClass);
        if (ofKotlin != null) {
            return ofKotlin;
        }
        Method found = BridgeMethodResolver.findBridgedMethod(method);
        Method own = found.isDefault() && !userClass.isInterface()
                ? ReflectionUtils.findMethod(userClass, found.getName(), found.getParameterTypes())
                : null;
        return own == null || !own.isBridge()
                ? found
                : Stream.of(ReflectionUtils.getAllDeclaredMethods(userClass.getSuperclass()))
                        .filter(inherited -> !inherited.isBridge()
                                && !inherited.getDeclaringClass().isInterface()
                                && implementsFor(userClass, inherited, found))
                        .findFirst()
                        .orElse(found);
    }

    /**
     * Returns whether nobody has written a class: a JDK proxy, such as a client or a repository, or a lambda. Its methods have no
     * type arguments and no names of parameters, and its name means nothing.
     */
    private static boolean isGenerated(Class<?> type) {
        return Proxy.isProxyClass(type) || type.isHidden() || type.isSynthetic();
    }

    /** The method that an interface of a generated class has for one of it: of several, one that the others do not override. */
    private static Method ofInterface(Method generated) {
        Method found = null;
        for (Class<?> type : generated.getDeclaringClass().getInterfaces()) {
            Method declared = ClassUtils.getMethodIfAvailable(type, generated.getName(), generated.getParameterTypes());
            if (declared != null && !Modifier.isStatic(declared.getModifiers())) {
                Method written = written(declared, type);
                found = found == null || overrides(written, found) ? written : found;
            }
        }
        return found == null ? generated : found;
    }

    /** Returns whether an object that has two methods of the same signature runs the first, by its result or its interface. */
    private static boolean overrides(Method one, Method other) {
        return one.getReturnType() == other.getReturnType()
                ? other.getDeclaringClass().isAssignableFrom(one.getDeclaringClass())
                : other.getReturnType().isAssignableFrom(one.getReturnType());
    }

    /**
     * The annotations of a method and of the methods that it overrides or implements. A superclass may implement a method of
     * an interface that only its subclass has, and Kotlin may compile an overriding method to other parameters.
     */
    private static MergedAnnotations annotations(Method method, Class<?> userClass) {
        MergedAnnotations found = MergedAnnotations.from(method, SearchStrategy.TYPE_HIERARCHY);
        return isStated(found)
                ? found
                : ofImplemented(method, userClass)
                        .filter(Declarations::isStated)
                        .findFirst()
                        .orElse(found);
    }

    private static Stream<MergedAnnotations> ofImplemented(Method method, Class<?> userClass) {
        if (!Modifier.isPublic(method.getModifiers()) || Modifier.isStatic(method.getModifiers())) {
            return Stream.empty();
        }
        Stream<Method> inherited = method.getDeclaringClass() == userClass
                ? Stream.empty()
                : ClassUtils.getAllInterfacesForClassAsSet(userClass).stream()
                        .flatMap(type -> Stream.of(type.getMethods()))
                        .filter(declared -> implementsFor(userClass, method, declared));
        return Stream.concat(KotlinOverrides.of(method, userClass), inherited)
                .map(declared -> MergedAnnotations.from(declared, SearchStrategy.TYPE_HIERARCHY));
    }

    /**
     * Warnings of annotations that others hide although they do not override them: of two interfaces without a relation
     * the annotations of the first apply to a method, whether they limit or exempt it.
     */
    public static Stream<String> warningsOfHidden(Method method, Class<?> targetClass) {
        List<Declaration> limits = of(method, targetClass);
        if (!limits.isEmpty()) {
            return limits.stream()
                    .flatMap(limit -> limit.ofClass()
                            ? hidden(
                                    limit.annotation(),
                                    Stream.of(MergedAnnotations.from(limit.owner(), SearchStrategy.TYPE_HIERARCHY)),
                                    limit.owner().getName(),
                                    "class")
                            : hidden(limit.annotation(), limit.method(), limit.owner()));
        }
        Class<?> userClass = ClassUtils.getUserClass(targetClass);
        Method specific = specific(method, userClass);
        MergedAnnotation<RateLimitExempt> exempt =
                annotations(specific, userClass).get(RateLimitExempt.class);
        return exempt.isPresent() ? hidden(exempt, specific, userClass) : Stream.empty();
    }

    private static Stream<String> hidden(MergedAnnotation<?> applied, Method method, Class<?> userClass) {
        Stream<MergedAnnotations> places = Stream.concat(
                Stream.of(MergedAnnotations.from(method, SearchStrategy.TYPE_HIERARCHY)),
                ofImplemented(method, userClass));
        return hidden(applied, places, Declaration.text(method, userClass), "method of the class");
    }

    private static Stream<String> hidden(
            MergedAnnotation<?> applied, Stream<MergedAnnotations> places, String element, String remedy) {
        Class<?> own = type(applied);
        return places.flatMap(
                        found -> Stream.concat(found.stream(RateLimited.class), found.stream(RateLimitExempt.class)))
                .filter(other ->
                        !type(other).isAssignableFrom(own) && !other.asMap().equals(applied.asMap()))
                .map(other -> nameOf(applied) + " on " + element + " is that of " + applied.getSource() + ", and "
                        + nameOf(other) + " of " + other.getSource() + " does not apply. Annotate the "
                        + remedy
                        + " itself.");
    }

    private static String nameOf(MergedAnnotation<?> annotation) {
        return "@" + annotation.getType().getSimpleName();
    }

    /** The class that an annotation stands on, or that declares the method which it stands on. */
    static Class<?> type(MergedAnnotation<?> annotation) {
        return annotation.getSource() instanceof Method annotated
                ? annotated.getDeclaringClass()
                : (Class<?>) Objects.requireNonNull(annotation.getSource());
    }

    private static boolean isStated(MergedAnnotations annotations) {
        return annotations.isPresent(RateLimited.class)
                || annotations.isPresent(RateLimited.List.class)
                || annotations.isPresent(RateLimitExempt.class);
    }

    /** Returns whether objects of a class run a method for a method of an interface of theirs. */
    private static boolean implementsFor(Class<?> userClass, Method method, Method declared) {
        if (!declared.getName().equals(method.getName())
                || declared.getParameterCount() != method.getParameterCount()) {
            return false;
        }
        for (int i = 0; i < method.getParameterCount(); i++) {
            if (ResolvableType.forMethodParameter(declared, i, userClass).toClass()
                    != ResolvableType.forMethodParameter(method, i, userClass).toClass()) {
                return false;
            }
        }
        return true;
    }

    /** The annotations of a class, for one of its methods; none for those by which the container makes beans. */
    public static List<Declaration> ofClass(Method method, Class<?> userClass) {
        List<MergedAnnotation<RateLimited>> found = ON_CLASS.get(userClass);
        return found.isEmpty() || isOfFactoryBean(method, userClass) || makesBean(method)
                ? List.of()
                : all(found, method, userClass, true);
    }

    /** Returns whether a class, or one that it inherits from, has an annotation. */
    public static boolean areOnClass(Class<?> userClass) {
        return !ON_CLASS.get(userClass).isEmpty();
    }

    /** Returns whether the container calls a method to make a bean. */
    public static boolean makesBean(Method method) {
        return AnnotatedElementUtils.hasAnnotation(method, Bean.class);
    }

    /** Returns whether the annotation of its class does not apply to a method. */
    public static boolean isExempt(Method method) {
        return MergedAnnotations.from(method, SearchStrategy.TYPE_HIERARCHY).isPresent(RateLimitExempt.class);
    }

    /**
     * Returns whether the container calls a method of a factory bean, which it does even while it looks for the beans that
     * limits need.
     */
    private static boolean isOfFactoryBean(Method method, Class<?> userClass) {
        return FactoryBean.class.isAssignableFrom(userClass)
                && ClassUtils.hasMethod(SmartFactoryBean.class, method.getName(), method.getParameterTypes());
    }

    private static List<MergedAnnotation<RateLimited>> nearest(MergedAnnotations annotations) {
        List<MergedAnnotation<RateLimited>> all;
        try {
            all = annotations.stream(RateLimited.class).toList();
        } catch (AnnotationConfigurationException ex) {
            String problem = String.valueOf(ex.getMessage()).replaceFirst("\\.$", "");
            throw new InvalidRateLimitException(problem, "Correct the annotation. [RL-109]");
        }
        if (all.size() < 2) {
            return all;
        }
        int nearest = all.get(0).getAggregateIndex();
        List<MergedAnnotation<RateLimited>> near =
                all.stream().filter(a -> a.getAggregateIndex() == nearest).toList();
        List<MergedAnnotation<RateLimited>> found = near.stream()
                .filter(a -> near.stream().noneMatch(other -> isOverridden(a, other)))
                .toList();
        List<MergedAnnotation<RateLimited>> written =
                found.stream().filter(a -> !isOnBridge(a)).toList();
        return written.isEmpty() ? found : written;
    }

    /** Negative if the first is nearer to the method than the second. */
    private static int compareDistance(MergedAnnotation<?> one, MergedAnnotation<?> other) {
        int distance = Integer.compare(one.getAggregateIndex(), other.getAggregateIndex());
        return distance == 0 ? Boolean.compare(isOverridden(one, other), isOverridden(other, one)) : distance;
    }

    /** Spring finds a default method that a superclass overrides as near as the one that overrides it. */
    private static boolean isOverridden(MergedAnnotation<?> one, MergedAnnotation<?> other) {
        return type(one) != type(other) && type(one).isAssignableFrom(type(other));
    }

    /** Returns whether the compiler has copied an annotation to the bridge of its method. */
    private static boolean isOnBridge(MergedAnnotation<?> annotation) {
        return annotation.getSource() instanceof Method method && method.isBridge();
    }

    private static List<Declaration> all(
            List<MergedAnnotation<RateLimited>> annotations, Method method, Class<?> userClass, boolean ofClass) {
        List<Declaration> declarations = new ArrayList<>(annotations.size());
        for (int i = 0; i < annotations.size(); i++) {
            MergedAnnotation<RateLimited> annotation = annotations.get(i);
            declarations.add(new Declaration(annotation, method, owner(annotation, userClass), ofClass, i + 1));
        }
        return declarations;
    }

    /** The class of the target, or its first interface that has the annotation or inherits it, where that class is generated. */
    private static Class<?> owner(MergedAnnotation<RateLimited> annotation, Class<?> userClass) {
        if (!isGenerated(userClass)) {
            return userClass;
        }
        Class<?> annotated = type(annotation);
        return Stream.of(userClass.getInterfaces())
                .filter(annotated::isAssignableFrom)
                .findFirst()
                .orElse(annotated);
    }
}
