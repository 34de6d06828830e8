package io.ratelimited.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.expression.CallRoot;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.aot.AotDetector;
import org.springframework.aot.hint.predicate.RuntimeHintsPredicates;
import org.springframework.aot.test.generate.TestGenerationContext;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.test.util.TestPropertyValues;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.aot.ApplicationContextAotGenerator;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.core.test.tools.CompileWithForkedClassLoader;
import org.springframework.core.test.tools.TestCompiler;
import org.springframework.javapoet.ClassName;

/** An application processed ahead of time. */
@Tag("slow")
final class AheadOfTimeTest {

    private final TestGenerationContext generated = new TestGenerationContext(AheadOfTimeTest.class);

    @BeforeEach
    @AfterEach
    void notAheadOfTime() {
        System.clearProperty(AotDetector.AOT_ENABLED);
    }

    private ClassName process(Class<?>... more) {
        AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();
        TestPropertyValues.of(
                        "rate-limit.limits.configured.rate=1/h",
                        "rate-limit.limits.configured.key=#order.customer",
                        "rate-limit.limits.configured.tier=@plans.of(#order)",
                        "rate-limit.limits.configured.tiers.gold.rate=2/h",
                        "rate-limit.limits.configured.fallback=configured")
                .applyTo(context);
        context.registerBean("plans", Plans.class);
        context.register(AopAutoConfiguration.class, RateLimitAutoConfiguration.class, Service.class);
        Stream.of(more).forEach(context::register);
        ClassName initializer = new ApplicationContextAotGenerator().processAheadOfTime(context, generated);
        generated.writeGeneratedContent();
        context.close();
        return initializer;
    }

    @Test
    @CompileWithForkedClassLoader
    void applicationStillLimits() {
        ClassName initializer = process();
        TestCompiler.forSystem().with(generated).compile(compiled -> {
            System.setProperty(AotDetector.AOT_ENABLED, "true");
            try (GenericApplicationContext context = new GenericApplicationContext()) {
                @SuppressWarnings("unchecked")
                ApplicationContextInitializer<GenericApplicationContext> start =
                        compiled.getInstance(ApplicationContextInitializer.class, initializer.toString());
                start.initialize(context);
                context.refresh();
                Service service = context.getBean(Service.class);
                service.plain();
                assertThatThrownBy(service::plain).isInstanceOf(RateLimitExceededException.class);
                assertThat(service.keyed(new Form("ann"))).isEqualTo("ann");
                assertThat(service.keyed(new Form("ann"))).isEqualTo("not ann");
                assertThat(service.keyed(new Form("bob"))).isEqualTo("bob");
            }
        });
    }

    /** Which beans there are is decided when the application is processed. */
    @Test
    @CompileWithForkedClassLoader
    void limitsCannotBeSwitchedOffWhenTheApplicationHasBeenProcessed() {
        assertStartFails(process(), "rate-limit.enabled=false");
    }

    @Test
    @CompileWithForkedClassLoader
    void theModeCannotBeChangedWhenTheApplicationHasBeenProcessed() {
        assertStartFails(process(), "rate-limit.aspect.mode=woven");
    }

    @Test
    @CompileWithForkedClassLoader
    void limitsThatWereOffWhenTheApplicationWasProcessedCannotBeSwitchedOn() {
        AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();
        TestPropertyValues.of("rate-limit.enabled=false").applyTo(context);
        context.register(AopAutoConfiguration.class, RateLimitAutoConfiguration.class, Service.class);
        ClassName initializer = new ApplicationContextAotGenerator().processAheadOfTime(context, generated);
        generated.writeGeneratedContent();
        context.close();
        assertStartFails(initializer, "rate-limit.enabled=true");
    }

    private void assertStartFails(ClassName initializer, String property) {
        TestCompiler.forSystem().with(generated).compile(compiled -> {
            System.setProperty(AotDetector.AOT_ENABLED, "true");
            try (GenericApplicationContext context = new GenericApplicationContext()) {
                TestPropertyValues.of(property).applyTo(context);
                @SuppressWarnings("unchecked")
                ApplicationContextInitializer<GenericApplicationContext> start =
                        compiled.getInstance(ApplicationContextInitializer.class, initializer.toString());
                start.initialize(context);
                assertThatThrownBy(context::refresh)
                        .rootCause()
                        .hasMessageContaining("Property " + property.replace("=", " is "))
                        .hasMessageContaining("was processed ahead of time");
            }
        });
    }

    @Test
    void whatLimitsReachByReflectionIsKnown() {
        process();
        assertThat(RuntimeHintsPredicates.reflection().onMethodInvocation(Service.class, "instead"))
                .accepts(generated.getRuntimeHints());
        assertThat(RuntimeHintsPredicates.reflection().onMethodInvocation(Form.class, "username"))
                .accepts(generated.getRuntimeHints());
        assertThat(RuntimeHintsPredicates.reflection().onMethodInvocation(CallRoot.class, "getClientIp"))
                .accepts(generated.getRuntimeHints());
        assertThat(RuntimeHintsPredicates.resource().forResource("io/ratelimited/redis/decide.lua"))
                .accepts(generated.getRuntimeHints());
    }

    @Test
    void whatOnlyThePropertiesNameIsKnownToo() {
        process(Configured.class);
        assertThat(RuntimeHintsPredicates.reflection().onMethodInvocation(Configured.class, "configured"))
                .accepts(generated.getRuntimeHints());
        assertThat(RuntimeHintsPredicates.reflection().onMethodInvocation(Order.class, "customer"))
                .accepts(generated.getRuntimeHints());
        assertThat(RuntimeHintsPredicates.reflection().onMethodInvocation(Plans.class, "of"))
                .accepts(generated.getRuntimeHints());
    }

    @Test
    void whatAChargeReadsOfTheResultIsKnown() {
        process(Charged.class);
        assertThat(RuntimeHintsPredicates.reflection().onMethodInvocation(Answer.class, "usage"))
                .accepts(generated.getRuntimeHints());
        assertThat(RuntimeHintsPredicates.reflection().onMethodInvocation(Usage.class, "tokens"))
                .accepts(generated.getRuntimeHints());
    }

    @Test
    void whatTheAnnotationNamesIsKnownWhenTheBuildCannotResolveItsPlaceholders() {
        process(Deployed.class);
        assertThat(RuntimeHintsPredicates.reflection().onMethodInvocation(Deployed.class, "elsewhere"))
                .accepts(generated.getRuntimeHints());
    }

    /** Knows what plan somebody has. */
    public static class Plans {

        public String of(Order order) {
            return order.customer();
        }
    }

    /** What somebody bought. */
    public record Order(String customer) {}

    /** What somebody filled in. */
    public record Form(String username) {}

    /** What somebody was told. */
    public record Answer(Usage usage) {}

    /** What that took. */
    public record Usage(long tokens) {}

    static class Charged {

        @RateLimited(rate = "100/h", charge = "#result.usage.tokens")
        public CompletableFuture<Answer> answer() {
            return CompletableFuture.completedFuture(new Answer(new Usage(1)));
        }
    }

    static class Configured {

        @RateLimited("configured")
        public void call(Order order) {}

        void configured(Order order) {}
    }

    static class Deployed {

        @RateLimited(rate = "${known.to.the.deployment}", fallback = "elsewhere")
        public void call() {}

        void elsewhere() {}
    }

    static class Service {

        @RateLimited(rate = "1/h")
        public void plain() {}

        @RateLimited(rate = "1/h", key = "#form.username", fallback = "instead")
        public String keyed(Form form) {
            return form.username();
        }

        String instead(Form form) {
            return "not " + form.username();
        }
    }
}
