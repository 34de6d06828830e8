package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLConnection;
import java.net.URLStreamHandler;
import org.aspectj.lang.ProceedingJoinPoint;
import org.aspectj.lang.annotation.Around;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.springframework.aop.aspectj.AspectJExpressionPointcut;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.support.DefaultListableBeanFactory;

/** What it costs to ask a pointcut about a class, which Spring does for every bean. */
final class PointcutTest {

    @Test
    void aspectAmongProxiesReadsTheFileOfAClassOnceHoweverManyMethodsItHas() throws Exception {
        assertThat(filesRead(RateLimitAspect.class)).isEqualTo(1);
    }

    /** Why it is no aspect among proxies; and that the test above would see it. */
    @Test
    void aspectOfComposedAnnotationsReadsItForEveryMethod() throws Exception {
        assertThat(filesRead(ComposedRateLimitAspect.class)).isGreaterThan(3);
    }

    private static int filesRead(Class<?> aspect) throws Exception {
        ClassFiles loader = new ClassFiles(PointcutTest.class.getClassLoader());
        DefaultListableBeanFactory beans = new DefaultListableBeanFactory();
        beans.setBeanClassLoader(loader);
        AspectJExpressionPointcut pointcut = new AspectJExpressionPointcut();
        pointcut.setBeanFactory(beans);
        pointcut.setExpression(aspect.getMethod("limit", ProceedingJoinPoint.class)
                .getAnnotation(Around.class)
                .value());
        assertThat(AopUtils.canApply(pointcut, Plain.class)).isFalse();
        return loader.read;
    }

    static class Plain {

        public void first() {}

        public void second() {}

        public void third() {}

        public void fourth() {}
    }

    /** Counts how often the file of the class above is read. */
    private static final class ClassFiles extends ClassLoader {

        private int read;

        ClassFiles(ClassLoader parent) {
            super(parent);
        }

        @Override
        public @Nullable URL getResource(String name) {
            URL file = super.getResource(name);
            if (file == null || !name.endsWith("PointcutTest$Plain.class")) {
                return file;
            }
            try {
                return new URL(file, "", new URLStreamHandler() {
                    @Override
                    protected URLConnection openConnection(URL url) throws IOException {
                        read++;
                        return file.openConnection();
                    }
                });
            } catch (MalformedURLException ex) {
                throw new IllegalStateException(ex);
            }
        }
    }
}
