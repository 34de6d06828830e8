package io.ratelimited.spring.config;

import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.limit.RequestThreads;
import io.ratelimited.spring.internals.limit.SettingsSource;
import io.ratelimited.spring.internals.request.ContextRequests;
import io.ratelimited.spring.internals.request.CurrentRequest;
import java.util.Collection;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.context.ApplicationContext;

/** A context that shares the limits of its hierarchy: adds its sources and threads of requests, until it closes. */
final class HierarchyMember implements DisposableBean {

    private final ContextRequests requests;
    private final Collection<CurrentRequest.Source> own;
    private final LimitRegistry registry;
    private final Collection<RequestThreads> threads;

    HierarchyMember(
            ApplicationContext context, LimitRegistry registry, ContextRequests requests, SettingsSource settings) {
        if (context.getBeanNamesForType(LimitRegistry.class).length == 0) {
            requireSameLimits(context, settings);
        }
        this.requests = requests;
        this.own = context.getBeansOfType(CurrentRequest.Source.class).values();
        requests.add(own);
        this.registry = registry;
        this.threads = context.getBeansOfType(RequestThreads.class).values();
        registry.addThreads(threads);
    }

    @Override
    public void destroy() {
        requests.remove(own);
        registry.removeThreads(threads);
    }

    /** Checks the properties of a context whose limits are those of its parent. Routes and answers are those of each context. */
    static void requireSameLimits(ApplicationContext context, SettingsSource settings) {
        ApplicationContext parent = context.getParent();
        if (parent != null && parent.getBeanProvider(LimitRegistry.class).getIfAvailable() != null) {
            settings.requireSame(parent.getEnvironment());
        }
    }
}
