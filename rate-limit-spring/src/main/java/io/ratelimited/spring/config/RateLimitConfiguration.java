package io.ratelimited.spring.config;

import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.bean.InternalConfiguration;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.Environment;

/**
 * Limits methods that are annotated with {@link RateLimited}, and declares the beans {@link RateLimits} and {@link
 * RateLimitOperations}: {@code @Import(RateLimitConfiguration.class)} on a configuration class. The starter for Spring Boot
 * imports it automatically.
 *
 * <p>Limits are defined by annotations, and by the properties {@code rate-limit.backend}, {@code rate-limit.defaults} and
 * {@code rate-limit.limits} of the {@link Environment}. These are read once, by their names in kebab case; environment
 * variables with other names need Spring Boot. {@code rate-limit.enabled}, {@code rate-limit.memory.maximum-keys}, {@code
 * rate-limit.aspect.order} and {@code rate-limit.aspect.mode} apply, too. An unknown property of a limit or of the defaults,
 * a property below {@code rate-limit.routes} or {@code rate-limit.clients}, and a value that is out of range fail startup with
 * an {@link io.ratelimited.spring.InvalidRateLimitException}. Startup logs a warning for any other property below {@code
 * rate-limit}.
 *
 * <p>A bean of the application of type {@link io.ratelimited.core.Ticker}, {@link RateLimits} or {@link RateLimitOperations}
 * replaces the one that is declared here. Beans of type {@link io.ratelimited.spring.backend.LimiterFactory} add backends,
 * and those of type {@link io.ratelimited.spring.DecisionObserver} receive decisions.
 *
 * <p>Proxies are created, unless the application already creates them. As usual in Spring, a bean whose class implements an
 * interface is then only limited in the methods of its interfaces, unless the application has {@code
 * @EnableAspectJAutoProxy(proxyTargetClass = true)}. Methods that are not limited are logged.
 */
@InternalConfiguration
@Import({PlainConfiguration.class, LimitBeans.class, DisabledLimitBeans.class})
public final class RateLimitConfiguration {}
