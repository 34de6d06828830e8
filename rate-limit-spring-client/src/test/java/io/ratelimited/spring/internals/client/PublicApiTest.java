package io.ratelimited.spring.internals.client;

import io.ratelimited.core.PublicApi;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** What this module promises to applications. */
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
