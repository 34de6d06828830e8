package io.ratelimited.spring.autoconfigure;

import io.ratelimited.core.PublicApi;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The starter promises its auto-configurations by name alone: all of its types are internal. */
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
