package io.ratelimited.spring.actuate;

import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.internals.boot.OnEnabledCondition;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.actuate.audit.listener.AuditApplicationEvent;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Role;

/** Wires the audit events of changes, where Spring Boot has such events. */
@AutoConfiguration(after = RateLimitAutoConfiguration.class)
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@ConditionalOnClass(AuditApplicationEvent.class)
@Conditional(OnEnabledCondition.class)
@ConditionalOnBean(RateLimits.class)
public final class RateLimitAuditAutoConfiguration {

    @InternalBean("io.ratelimited.rateLimitAudit")
    RateLimitAudit rateLimitAudit(ApplicationEventPublisher events) {
        return new RateLimitAudit(events);
    }
}
