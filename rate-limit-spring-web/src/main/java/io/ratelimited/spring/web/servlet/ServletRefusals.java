package io.ratelimited.spring.web.servlet;

import io.ratelimited.spring.limit.LimitRegistry;
import io.ratelimited.spring.web.InvalidPermitsLog;
import io.ratelimited.spring.web.Refusal;
import io.ratelimited.spring.web.RefusalHandlers;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.core.Ordered;
import org.springframework.http.HttpHeaders;
import org.springframework.util.function.SingletonSupplier;
import org.springframework.web.method.HandlerMethod;
import org.springframework.web.servlet.HandlerExceptionResolver;
import org.springframework.web.servlet.ModelAndView;

/**
 * Answers refusals: before the application's handlers of exceptions, unless one of them is made for refusals; and behind
 * them, where that has not answered either.
 */
public final class ServletRefusals {

    /** Before Spring MVC's resolvers at 0, which ask advice; a resolver of the application may come earlier. */
    public static final int ORDER = -1;

    private final int status;
    private final ServletRequests requests;
    private final LimitRegistry limits;
    private final RefusalHandlers handlers;
    private final ServletProblems problems;
    private final ServletCors cors;
    private final InvalidPermitsLog log;
    private final Supplier<List<HandlerExceptionResolver>> resolvers;

    /**
     * @param status of requests over a limit
     * @param resolvers all of the application, in their order
     */
    public ServletRefusals(
            int status,
            ServletRequests requests,
            LimitRegistry limits,
            RefusalHandlers handlers,
            ServletProblems problems,
            ServletCors cors,
            InvalidPermitsLog log,
            Supplier<Stream<HandlerExceptionResolver>> resolvers) {
        this.status = status;
        this.requests = requests;
        this.limits = limits;
        this.handlers = handlers;
        this.problems = problems;
        this.cors = cors;
        this.log = log;
        this.resolvers = SingletonSupplier.of(() -> resolvers.get().toList());
    }

    /** Answers in a filter as the dispatcher servlet would; an answer that is a view cannot be shown there. */
    void answer(HttpServletRequest request, HttpServletResponse response, RuntimeException failure) throws IOException {
        boolean answered = resolvers.get().stream()
                .map(resolver -> resolver.resolveException(request, response, null, failure))
                .filter(view -> view != null)
                .findFirst()
                .map(ModelAndView::isEmpty)
                .orElse(false);
        Refusal refusal = in(failure);
        if (!answered && refusal != null && !response.isCommitted()) {
            write(request, response, refusal);
        }
    }

    /** The refusal that an exception is or was caused by; null if none. */
    @Nullable
    Refusal in(Throwable failure) {
        return Refusal.in(failure, status, limits::findsItsLimit);
    }

    /** Sets the parts that every answer has, whoever writes it: its fields, and those that let scripts read them. */
    private void prepare(HttpServletRequest request, HttpServletResponse response, Refusal refusal) throws IOException {
        ServletCurrentRequest call = requests.of(request, response);
        refusal.report(limits, call::knows, call::refused);
        call.answered(refusal.fields());
        cors.write(request, response);
    }

    private void write(HttpServletRequest request, HttpServletResponse response, Refusal refusal) throws IOException {
        prepare(request, response, refusal);
        log.log(refusal);
        // An error page that is refused itself has no other one.
        if (request.getDispatcherType() != DispatcherType.ERROR
                && Refusal.isPageWanted(request.getHeader(HttpHeaders.ACCEPT))) {
            RefusalPage.request(request, response, refusal);
            return;
        }
        problems.write(request, response, refusal);
    }

    /** Answers refusals at one place among the exception resolvers. */
    public record Resolver(ServletRefusals refusals, int order) implements HandlerExceptionResolver, Ordered {

        @Override
        public int getOrder() {
            return order;
        }

        @Override
        public @Nullable ModelAndView resolveException(
                HttpServletRequest request, HttpServletResponse response, @Nullable Object handler, Exception failure) {
            Refusal refusal = refusals.in(failure);
            if (refusal == null || response.isCommitted()) {
                return null;
            }
            try {
                if (order != LOWEST_PRECEDENCE && isForApplication(request, handler, refusal, failure)) {
                    refusals.prepare(request, response, refusal);
                    return null;
                }
                refusals.write(request, response, refusal);
            } catch (IOException ex) {
                throw new UncheckedIOException(ex);
            }
            return new ModelAndView();
        }

        private boolean isForApplication(
                HttpServletRequest request, @Nullable Object handler, Refusal refusal, Exception failure) {
            Class<?> controller = handler instanceof HandlerMethod method ? method.getBeanType() : null;
            return refusals.handlers.areFor(refusal, failure, controller, request.getHeader(HttpHeaders.ACCEPT));
        }
    }
}
