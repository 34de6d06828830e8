package io.ratelimited.spring.config;

import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Role;
import org.springframework.core.env.Environment;

/**
 * Limits methods that are annotated with {@link RateLimited}, and declares the beans {@link RateLimits} and {@link
 * RateLimitOperations}: {@code @Import(RateLimitConfiguration.class)} on a configuration class. With the starter for Spring
 * Boot, which imports it, an application need not.
 *
 * <p>Limits are those of annotations and of the properties {@code rate-limit.backend}, {@code rate-limit.defaults} and {@code
 * rate-limit.limits} of the {@link Environment}, which are read once, by their names in kebab case: the names of environment
 * variables are those of Spring Boot. {@code rate-limit.enabled}, {@code rate-limit.memory.maximum-keys}, {@code
 * rate-limit.aspect.order} and {@code rate-limit.aspect.mode} apply, too. Any other property below {@code rate-limit} fails
 * startup with an {@link io.ratelimited.spring.InvalidRateLimitException}, as does a value that is out of range.
 *
 * <p>A bean of the application of type {@link io.ratelimited.core.Ticker}, {@link RateLimits} or {@link RateLimitOperations}
 * takes the place of the one that is declared here. Beans of type {@link io.ratelimited.spring.backend.LimiterFactory} add
 * backends, and those of type {@link io.ratelimited.spring.DecisionObserver} receive decisions.
 *
 * <p>Proxies are made if nothing else in the application makes any. As elsewhere in Spring, a bean whose class implements an
 * interface is then limited in the methods of its interfaces only, unless the application has
 * {@code @EnableAspectJAutoProxy(proxyTargetClass = true)}; what is not limited is logged.
 */
@Configuration(proxyBeanMethods = false)
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@Import({PlainConfiguration.class, LimitBeans.class, DisabledLimitBeans.class})
public final class RateLimitConfiguration {}
