package com.example;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.cache.CacheManager;
import org.springframework.cache.annotation.EnableCaching;
import org.springframework.cache.concurrent.ConcurrentMapCacheManager;
import org.springframework.context.ConfigurableApplicationContext;

class CacheTest {

    @Test
    void theCacheOfTheApplicationIsTheMapThatItIsWithoutLimits() {
        try (ConfigurableApplicationContext own = new SpringApplicationBuilder(Own.class, Cached.class)
                .web(WebApplicationType.NONE)
                .run()) {
            assertThat(own.getBean(CacheManager.class)).isInstanceOf(ConcurrentMapCacheManager.class);
        }
    }

    @EnableCaching
    static class Cached {}
}
