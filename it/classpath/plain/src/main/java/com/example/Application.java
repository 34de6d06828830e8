package com.example;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.config.RateLimitConfiguration;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.PropertySource;

@Configuration
@PropertySource("classpath:limits.properties")
@Import({RateLimitConfiguration.class, Application.Work.class})
public class Application {

    public static class Work {

        @RateLimited(name = "work", rate = "1/h")
        public String done() {
            return "done";
        }
    }

    public static void main(String[] args) {
        try (AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext(Application.class)) {
            Work work = context.getBean(Work.class);
            for (int i = 0; i < 3; i++) {
                try {
                    System.out.println(work.done());
                } catch (RateLimitExceededException rejected) {
                    System.out.println("rejected");
                }
            }
            RateLimits limits = context.getBean(RateLimits.class);
            System.out.println("mails " + limits.tryAcquire("mail", "ada") + " " + limits.tryAcquire("mail", "ada"));
        }
    }
}
