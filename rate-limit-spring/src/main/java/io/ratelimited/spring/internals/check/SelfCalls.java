package io.ratelimited.spring.internals.check;

import io.ratelimited.spring.internals.text.LogText;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.asm.ClassReader;
import org.springframework.asm.ClassVisitor;
import org.springframework.asm.Handle;
import org.springframework.asm.MethodVisitor;
import org.springframework.asm.Opcodes;
import org.springframework.asm.SpringAsmInfo;
import org.springframework.asm.Type;
import org.springframework.util.ClassUtils;

/**
 * Finds the methods of a class that call certain other methods of their own object, by reading class files: in their
 * own body, or in the lambdas, inner classes and coroutines that they make. A body that handles another object of its
 * class, such as a proxy injected into it, may call that one and is not reported.
 */
final class SelfCalls {

    private static final LogText.Lines LOG = LogText.lines(SelfCalls.class);

    private SelfCalls() {}

    /** The wanted methods that each method of the class or of a superclass calls on its own object. */
    static Map<Method, Set<Method>> of(Class<?> type, Collection<Method> wanted) {
        Map<String, Method> wantedBySignature = new HashMap<>();
        wanted.forEach(method -> wantedBySignature.put(signature(method), method));
        Map<Method, Set<Method>> calls = new LinkedHashMap<>();
        bodies(type).forEach((declaring, methods) -> {
            Reader reader = read(declaring, wantedBySignature.keySet());
            for (Method method : methods) {
                for (String callee : reader.calleesOf(signature(method))) {
                    Method found = wantedBySignature.get(callee);
                    if (found != null && !found.equals(method)) {
                        calls.computeIfAbsent(method, m -> new LinkedHashSet<>())
                                .add(found);
                    }
                }
            }
        });
        return calls;
    }

    /** The methods that an object of a class has: of the class and its superclasses, and default methods of interfaces. */
    private static Map<Class<?>, Set<Method>> bodies(Class<?> type) {
        Map<Class<?>, Set<Method>> bodies = new LinkedHashMap<>();
        for (Class<?> c = type; hasBodies(c); c = c.getSuperclass()) {
            Stream.of(c.getDeclaredMethods())
                    .filter(method -> !method.isSynthetic())
                    .forEach(method -> add(method, bodies));
        }
        // A proxy has every method itself, and hands on a default one to its interface.
        Stream<Class<?>> callable =
                Proxy.isProxyClass(type) ? Stream.of(type.getInterfaces()) : Stream.<Class<?>>of(type);
        callable.flatMap(c -> Stream.of(c.getMethods()))
                .filter(method -> method.isDefault() && !method.isSynthetic())
                .forEach(method -> add(method, bodies));
        return bodies;
    }

    private static void add(Method method, Map<Class<?>, Set<Method>> bodies) {
        bodies.computeIfAbsent(method.getDeclaringClass(), c -> new LinkedHashSet<>())
                .add(method);
    }

    private static boolean hasBodies(@Nullable Class<?> type) {
        return type != null && type != Object.class && !type.isInterface();
    }

    private static Reader read(Class<?> type, Set<String> wanted) {
        Reader reader = new Reader(type, types(type), wanted);
        reader.read(Type.getInternalName(type));
        return reader;
    }

    /** The names of a class and its superclasses, or of an interface and those that it extends, in class files. */
    private static Set<String> types(Class<?> type) {
        Set<String> names = new HashSet<>();
        if (type.isInterface()) {
            names.add(Type.getInternalName(type));
            Stream.of(type.getInterfaces()).forEach(extended -> names.addAll(types(extended)));
        }
        for (Class<?> c = type; hasBodies(c); c = c.getSuperclass()) {
            names.add(Type.getInternalName(c));
        }
        return names;
    }

    private static String signature(Method method) {
        return method.getName() + Type.getMethodDescriptor(method);
    }

    /** Reads one class, and its inner classes when methods make them. */
    private static final class Reader extends ClassVisitor {

        private final Class<?> type;
        private final Set<String> own;
        private final Set<String> wanted;
        /** The methods that each method calls, and that each inner class calls in any of its methods. */
        private final Map<String, Set<String>> calls = new HashMap<>();

        private String reading = "";

        /** @param own the class and its superclasses, or the interface and those that it extends */
        Reader(Class<?> type, Set<String> own, Set<String> wanted) {
            super(SpringAsmInfo.ASM_VERSION);
            this.type = type;
            this.own = own;
            this.wanted = wanted;
        }

