package io.ratelimited.spring.internals.web.servlet;

import jakarta.servlet.FilterRegistration;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletRequestWrapper;
import jakarta.servlet.http.HttpServletRequest;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.springframework.context.ApplicationContext;
import org.springframework.util.ClassUtils;
import org.springframework.web.context.WebApplicationContext;
import org.springframework.web.filter.ForwardedHeaderFilter;

/** Finds filters of an application that take the address of clients from headers, however they were registered. */
public final class ForwardingFilters {

    private ForwardingFilters() {}

    /** Returns a description of the first; null if there is none. */
    public static @Nullable String of(ApplicationContext context) {
        ServletContext servlets = context instanceof WebApplicationContext web ? web.getServletContext() : null;
        if (servlets != null) {
            for (FilterRegistration filter : servlets.getFilterRegistrations().values()) {
                if (isForwarding(filter.getClassName(), context.getClassLoader())) {
                    return "the filter '" + filter.getName() + "' is a ForwardedHeaderFilter";
                }
            }
        }
        return null;
    }

    private static boolean isForwarding(@Nullable String type, @Nullable ClassLoader loader) {
        try {
            return type != null && ForwardedHeaderFilter.class.isAssignableFrom(ClassUtils.forName(type, loader));
        } catch (ClassNotFoundException | LinkageError ex) {
            return false;
        }
    }

    /** Returns whether such a filter has given a request another address than that of its peer: also one among those of Spring Security. */
    static boolean haveChanged(HttpServletRequest request) {
        ServletRequest inner = request;
        boolean forwarding = false;
        while (inner instanceof ServletRequestWrapper wrapper) {
            forwarding |= wrapper.getClass().getNestHost() == ForwardedHeaderFilter.class;
            inner = wrapper.getRequest();
        }
        return forwarding && !Objects.equals(inner.getRemoteAddr(), request.getRemoteAddr());
    }
}
