package io.ratelimited.spring.guide;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Threads;
import io.ratelimited.redis.LogLines;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.redis.RedisRateLimitAutoConfiguration;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.BeanFactoryAware;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.core.PriorityOrdered;

/** Every line of the log that the page on limits that do not limit shows is written by an application that makes the mistake. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class FailureModesPageTest {

    private static final Pattern LINE = Pattern.compile("(?ms)^```\\n(.*?)\\n```$");

    /** Whether these lines reach the output depends on what has run in this JVM before. */
    @RegisterExtension
    final LogLines redis = new LogLines();

    private final ApplicationContextRunner shop = Contexts.runner().withBean("shop", Shop.class);

    @Test
    void everyLineOfThePageIsWritten(CapturedOutput output) throws IOException {
        start(shop);
        start(Contexts.runner().withBean(EarlyProcessor.class).withBean("shop", Shop.class));
        start(Contexts.runner().withBean(Whole.class));
        start(shop.withPropertyValues("rate-limit.enabled=false"));
        start(shop.withPropertyValues("rate-limit.limits.serch.rate=10/s"));
        start(shop.withPropertyValues("rate-limit.limits.search.rate=1000/s"));
        start(shop.withPropertyValues("rate-limit.limits.search.policy=shadow"));
        start(shop.withPropertyValues("rate-limit.limits.search.tiers.gold.rate=100/s"));
        shop.withPropertyValues(
                        "rate-limit.limits.search.tiers.gold.rate=100/s", "rate-limit.limits.search.tier='silver'")
                .run(context -> context.getBean(Shop.class).search("ann"));
        shop.withConfiguration(AutoConfigurations.of(RedisRateLimitAutoConfiguration.class))
                .withPropertyValues("rate-limit.backend=redis", "rate-limit.redis.url=redis://127.0.0.1:1")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    // By a thread of the connection.
                    Threads.until(() -> redis.all().stream().anyMatch(line -> line.endsWith("[RL-301]")));
                });

        List<String> lines = LINE.matcher(Files.readString(Path.of("..", "docs", "failure-modes.md")))
                .results()
                .map(line -> line.group(1).replace("com.example", Shop.class.getPackageName()))
                .toList();
        String written = output + String.join("\n", redis.all());
        assertThat(lines).hasSize(12).allSatisfy(line -> assertThat(written).contains(line));
    }

    private static void start(ApplicationContextRunner application) {
        application.run(context -> assertThat(context).hasNotFailed());
    }

    /** A processor that needs the shop before Spring can make proxies. */
    static final class EarlyProcessor implements BeanPostProcessor, BeanFactoryAware, PriorityOrdered {

        @Override
        public void setBeanFactory(BeanFactory beans) {
            assertThat(beans.getBean("shop")).isNotNull();
        }

        @Override
        public int getOrder() {
            return HIGHEST_PRECEDENCE;
        }
    }

    @RateLimited(name = "whole", rate = "10/s")
    static class Whole {

        public void seen() {}

        void unseen() {}
    }
}

/** Named as on the page. */
class Shop {

    @RateLimited(name = "search", rate = "10/s", key = "#user")
    public String search(String user) {
        return user;
    }

    public String checkout(String user) {
        return search(user);
    }
}
