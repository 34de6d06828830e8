package io.ratelimited.spring;

import io.ratelimited.core.PublicApi;
import org.junit.jupiter.api.Test;

/** The public API of the starter. */
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
