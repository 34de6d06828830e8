package io.ratelimited.spring.test;

import io.ratelimited.core.PublicApi;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The public API of the module for tests. */
@Tag("once")
class PublicApiTest {

    @Test
    void itIsTheReviewedOne() throws Exception {
        PublicApi.requireReviewed();
    }
}
