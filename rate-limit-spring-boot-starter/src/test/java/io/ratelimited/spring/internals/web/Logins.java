package io.ratelimited.spring.internals.web;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.web.server.ServerHttpSecurity;
import org.springframework.security.core.userdetails.ReactiveUserDetailsService;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetails;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.server.SecurityWebFilterChain;
import reactor.core.publisher.Mono;

/** Applications with the form login of Spring Security, whose only user is ann, and a client that logs in. */
public final class Logins {

    /** How often a password has been looked up, to be checked. */
    public static final AtomicInteger CHECKS = new AtomicInteger();

    private Logins() {}

    public static Class<?> application(Kind kind) {
        return kind == Kind.REACTOR_NETTY ? ReactiveLogin.class : ServletLogin.class;
    }

    /** The head of the response to a login. */
    public static String login(RunningServer server, String name, String password) {
        int port = server.context.getEnvironment().getRequiredProperty("local.server.port", Integer.class);
        String form = "username=" + name + "&password=" + password;
        String request = "POST /login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type:"
                + " application/x-www-form-urlencoded\r\nContent-Length: " + form.length() + "\r\n\r\n" + form;
        try (Socket socket = new Socket("localhost", port)) {
            socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
            InputStream response = socket.getInputStream();
            return new String(response.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    private static UserDetails user(String name) {
        CHECKS.incrementAndGet();
        if (name.equals("broken")) {
            throw new IllegalStateException("the user store is away");
        }
        return name.equals("ann")
                ? User.withUsername(name).password("{noop}right").roles("USER").build()
                : User.withUsername(name)
                        .password("{noop}" + System.nanoTime())
                        .roles("USER")
                        .build();
    }

    @Configuration(proxyBeanMethods = false)
    public static class ServletLogin extends ServletForm {

        @Bean
        UserDetailsService users() {
            return Logins::user;
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    public static class ServletForm {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean
        SecurityFilterChain security(HttpSecurity http) throws Exception {
            return http.csrf(csrf -> csrf.disable())
                    .formLogin(Customizer.withDefaults())
                    .authorizeHttpRequests(requests -> requests.anyRequest().authenticated())
                    .build();
        }
    }

    @Configuration(proxyBeanMethods = false)
    public static class ReactiveLogin extends ReactiveForm {

        @Bean
        ReactiveUserDetailsService users() {
            return name -> Mono.fromCallable(() -> user(name));
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    public static class ReactiveForm {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean
        SecurityWebFilterChain security(ServerHttpSecurity http) {
            return http.csrf(csrf -> csrf.disable())
                    .formLogin(Customizer.withDefaults())
                    .authorizeExchange(exchanges -> exchanges.anyExchange().authenticated())
                    .build();
        }
    }
}
