/**
 * Limits in an application of the Spring Framework without Spring Boot: import {@link
 * io.ratelimited.spring.config.RateLimitConfiguration}. The starter for Spring Boot imports it, too.
 */
@NullMarked
package io.ratelimited.spring.config;

import org.jspecify.annotations.NullMarked;
