package io.ratelimited.spring;

/** A superclass whose limited method no class of another package can override. */
public class PackagePrivateBase {

    @RateLimited(rate = "5/s")
    void call() {}

    /** Overrides it where that can be done. */
    public static class Overriding extends PackagePrivateBase {

        @Override
        @RateLimitExempt
        void call() {}
    }
}
