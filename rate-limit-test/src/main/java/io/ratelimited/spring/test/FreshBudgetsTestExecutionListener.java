package io.ratelimited.spring.test;

import io.ratelimited.spring.internals.client.LimitedClients;
import org.springframework.context.ApplicationContext;
import org.springframework.core.Ordered;
import org.springframework.test.context.TestContext;
import org.springframework.test.context.TestContextAnnotationUtils;
import org.springframework.test.context.TestExecutionListener;

/** Gives each method of a test with {@link AutoConfigureRateLimits} fresh budgets. */
final class FreshBudgetsTestExecutionListener implements TestExecutionListener, Ordered {

    /** Behind the listeners of {@code @DirtiesContext}: starts in the new context, and ends before the old one is closed. */
    private static final int ORDER = 3500;

    private static final String BUDGETS = FreshBudgets.class.getName();

    @Override
    public int getOrder() {
        return ORDER;
    }

    @Override
    public void beforeTestMethod(TestContext test) throws InterruptedException {
        if (!TestContextAnnotationUtils.hasAnnotation(test.getTestClass(), AutoConfigureRateLimits.class)) {
            return;
        }
        ApplicationContext context = test.getApplicationContext();
        FreshBudgets budgets = context.getBeanProvider(FreshBudgets.class).getIfAvailable();
        if (budgets != null) {
            budgets.begin(context.getBeanProvider(LimitedClients.class)::stream);
            test.setAttribute(BUDGETS, budgets);
        }
    }

    @Override
    public void afterTestMethod(TestContext test) {
        if (test.removeAttribute(BUDGETS) instanceof FreshBudgets budgets) {
            budgets.end();
        }
    }
}
