package com.example;

import io.ratelimited.spring.RateLimited;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.WebApplicationException;
import jakarta.ws.rs.container.AsyncResponse;
import jakarta.ws.rs.container.Suspended;
import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.ext.ExceptionMapper;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.glassfish.jersey.server.ResourceConfig;
import org.glassfish.jersey.servlet.ServletContainer;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;

/** Two applications of Jersey with the same resource: one without mappers of exceptions, and one that maps all of them. */
@SpringBootApplication
public class Application {

    @Bean
    Quotes quotes() {
        return new Quotes();
    }

    @Bean
    ResourceConfig plain(Quotes quotes) {
        return new ResourceConfig().register(new Resource(quotes));
    }

    @Bean
    ResourceConfig mapped(Quotes quotes) {
        return new ResourceConfig().register(new Resource(quotes)).register(new Mapper());
    }

    @Bean
    ServletRegistrationBean<ServletContainer> plainServlet(ResourceConfig plain) {
        return registered("plain", plain, "/jersey/*");
    }

    @Bean
    ServletRegistrationBean<ServletContainer> mappedServlet(ResourceConfig mapped) {
        return registered("mapped", mapped, "/mapped/*");
    }

    private static ServletRegistrationBean<ServletContainer> registered(
            String name, ResourceConfig application, String path) {
        ServletRegistrationBean<ServletContainer> registered =
                new ServletRegistrationBean<>(new ServletContainer(application), path);
        registered.setName(name);
        return registered;
    }

    static class Quotes {

        @RateLimited(name = "quotes", rate = "1/h", key = "clientIp")
        public String quote() {
            return "42.00";
        }

        @RateLimited(name = "later", rate = "1/h")
        public String later() {
            return "42.00";
        }

        @RateLimited(name = "many", rate = "1/h", key = "clientIp", permits = "#permits")
        public String many(int permits) {
            return "42.00";
        }
    }

    @Path("/")
    public static class Resource {

        private final Quotes quotes;

        Resource(Quotes quotes) {
            this.quotes = quotes;
        }

        @GET
        @Path("quote")
        public String quote() {
            return quotes.quote();
        }

        @GET
        @Path("wrapped")
        public String wrapped() {
            try {
                return quotes.quote();
            } catch (RuntimeException ex) {
                throw new IllegalStateException(ex);
            }
        }

        @GET
        @Path("answered")
        public String answered() {
            try {
                return quotes.quote();
            } catch (RuntimeException ex) {
                throw new WebApplicationException(ex, Response.Status.GONE);
            }
        }

        @GET
        @Path("stage")
        public CompletionStage<String> stage() {
            return CompletableFuture.supplyAsync(quotes::later);
        }

        @GET
        @Path("resumed")
        public void resumed(@Suspended AsyncResponse response) {
            new Thread(() -> {
                        try {
                            response.resume(quotes.later());
                        } catch (RuntimeException ex) {
                            response.resume(ex);
                        }
                    })
                    .start();
        }

        @GET
        @Path("many")
        public String many(@QueryParam("permits") int permits) {
            return quotes.many(permits);
        }

        @GET
        @Path("broken")
        public String broken() {
            throw new IllegalStateException("broken");
        }

        @GET
        @Path("routed/{any}")
        public String routed() {
            return "free";
        }
    }

    static class Mapper implements ExceptionMapper<Throwable> {

        @Override
        public Response toResponse(Throwable failure) {
            return Response.status(418).build();
        }
    }
}
