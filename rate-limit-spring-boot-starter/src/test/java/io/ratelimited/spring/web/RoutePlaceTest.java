package io.ratelimited.spring.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** A route is counted before security, unless it has to know the principal or says otherwise. */
class RoutePlaceTest {

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "routes[0].path=/** | true",
                "routes[0].key=clientIp | true",
                "routes[0].key=session | true",
                "routes[0].order=after-security | false",
                "routes[0].order=before-security | true",
                "routes[0].key=principal | false",
                "routes[0].key=principal?.name ?: clientIp | false",
                "limits.any.key=principal | false",
                "limits.any.tier=principal == null ? 'free' : 'paid' | false",
                "limits.any.when=principal == null | false",
                "routes[0].limits=any,other | false"
            })
    void onlyARouteThatReadsThePrincipalStandsBehindSecurity(String property, boolean before) {
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(RateLimitAutoConfiguration.class))
                .withPropertyValues(
                        "rate-limit.limits.any.rate=1/m",
                        "rate-limit.limits.other.rate=1/m",
                        "rate-limit.limits.other.when=principal != null",
                        "rate-limit.routes[0].path=/api/**",
                        "rate-limit.routes[0].limits=any",
                        "rate-limit." + property)
                .run(context -> assertThat(context.getBean(RouteLimits.class)
                                .routes()
                                .get(0)
                                .isBeforeSecurity())
                        .isEqualTo(before));
    }
}
