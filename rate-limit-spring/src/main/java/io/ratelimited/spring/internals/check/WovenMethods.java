package io.ratelimited.spring.internals.check;

import io.ratelimited.spring.internals.aop.ComposedRateLimitAspect;
import io.ratelimited.spring.internals.aop.RateLimitAdvisor;
import io.ratelimited.spring.internals.aop.RateLimitAspect;
import io.ratelimited.spring.internals.text.LogText;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.asm.ClassReader;
import org.springframework.asm.ClassVisitor;
import org.springframework.asm.MethodVisitor;
import org.springframework.asm.SpringAsmInfo;
import org.springframework.asm.Type;
import org.springframework.util.ClassUtils;
import org.springframework.util.ResourceUtils;
import org.springframework.util.StringUtils;

/**
 * Finds the methods into which an aspect of limits is woven. For any aspect, AspectJ moves the body of a method into another
 * one, so that alone is no evidence:
 *
 * <ul>
 *   <li>In code that was woven at compile time, the class file calls the aspect of limits.
 *   <li>Code that was woven at load time cannot be read. The loaded class has more moved bodies than the class file, and
 *       the configuration of the weaver names the aspect of limits.
 * </ul>
 */
final class WovenMethods {

    private static final LogText.Lines LOG = LogText.lines(WovenMethods.class);

    /** AspectJ's own property and defaults. */
    private static final String CONFIGURATION = "org.aspectj.weaver.loadtime.configuration";

    private static final String DEFAULT_CONFIGURATION = "META-INF/aop.xml;META-INF/aop-ajc.xml;org/aspectj/aop.xml";

    private static final Pattern COMMENT = Pattern.compile("<!--.*?-->", Pattern.DOTALL);
    private static final Pattern ASPECT = Pattern.compile("<aspect\\s[^>]*?\\bname\\s*=\\s*[\"']\\s*([\\w.$]+)");

    private static final Set<String> ASPECTS =
            Set.of(Type.getInternalName(RateLimitAspect.class), Type.getInternalName(ComposedRateLimitAspect.class));

    private final Map<Class<?>, ClassFile> files = new ConcurrentHashMap<>();

    /** Returns whether a method that an aspect of limits matches calls it. */
    boolean contains(Method method) {
        Class<?> type = method.getDeclaringClass();
        ClassFile file = files.computeIfAbsent(type, ClassFile::of);
        Predicate<String> isMovedBody = movedBodies(method);
        if (file.limited.contains(signature(method)) || file.limited.stream().anyMatch(isMovedBody)) {
            return true;
        }
        long loaded = Stream.of(type.getDeclaredMethods())
                .map(WovenMethods::signature)
                .filter(isMovedBody)
                .count();
        return loaded > file.methods.stream().filter(isMovedBody).count()
                && (file.methods.isEmpty()
                        || file.loadTimeAspects.contains(
                                RateLimitAdvisor.aspectOf(method).getName()));
    }

    /** Matches the body of a method that AspectJ has moved: a static method, whose first parameter is the object. */
    private static Predicate<String> movedBodies(Method method) {
        String parameters = Stream.concat(
                        Modifier.isStatic(method.getModifiers())
                                ? Stream.empty()
                                : Stream.of(method.getDeclaringClass()),
                        Stream.of(method.getParameterTypes()))
                .map(Type::getDescriptor)
                .collect(Collectors.joining());
        return Pattern.compile(Pattern.quote(method.getName() + "_aroundBody") + "\\d+"
                        + Pattern.quote("(" + parameters) + "(Lorg/aspectj/lang/JoinPoint;)?\\).*")
                .asMatchPredicate();
    }

    private static String signature(Method method) {
        return method.getName() + Type.getMethodDescriptor(method);
    }

    /** The names of the aspects that the agent of AspectJ weaves into the classes of a loader. */
    private static Set<String> loadTimeAspects(@Nullable ClassLoader loader) {
        Set<String> aspects = new HashSet<>();
        ClassLoader own = loader == null ? ClassLoader.getSystemClassLoader() : loader;
        String names = System.getProperty(CONFIGURATION, DEFAULT_CONFIGURATION);
        for (String name : StringUtils.tokenizeToStringArray(names, ";")) {
            try {
                List<URL> found = name.startsWith("file:")
                        ? List.of(ResourceUtils.toURL(name))
                        : Collections.list(own.getResources(name));
                for (URL configuration : found) {
                    aspects.addAll(aspects(configuration));
                }
            } catch (IOException ex) {
                LOG.debug("The configuration " + name + " of the weaver cannot be read", ex);
            }
        }
        return aspects;
    }

    private static List<String> aspects(URL configuration) throws IOException {
        try (InputStream file = configuration.openStream()) {
            String text = new String(file.readAllBytes(), StandardCharsets.UTF_8);
            List<String> aspects = new ArrayList<>();
            Matcher aspect = ASPECT.matcher(COMMENT.matcher(text).replaceAll(""));
            while (aspect.find()) {
                aspects.add(aspect.group(1));
            }
            return aspects;
        }
    }

    /** What the compiler and the weaver have left of a class. */
    private static final class ClassFile extends ClassVisitor {

        private final Set<String> methods = new HashSet<>();
        /** Those that call an aspect of limits. */
        private final Set<String> limited = new HashSet<>();

        private final Set<String> loadTimeAspects;

        private ClassFile(Set<String> loadTimeAspects) {
            super(SpringAsmInfo.ASM_VERSION);
            this.loadTimeAspects = loadTimeAspects;
        }

        /** Reads the file of a class. If it cannot be read, moved bodies are the only evidence. */
        static ClassFile of(Class<?> type) {
            ClassFile read = new ClassFile(loadTimeAspects(type.getClassLoader()));
            try (InputStream file = type.getResourceAsStream(ClassUtils.getClassFileName(type))) {
                if (file != null) {
                    new ClassReader(file).accept(read, ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES);
                }
            } catch (IOException | IllegalArgumentException ex) {
                LOG.debug("The class file of " + type.getName() + " cannot be read", ex);
            }
            return read;
        }

        @Override
        public MethodVisitor visitMethod(
                int access,
                String name,
                String descriptor,
                @Nullable String signature,
                String @Nullable [] exceptions) {
            String method = name + descriptor;
            methods.add(method);
            return new MethodVisitor(SpringAsmInfo.ASM_VERSION) {
                @Override
                public void visitMethodInsn(int opcode, String owner, String called, String type, boolean itf) {
                    if (called.equals("aspectOf") && ASPECTS.contains(owner)) {
                        limited.add(method);
                    }
                }
            };
        }
    }
}
