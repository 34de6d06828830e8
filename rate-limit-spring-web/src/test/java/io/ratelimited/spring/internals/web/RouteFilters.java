package io.ratelimited.spring.internals.web;

import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.RunContext;
import io.ratelimited.spring.fields.HeaderStyle;
import io.ratelimited.spring.internals.call.LimitEnforcer;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.web.reactive.RateLimitWebFilter;
import io.ratelimited.spring.internals.web.reactive.ReactiveCors;
import io.ratelimited.spring.internals.web.reactive.ReactiveRequests;
import io.ratelimited.spring.internals.web.reactive.ReactiveVersions;
import io.ratelimited.spring.internals.web.servlet.RateLimitFilter;
import io.ratelimited.spring.internals.web.servlet.ServletCors;
import io.ratelimited.spring.internals.web.servlet.ServletRejections;
import io.ratelimited.spring.internals.web.servlet.ServletRequests;
import io.ratelimited.spring.internals.web.servlet.ServletVersions;
import java.util.List;
import java.util.stream.Stream;

/** The filters of both stacks as an application has them, with one route for every path. */
final class RouteFilters {

    private RouteFilters() {}

    static ContextRunner limited(ManualTicker ticker, String... properties) {
        return ContextRunner.limited(ticker).withPropertyValues(properties);
    }

    static RouteLimits routes(RunContext context, RouteProperties... routes) {
        return RouteLimits.of(
                List.of(routes),
                context.getBean(LimitRegistry.class),
                context.getBean(LimitEnforcer.class),
                context.getBeanFactory());
    }

    private static RouteLimits everyPath(RunContext context, String... limits) {
        return routes(context, new RouteProperties("/**", null, null, List.of(limits), null, null));
    }

    private static LimitHeaders.Style style(RunContext context) {
        return new LimitHeaders.Style(HeaderStyle.STANDARD, context.getBean(Ticker.class));
    }

    static RateLimitFilter servlet(RunContext context, String... limits) {
        RouteLimits routes = everyPath(context, limits);
        ServletRequests requests = new ServletRequests(ClientAddress.of(64, null), null, style(context));
        ServletVersions versions = new ServletVersions(() -> null);
        ServletCors cors = new ServletCors(Stream::empty, requests.style());
        ServletRejections refusals = new ServletRejections(
                429,
                requests,
                context.getBean(LimitRegistry.class),
                new Problems(context, Object::toString),
                cors,
                new InvalidCallLog(context.getBean(Ticker.class)),
                () -> null);
        return new RateLimitFilter(
                true,
                RouteLimits.BEFORE_SECURITY,
                new RoutePatterns(routes, List::of, versions),
                routes,
                requests,
                refusals,
                cors,
                versions);
    }

    static RateLimitWebFilter reactive(RunContext context, String... limits) {
        RouteLimits routes = everyPath(context, limits);
        ReactiveRequests requests = new ReactiveRequests(ClientAddress.of(64, null), null, style(context));
        requests.prepare(word -> false);
        ReactiveVersions versions = new ReactiveVersions(() -> null);
        return new RateLimitWebFilter(
                RouteLimits.BEFORE_SECURITY,
                new RoutePatterns(routes, List::of, versions),
                routes,
                requests,
                new ReactiveCors(Stream::empty, () -> {
                    throw new IllegalStateException("no dispatcher");
                }),
                versions,
                served -> false);
    }
}
