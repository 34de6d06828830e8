package com.example.login;

import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.security.provisioning.InMemoryUserDetailsManager;
import org.springframework.security.web.SecurityFilterChain;

/** Says nothing of limits and of error pages. */
@Configuration
class Security {

    @Bean
    SecurityFilterChain everything(HttpSecurity http) throws Exception {
        return http.authorizeHttpRequests(requests ->
                        requests.requestMatchers("/help").permitAll().anyRequest().authenticated())
                .formLogin(Customizer.withDefaults())
                .build();
    }

    @Bean
    UserDetailsService users() {
        return new InMemoryUserDetailsManager(
                User.withUsername("ann").password("{noop}right").build(),
                User.withUsername("bob").password("{noop}right").build());
    }
}
