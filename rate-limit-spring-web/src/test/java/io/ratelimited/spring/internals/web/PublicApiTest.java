package io.ratelimited.spring.internals.web;

import io.ratelimited.core.PublicApi;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** This module promises nothing to applications: all of it is internal. */
@Tag("once")
class PublicApiTest {

    @Test
    void itIsTheReviewedOne() throws Exception {
        PublicApi.requireReviewed();
    }

    @Test
    void theSamePackagesAreInternalForEveryTool() throws Exception {
        PublicApi.requireSameInternalPackages();
        PublicApi.requireInternalByName();
    }
}
