package io.ratelimited.spring.internals.aop;

import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.core.PriorityOrdered;
import org.springframework.validation.beanvalidation.MethodValidationPostProcessor;

/**
 * Has arguments of {@code @Validated} beans validated before all other advice of theirs, and so before a limit is asked: an
 * invalid call costs no permit. Sees the processor of Spring, which has an order, before it makes its first proxy.
 *
 * @param wanted false leaves validation where Spring puts it, inside all advice
 */
public record OutermostValidation(boolean wanted) implements BeanPostProcessor, PriorityOrdered {

    @Override
    public int getOrder() {
        return LOWEST_PRECEDENCE;
    }

    @Override
    public Object postProcessBeforeInitialization(Object bean, String name) {
        if (wanted && bean instanceof MethodValidationPostProcessor validation) {
            validation.setBeforeExistingAdvisors(true);
        }
        return bean;
    }
}
