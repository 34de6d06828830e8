package io.ratelimited.spring.actuate;

import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * Properties under {@code rate-limit.actuator}.
 *
 * @param maskKeys Whether the endpoint shows stand-ins instead of keys, which may be credentials or personal data.
 */
@ConfigurationProperties("rate-limit.actuator")
record RateLimitActuatorProperties(@DefaultValue("true") boolean maskKeys) {}
