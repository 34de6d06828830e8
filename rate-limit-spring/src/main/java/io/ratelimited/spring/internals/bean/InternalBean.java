package io.ratelimited.spring.internals.bean;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Role;
import org.springframework.core.annotation.AliasFor;

/**
 * A bean of the library: infrastructure, so Spring does not warn of one that is made together with a post-processor. Its name has a
 * prefix, so that no bean of the application has it.
 */
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
@Bean
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
public @interface InternalBean {

    /** Its name. */
    @AliasFor(annotation = Bean.class, attribute = "name")
    String value();
}
