package io.ratelimited.sample.demo;

import org.springframework.context.annotation.Configuration;
import org.springframework.web.servlet.config.annotation.CorsRegistry;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;

/**
 * Lets the live page call {@code /demo} under several names of this machine (h1.localhost, h2.localhost …): a browser
 * opens six connections to a host, which would hold calls back before any limit does. A script on another origin sees
 * the fields of refusals, and those of other answers only if they are exposed here.
 */
@Configuration
class DemoCors implements WebMvcConfigurer {

    @Override
    public void addCorsMappings(CorsRegistry registry) {
        registry.addMapping("/demo/**")
                .allowedOriginPatterns("http://localhost:[*]", "http://127.0.0.1:[*]")
                .allowedMethods("GET")
                .exposedHeaders("RateLimit", "RateLimit-Policy", "Retry-After");
    }
}
