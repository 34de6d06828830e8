package io.ratelimited.spring.test;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Gives each test method fresh limits and a manual clock. For tests with a Spring context: {@code @SpringBootTest}, slices
 * such as {@code @WebMvcTest} and {@code @WebFluxTest}, and plain {@code @SpringJUnitConfig}. The limits of the application
 * apply, with these differences:
 *
 * <ul>
 *   <li>Only the test advances the time: {@code @Autowired} {@link io.ratelimited.core.testing.ManualTicker}. A bean of this
 *       type in the configuration of the test replaces that of the annotation.
 *   <li>A waiting call advances the time itself and continues, unless the test calls {@code ticker.autoAdvance(false)}. A
 *       wait for a call in flight ends when that call ends, or after the maximum wait in real time.
 *   <li>Each test method starts with fresh limits as configured, and with the initial time of the wall clock. Calls that
 *       still wait from the previous test are woken. Test methods that share a context run one after the other, also if tests
 *       run in parallel.
 *   <li>Limits are in memory, whatever backend the properties name: no Redis is needed.
 * </ul>
 *
 * Tests with the same value share a cached context with each other, but not with tests without the annotation. {@code
 * @Nested} classes and subclasses inherit it, and it works as a meta-annotation.
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
public @interface AutoConfigureRateLimits {

    /** Whether limits apply, regardless of {@code rate-limit.enabled}. If false, every call is admitted. */
    boolean enabled() default true;
}
