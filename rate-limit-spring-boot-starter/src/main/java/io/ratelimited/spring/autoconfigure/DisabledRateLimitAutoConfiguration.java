package io.ratelimited.spring.autoconfigure;

import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.config.RateLimitConfiguration;
import io.ratelimited.spring.internals.boot.OnEnabledCondition;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Role;

/**
 * Applies when {@code rate-limit.enabled} is false: no method is limited, and the {@link RateLimits} bean, which
 * code depends on, admits every call. Operators see and change the limits of the properties.
 */
@AutoConfiguration
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@Conditional(OnEnabledCondition.Not.class)
@EnableConfigurationProperties(RateLimitProperties.class)
@Import({PropertyNames.class, BoundSettingsConfiguration.class, RateLimitConfiguration.class})
public final class DisabledRateLimitAutoConfiguration {}
