package io.ratelimited.spring.test;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * For tests with a Spring context: {@code @SpringBootTest}, slices such as {@code @WebMvcTest} and {@code @WebFluxTest},
 * and plain {@code @SpringJUnitConfig}. The limits of the application apply, with these differences:
 *
 * <ul>
 *   <li>Time moves only when the test moves it: {@code @Autowired} {@link io.ratelimited.core.testing.ManualTicker}. A bean
 *       of this type in the configuration of the test replaces ours.
 *   <li>A call that waits moves the time itself and goes on, unless the test calls {@code ticker.autoAdvance(false)}. A wait
 *       for a call in flight ends when that call ends, or after the longest wait in real time.
 *   <li>Each test method starts with fresh budgets, with the limits as they are configured, and with the wall clock where
 *       the ticker was constructed; calls that still wait from the test before are woken. Test methods of one context run
 *       one after the other, also where tests run in parallel.
 *   <li>Limits live in memory, whatever backend the properties name: no Redis is needed.
 * </ul>
 *
 * Tests with the same value share a cached context with each other, and never with tests without the annotation. {@code
 * @Nested} classes and subclasses inherit it, and it works as a meta-annotation.
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
public @interface AutoConfigureRateLimits {

    /** Returns whether anything is limited, whatever {@code rate-limit.enabled} says. If false, every call goes. */
    boolean enabled() default true;
}
