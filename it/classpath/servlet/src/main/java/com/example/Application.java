package com.example;

import io.ratelimited.spring.RateLimited;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;

@SpringBootApplication
public class Application {

    @Bean
    Quotes quotes() {
        return new Quotes();
    }

    @Bean
    ServletRegistrationBean<HttpServlet> quoting(Quotes quotes) {
        return new ServletRegistrationBean<>(new Quoting(quotes), "/quote", "/routed/*");
    }

    static class Quotes {

        @RateLimited(name = "quotes", rate = "1/h", key = "clientIp")
        public String quote() {
            return "42.00";
        }
    }

    static class Quoting extends HttpServlet {

        private final transient Quotes quotes;

        Quoting(Quotes quotes) {
            this.quotes = quotes;
        }

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            response.getWriter().print(request.getServletPath().equals("/quote") ? quotes.quote() : "free");
        }
    }
}
