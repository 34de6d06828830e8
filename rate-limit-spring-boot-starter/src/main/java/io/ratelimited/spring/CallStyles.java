package io.ratelimited.spring;

import java.lang.reflect.Method;

/** How calls are made, by the return type of the method. */
final class CallStyles {

    /** The style of a method. */
    LimitedMethod.CallStyle of(Method method) {
        return LimitedMethod::invokeBlocking;
    }
}
