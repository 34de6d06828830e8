package io.ratelimited.spring.config;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.Map;
import java.util.Objects;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.ConfigurationCondition;
import org.springframework.core.type.AnnotatedTypeMetadata;

/** Matches where no bean of a type is declared so far. */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@Conditional(ConditionalOnNone.OnNone.class)
@interface ConditionalOnNone {

    /** The type of the bean. */
    Class<?> value();

    /** Whether beans of the contexts above count, too. */
    boolean inHierarchy() default true;

    /** Looks at the declarations. */
    final class OnNone implements ConfigurationCondition {

        @Override
        public ConfigurationPhase getConfigurationPhase() {
            return ConfigurationPhase.REGISTER_BEAN;
        }

        @Override
        public boolean matches(ConditionContext context, AnnotatedTypeMetadata metadata) {
            Map<String, Object> attributes =
                    Objects.requireNonNull(metadata.getAnnotationAttributes(ConditionalOnNone.class.getName()));
            Class<?> type = (Class<?>) Objects.requireNonNull(attributes.get("value"));
            ConfigurableListableBeanFactory beans = Objects.requireNonNull(context.getBeanFactory());
            String[] names = Boolean.TRUE.equals(attributes.get("inHierarchy"))
                    ? BeanFactoryUtils.beanNamesForTypeIncludingAncestors(beans, type, true, false)
                    : beans.getBeanNamesForType(type, true, false);
            return names.length == 0;
        }
    }
}
