package io.ratelimited.spring.internals.call;

import java.util.List;

/** The limits that every request passes before it reaches a method, where the application has routes. */
public interface EveryRequest {

    List<LimitUse> ofEveryRequest();
}
