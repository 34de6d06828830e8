package io.ratelimited.redis.limiter;

/**
 * How one limit uses Redis.
 *
 * @param tier the tier whose budgets these are; empty for the limit itself
 * @param onFailure how calls are decided while Redis is away
 * @param maxOvershoot the share of a period's permits by which the cluster may exceed the limit; 0 for none
 * @param maximumKeys keys remembered in this process at the most
 */
public record LimiterOptions(String tier, FailureMode onFailure, double maxOvershoot, long maximumKeys) {}
