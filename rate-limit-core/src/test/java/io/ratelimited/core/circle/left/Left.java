package io.ratelimited.core.circle.left;

import io.ratelimited.core.circle.right.Right;

/** Half of a circle that the rules must find. */
public record Left(Right other) {}
