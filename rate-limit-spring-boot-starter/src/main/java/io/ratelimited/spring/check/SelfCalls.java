package io.ratelimited.spring.check;

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
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
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
 * Finds the methods of a class that call certain other methods of their own object, by reading class files. A method
 * that handles another object of its class, such as a proxy injected into it, may call that one and is not reported.
 */
final class SelfCalls {

    private static final Log LOG = LogFactory.getLog(SelfCalls.class);

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
        Reader reader = new Reader(types(type), wanted);
        try (InputStream file = type.getResourceAsStream(ClassUtils.getClassFileName(type))) {
            if (file != null) {
                new ClassReader(file).accept(reader, ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES);
            }
        } catch (IOException | IllegalArgumentException ex) {
            LOG.debug("The class file of " + type.getName() + " cannot be read", ex);
        }
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

    /** Reads one class. What a lambda calls counts as called by the method that makes the lambda. */
    private static final class Reader extends ClassVisitor {

        private final Set<String> own;
        private final Set<String> wanted;
        private final Map<String, Set<String>> calls = new HashMap<>();

        /** @param own the class and its superclasses, or the interface and those that it extends */
        Reader(Set<String> own, Set<String> wanted) {
            super(SpringAsmInfo.ASM_VERSION);
            this.own = own;
            this.wanted = wanted;
        }

        /** The wanted methods that a method calls, itself and through lambdas. */
        Set<String> calleesOf(String method) {
            Set<String> reached = new LinkedHashSet<>();
            collect(method, reached);
            reached.retainAll(wanted);
            return reached;
        }

        private void collect(String method, Set<String> reached) {
            for (String callee : calls.getOrDefault(method, Set.of())) {
                if (reached.add(callee) && callee.startsWith("lambda$")) {
                    collect(callee, reached);
                }
            }
        }

        @Override
        public MethodVisitor visitMethod(
                int access,
                String name,
                String descriptor,
                @Nullable String signature,
                String @Nullable [] exceptions) {
            return new Body(name + descriptor);
        }

        /** Reads one method. */
        private final class Body extends MethodVisitor {

            private final String method;
            private final Set<String> called = new LinkedHashSet<>();
            /** Whether the method handles a value of the class, which may be another object. */
            private boolean handlesOthers;

            Body(String method) {
                super(SpringAsmInfo.ASM_VERSION);
                this.method = method;
                for (Type parameter : Type.getArgumentTypes(method.substring(method.indexOf('(')))) {
                    noteValue(parameter);
                }
            }

            private void noteValue(Type type) {
                handlesOthers |= type.getSort() == Type.OBJECT && own.contains(type.getInternalName());
            }

            @Override
            public void visitFieldInsn(int opcode, String fieldOwner, String name, String descriptor) {
                noteValue(Type.getType(descriptor));
            }

            @Override
            public void visitTypeInsn(int opcode, String type) {
                noteValue(Type.getObjectType(type));
            }

            @Override
            public void visitMethodInsn(int opcode, String callOwner, String name, String descriptor, boolean itf) {
                noteValue(Type.getReturnType(descriptor));
                boolean onObject = opcode == Opcodes.INVOKEVIRTUAL || opcode == Opcodes.INVOKEINTERFACE;
                if (onObject && own.contains(callOwner)) {
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
                    called.removeIf(callee -> !callee.startsWith("lambda$"));
                }
                calls.put(method, called);
            }
        }
    }
}
