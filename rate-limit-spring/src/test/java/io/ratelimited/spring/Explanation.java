package io.ratelimited.spring;

/**
 * What a user reads when an application does not start.
 *
 * @param getDescription the problem
 * @param getAction the remedy
 */
public record Explanation(String getDescription, String getAction) {

    /** That of a failure of a start. */
    public static Explanation of(Throwable failure) {
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause instanceof InvalidRateLimitException invalid) {
                return new Explanation(invalid.getMessage(), invalid.remedy());
            }
        }
        throw new AssertionError("not explained", failure);
    }
}
