package io.ratelimited.spring.woven;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.test.util.TestPropertyValues;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import reactor.core.publisher.Mono;

/** Runs in a process whose classes are woven, and prints what it sees: for each kind of call how many of three went. */
public final class WovenApplication {

    private WovenApplication() {}

    public static void main(String[] args) {
        try (AnnotationConfigApplicationContext context = start()) {
            Service service = context.getBean("wovenApplication.Service", Service.class);
            count("public", service::open);
            count("self", service::callsItself);
            count("private", service::callsPrivate);
            count("static", Service::shared);
            count("new", () -> new Service().fresh());
            count("meta", service::meta);
            count("future", () -> service.future().join());
            count("mono", () -> service.mono().block());
            count("charged", service::callsCharged);
            Sub sub = context.getBean(Sub.class);
            count("override", sub::overridden);
            count("unannotated", new Sub()::inherited);
            count("unannotatedBySelf", sub::callsInherited);
            count("unannotatedByProxy", sub::inheritedByProxy);
            count("overriddenByAnother", sub::callsOverridden);
            count("unlimitedByItself", sub::unlimited);
            count("overriddenLater", () -> sub.later().block());
            count("fallback", sub::fallsBack);
            count("fallbackFuture", () -> sub.fallsBackLater().join());
            count("fallbackMono", () -> sub.fallsBackReactively().block());
            count("interface", context.getBean(Limited.class)::onInterface);
            Client client = context.getBean(Client.class);
            count("client", client::remote);
            count("clientDefault", client::byDefault);
            count("clientDefaultFuture", () -> client.laterByDefault().join());
            service.once();
            System.out.println("remaining "
                    + context.getBean(RateLimits.class).peek("twice", null).remaining());
            start().close();
            count("another", service::another);
        }
        count("closed", new Service()::open);
    }

    private static AnnotationConfigApplicationContext start() {
        AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();
        TestPropertyValues.of("rate-limit.aspect.mode=woven", "rate-limit.defaults.rate=2/h")
                .applyTo(context);
        context.register(AopAutoConfiguration.class, RateLimitAutoConfiguration.class, Service.class, Sub.class);
        context.registerBean(Client.class, WovenApplication::client);
        context.refresh();
        return context;
    }

    private static void count(String kind, Runnable call) {
        int admitted = 0;
        for (int i = 0; i < 3; i++) {
            try {
                call.run();
                admitted++;
            } catch (RateLimitExceededException ex) {
                // Counted by what is missing.
            } catch (CompletionException ex) {
                refused(ex.getCause());
            }
        }
        System.out.println(kind + " " + admitted);
    }

    private static void refused(Throwable cause) {
        if (!(cause instanceof RateLimitExceededException)) {
            throw new IllegalStateException(cause);
        }
    }

    private static Client client() {
        return (Client) Proxy.newProxyInstance(
                Client.class.getClassLoader(),
                new Class<?>[] {Client.class},
                (proxy, method, args) ->
                        method.isDefault() ? InvocationHandler.invokeDefault(proxy, method, args) : null);
    }

    interface Client {

        @RateLimited
        void remote();

        @RateLimited
        default void byDefault() {}

        @RateLimited
        default CompletableFuture<String> laterByDefault() {
            return CompletableFuture.completedFuture("default");
        }
    }

    @Retention(RetentionPolicy.RUNTIME)
    @RateLimited
    @interface Few {}

    interface Limited {

        @RateLimited
        void onInterface();
    }

    public static class Service {

        @RateLimited
        public void open() {}

        public void callsItself() {
            self();
        }

        @RateLimited
        public void self() {}

        public void callsPrivate() {
            hidden();
        }

        @RateLimited
        private void hidden() {}

        @RateLimited
        static void shared() {}

        @RateLimited
        public void fresh() {}

        @Few
        public void meta() {}

        @RateLimited("meta-of")
        public void meta(int number) {}

        @RateLimited
        public CompletableFuture<String> future() {
            return CompletableFuture.completedFuture("future").thenApply(value -> value);
        }

        @RateLimited
        public Mono<String> mono() {
            return Mono.just("mono");
        }

        public void callsCharged() {
            charged();
        }

        @RateLimited(charge = "0")
        private void charged() {}

        @RateLimited
        public void another() {}

        @RateLimited("twice")
        public void once() {}

        @RateLimited("overridden")
        public void overridden() {}

        @RateLimited("inherited")
        public void inherited() {}

        @RateLimited("inherited-by-itself")
        public void inheritedByItself() {}

        @RateLimited("inherited-by-proxy")
        public void inheritedByProxy() {}

        @RateLimited("overridden-by-another")
        public void overriddenByAnother() {}

        @RateLimited("later")
        public Mono<String> later() {
            return Mono.just("later");
        }

        public void unlimited() {}

        @RateLimited("falls-back")
        public String fallsBack() {
            return "overridden";
        }

        @RateLimited("falls-back-later")
        public CompletableFuture<String> fallsBackLater() {
            return CompletableFuture.completedFuture("overridden");
        }

        @RateLimited("falls-back-reactively")
        public Mono<String> fallsBackReactively() {
            return Mono.just("overridden");
        }
    }

    public static class Sub extends Service implements Limited {

        @Override
        @RateLimited("overridden")
        public void overridden() {
            super.overridden();
        }

        @Override
        public void inherited() {
            super.inherited();
        }

        public void callsInherited() {
            inheritedByItself();
        }

        @Override
        public void inheritedByItself() {
            super.inheritedByItself();
        }

        @Override
        public void inheritedByProxy() {
            super.inheritedByProxy();
        }

        public void callsOverridden() {
            super.overriddenByAnother();
        }

        @Override
        @RateLimited("overridden-by-another")
        public void overriddenByAnother() {
            super.overriddenByAnother();
        }

        @Override
        @RateLimited
        public void unlimited() {
            super.unlimited();
        }

        @Override
        @RateLimited("later")
        public Mono<String> later() {
            return Mono.defer(super::later);
        }

        @Override
        @RateLimited(name = "falls-back", fallback = "plain")
        public String fallsBack() {
            return super.fallsBack() + " and more";
        }

        String plain() {
            return super.fallsBack();
        }

        @Override
        @RateLimited(name = "falls-back-later", fallback = "plainLater")
        public CompletableFuture<String> fallsBackLater() {
            return super.fallsBackLater().thenApply(value -> value + " and more");
        }

        CompletableFuture<String> plainLater() {
            return super.fallsBackLater();
        }

        @Override
        @RateLimited(name = "falls-back-reactively", fallback = "plainReactively")
        public Mono<String> fallsBackReactively() {
            return super.fallsBackReactively().map(value -> value + " and more");
        }

        Mono<String> plainReactively() {
            return super.fallsBackReactively();
        }

        @Override
        public void onInterface() {}
    }
}
