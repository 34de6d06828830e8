package io.ratelimited.core.circle.right;

import io.ratelimited.core.circle.left.Left;

/** Half of a circle that the rules must find. */
public record Right(Left other) {}
