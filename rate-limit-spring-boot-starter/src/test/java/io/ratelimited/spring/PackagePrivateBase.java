package io.ratelimited.spring;

/** A superclass whose limited method no class of another package can override. */
public class PackagePrivateBase {

    @RateLimited(rate = "5/s")
    void call() {}
}
