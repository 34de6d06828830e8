/**
 * For the tests of applications: limits on a ticker that the test moves, with fresh budgets for each test method, and
 * assertions for decisions and responses. Start reading at {@link io.ratelimited.spring.test.AutoConfigureRateLimits}.
 * Needs spring-test and AssertJ, which {@code spring-boot-starter-test} brings; nothing of it is loaded in production.
 */
@NullMarked
package io.ratelimited.spring.test;

import org.jspecify.annotations.NullMarked;
