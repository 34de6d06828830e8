package io.ratelimited.spring;

import io.ratelimited.core.PublicApi;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The public API of limits on the Spring Framework. */
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
