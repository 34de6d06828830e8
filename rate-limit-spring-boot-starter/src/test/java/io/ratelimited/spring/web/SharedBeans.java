package io.ratelimited.spring.web;

import io.ratelimited.core.testing.ManualTicker;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** What applications on all servers have: time that stands still. */
@Configuration(proxyBeanMethods = false)
class SharedBeans {

    @Bean
    ManualTicker ticker() {
        return new ManualTicker();
    }
}
