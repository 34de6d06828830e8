package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.internals.web.RouteProperties.Order;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A route is counted before security, unless it has to know the principal or says otherwise. */
class RoutePlaceTest {

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "any |  |  |  | true",
                "any | clientIp |  |  | true",
                "any | session |  |  | true",
                "any |  | AFTER_SECURITY |  | false",
                "any |  | BEFORE_SECURITY |  | true",
                "any | principal |  |  | false",
                "any | principal?.name ?: clientIp |  |  | false",
                "any | getPrincipal()?.name |  |  | false",
                "any | {getPrincipal()?.name, clientIp} |  |  | false",
                "any | @environment.getProperty('of.' + getPrincipal()?.getName()) |  |  | false",
                "any | #root.getPrincipal()?.name |  |  | false",
                "any | {ann: 'eu'}[getPrincipal()?.name] |  |  | false",
                "any | header('X-principal') |  |  | true",
                "any |  |  | key=principal | false",
                "any |  |  | tier=principal == null ? 'free' : 'paid' | false",
                "any |  |  | when=principal == null | false",
                "any,other |  |  |  | false"
            })
    void onlyARouteThatReadsThePrincipalStandsBehindSecurity(
            String limits, String key, Order order, String property, boolean before) {
        RouteFilters.limited(
                        new ManualTicker(),
                        "rate-limit.limits.any.rate=1/m",
                        "rate-limit.limits.other.rate=1/m",
                        "rate-limit.limits.other.when=principal != null",
                        "rate-limit.limits.any." + (property == null ? "burst=1" : property))
                .run(context -> assertThat(RouteFilters.routes(
                                        context,
                                        new RouteProperties(
                                                "/api/**", null, null, List.of(limits.split(",")), key, order))
                                .routes()
                                .get(0)
                                .isBeforeSecurity())
                        .isEqualTo(before));
    }
}
