package io.ratelimited.benchmarks.real;

import com.zaxxer.hikari.HikariDataSource;
import io.ratelimited.spring.RateLimited;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Semaphore;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/**
 * An application whose requests need a connection of a pool for some time. Prints its port, and ends with its standard
 * input. Takes the limit ({@code none}, {@code adaptive} or the number of a fixed one), whether threads are virtual, and the
 * JDBC URL of a PostgreSQL; without it, the pool is one that is as slow.
 */
public final class OverloadServer {

    /** Connections of the pool. */
    static final int CONNECTIONS = 5;

    /** The time in milliseconds for which a request needs one. */
    static final int BUSY_MILLIS = 50;

    /** Rows that a request reads, which takes PostgreSQL about a twentieth of that time; it waits for the rest, as for a disk. */
    private static final int ROWS = 20_000;

    private OverloadServer() {}

    /** Runs until its input ends. */
    public static void main(String[] args) throws IOException {
        String limit = args[0];
        Map<String, Object> properties = new HashMap<>(Map.of(
                "spring.threads.virtual.enabled", args[1],
                "bucket4j.enabled", "false",
                "spring.cloud.gateway.server.webflux.enabled", "false",
                "spring.main.banner-mode", "off",
                "logging.level.root", "error",
                "server.port", "0",
                "server.address", "127.0.0.1"));
        if (args.length > 2) {
            properties.put("postgres", args[2]);
        }
        switch (limit) {
            case "none" -> properties.put("rate-limit.enabled", "false");
            case "adaptive" -> {
                properties.put("rate-limit.limits.report.algorithm", "adaptive");
                properties.put("rate-limit.limits.report.late-after", OverloadLoad.DEADLINE_MILLIS + "ms");
            }
            default -> {
                properties.put("rate-limit.limits.report.algorithm", "concurrency");
                properties.put("rate-limit.limits.report.max-concurrent", limit);
            }
        }
        SpringApplication application = new SpringApplication(Application.class);
        application.setDefaultProperties(properties);
        try (ConfigurableApplicationContext context = application.run()) {
            System.out.println(context.getEnvironment().getRequiredProperty("local.server.port"));
            while (System.in.read() >= 0) {
                // Until the other process closes it.
            }
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Reports.class)
    static class Application {

        @Bean
        Pool pool(@Value("${postgres:}") String url) throws SQLException {
            return url.isEmpty() ? new AsSlow() : new Postgres(url);
        }
    }

    @RestController
    static class Reports {

        private final Pool pool;

        Reports(Pool pool) {
            this.pool = pool;
        }

        @GetMapping("/report")
        @RateLimited("report")
        public String report() throws InterruptedException, SQLException {
            pool.use();
            return "report";
        }
    }

    private interface Pool extends AutoCloseable {

        /** Waits for a connection, and keeps it for a query. */
        void use() throws InterruptedException, SQLException;

        @Override
        default void close() {}
    }

    private static final class AsSlow implements Pool {

        private final Semaphore connections = new Semaphore(CONNECTIONS, true);

        @Override
        public void use() throws InterruptedException {
            connections.acquire();
            try {
                Thread.sleep(BUSY_MILLIS);
            } finally {
                connections.release();
            }
        }
    }

    private static final class Postgres implements Pool {

        private final HikariDataSource connections = new HikariDataSource();

        private Postgres(String url) throws SQLException {
            connections.setJdbcUrl(url);
            connections.setMaximumPoolSize(CONNECTIONS);
            query("create table if not exists entries as select n as amount from generate_series(1, " + ROWS + ") n");
        }

        @Override
        public void use() throws SQLException {
            query("select sum(amount), pg_sleep(" + 0.00095 * BUSY_MILLIS + ") from entries");
        }

        private void query(String sql) throws SQLException {
            try (Connection connection = connections.getConnection();
                    Statement statement = connection.createStatement()) {
                statement.execute(sql);
            }
        }

        @Override
        public void close() {
            connections.close();
        }
    }
}