        void read(String name) {
            reading = name;
            try (InputStream file = type.getResourceAsStream("/" + name + ClassUtils.CLASS_FILE_SUFFIX)) {
                if (file != null) {
                    new ClassReader(file).accept(this, ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES);
                }
            } catch (IOException | IllegalArgumentException ex) {
                LOG.debug("The class file of " + name + " cannot be read", ex);
            }
        }

        /** The wanted methods that a method calls, itself and through its parts. */
        Set<String> calleesOf(String method) {
            Set<String> reached = new LinkedHashSet<>();
            collect(method, reached);
            reached.retainAll(wanted);
            return reached;
        }

        private void collect(String method, Set<String> reached) {
            for (String callee : calls.getOrDefault(method, Set.of())) {
                if (reached.add(callee) && isPart(callee)) {
                    if (isInner(callee) && calls.putIfAbsent(callee, new LinkedHashSet<>()) == null) {
                        read(callee);
                    }
                    collect(callee, reached);
                }
            }
        }

        /**
         * Returns whether the compiler has made a method or class of a part of a method: a lambda, a coroutine, an inner
         * class.
         */
        private boolean isPart(String callee) {
            return callee.startsWith("lambda$") || isStaticPart(callee) || isInner(callee);
        }

        /** Returns whether Kotlin has made a static method, whose first parameter is the object. */
        private static boolean isStaticPart(String method) {
            return method.contains("$lambda$") || method.contains("$suspendImpl(");
        }

        private boolean isInner(String name) {
            return !own.contains(name) && own.stream().anyMatch(outer -> name.startsWith(outer + "$"));
        }

        @Override
        public @Nullable MethodVisitor visitMethod(
                int access,
                String name,
                String descriptor,
                @Nullable String signature,
                String @Nullable [] exceptions) {
            if (!isInner(reading)) {
                return new Body(name + descriptor);
            }
            return name.equals("<init>") ? null : new Body(reading, descriptor);
        }

        /** Reads one method. */
        private final class Body extends MethodVisitor {

            private final String method;
            private final Set<String> called = new LinkedHashSet<>();
            /** Whether the method handles a value of the class, which may be another object. */
            private boolean handlesOthers;
            /** Whether the last field was one in which a coroutine keeps a variable while it is suspended. */
            private boolean resumes;

            /** @param method with its descriptor */
            Body(String method) {
                this(method, method.substring(method.indexOf('(')));
            }

            /** @param method or inner class that calls */
            Body(String method, String descriptor) {
                super(SpringAsmInfo.ASM_VERSION);
                this.method = method;
                Stream.of(Type.getArgumentTypes(descriptor))
                        .skip(isStaticPart(method) ? 1 : 0)
                        .forEach(this::noteValue);
            }

            private void noteValue(Type type) {
                handlesOthers |= type.getSort() == Type.OBJECT && own.contains(type.getInternalName());
            }

            @Override
            public void visitFieldInsn(int opcode, String fieldOwner, String name, String descriptor) {
                resumes = opcode == Opcodes.GETFIELD && name.startsWith("L$");
                if (!name.startsWith("this$")) {
                    noteValue(Type.getType(descriptor));
                }
            }

            @Override
            public void visitTypeInsn(int opcode, String type) {
                if (opcode == Opcodes.NEW && isInner(type)) {
                    called.add(type);
                } else if (!resumes) {
                    noteValue(Type.getObjectType(type));
                }
                resumes = false;
            }

            @Override
            public void visitMethodInsn(int opcode, String callOwner, String name, String descriptor, boolean itf) {
                resumes = false;
                noteValue(Type.getReturnType(descriptor));
                boolean onObject = opcode == Opcodes.INVOKEVIRTUAL || opcode == Opcodes.INVOKEINTERFACE;
                if (own.contains(callOwner) && (onObject || isStaticPart(name + descriptor))) {
                    called.add(name + descriptor);
                }
            }

            @Override
            public void visitInvokeDynamicInsn(String name, String descriptor, Handle bootstrap, Object... arguments) {
                for (Object argument : arguments) {
                    if (argument instanceof Handle handle && own.contains(handle.getOwner())) {
                        called.add(handle.getName() + handle.getDesc());
                    }
                }
            }

            @Override
            public void visitEnd() {
                if (handlesOthers) {
                    called.removeIf(callee -> !isPart(callee));
                }
                calls.computeIfAbsent(method, m -> new LinkedHashSet<>()).addAll(called);
            }
        }
    }
}
