package io.ratelimited.core;

import org.junit.jupiter.api.Test;

/** The public API of the core. */
class PublicApiTest {

    @Test
    void itIsTheReviewedOne() throws Exception {
        PublicApi.requireReviewed();
    }

    @Test
    void theSamePackagesAreInternalForEveryTool() throws Exception {
        PublicApi.requireSameInternalPackages();
    }
}
