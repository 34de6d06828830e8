package io.ratelimited.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.autoconfigure.client.ClientRateLimitAutoConfiguration;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.restclient.autoconfigure.RestClientAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.event.ContextRefreshedEvent;
import org.yaml.snakeyaml.Yaml;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Every metric and every label in the dashboard and the alert rules is one that an application with limits has. */
class DashboardTest {

    private static final Path FILES = Path.of("..", "docs", "operations");
    private static final Pattern SAMPLE = Pattern.compile("(?m)^(rate_limit_\\w+)\\{([^}]*)\\}");
    private static final Pattern SELECTED = Pattern.compile("(rate_limit_\\w+)(?:\\{([^}]*)\\})?");
    private static final Pattern LABEL = Pattern.compile("(\\w+)=~?\"([^\"]*)\"");
    private static final Pattern BY = Pattern.compile("by \\(([^)]*)\\)");
    /** Prometheus adds these to what it reads from an instance. */
    private static final Set<String> OF_PROMETHEUS = Set.of("job", "instance");

    private final Map<String, Map<String, Set<String>>> metrics = new TreeMap<>();

    @Test
    void everyPanelAsksForWhatAnApplicationHas() throws IOException {
        readMetricsOfAnApplication();
        JsonNode dashboard = JsonMapper.shared().readTree(Files.readString(FILES.resolve("grafana-dashboard.json")));
        int queries = 0;
        for (JsonNode panel : dashboard.get("panels")) {
            assertThat(panel.get("description").asString()).endsWith(".");
            for (JsonNode target : panel.get("targets")) {
                requireKnown(target.get("expr").asString());
                queries++;
            }
        }
        List<String> variables = new ArrayList<>();
        for (JsonNode variable : dashboard.at("/templating/list")) {
            variables.add(variable.get("name").asString());
            if (variable.get("type").asString().equals("query")) {
                requireKnown(variable.get("query").asString());
            }
        }
        assertThat(variables).containsExactly("datasource", "application", "instance", "limit");
        assertThat(queries).isGreaterThan(10);
    }

    @Test
    void everyPanelIsOfTheChosenApplicationInstanceAndLimit() throws IOException {
        JsonNode dashboard = JsonMapper.shared().readTree(Files.readString(FILES.resolve("grafana-dashboard.json")));
        Set<String> asked = new TreeSet<>();
        for (JsonNode panel : dashboard.get("panels")) {
            for (JsonNode target : panel.get("targets")) {
                Matcher selected = SELECTED.matcher(target.get("expr").asString());
                while (selected.find()) {
                    asked.add(selected.group(1));
                    assertThat(selected.group(2))
                            .as(target.toString())
                            .contains("job=~\"$application\"", "instance=~\"$instance\"");
                    if (!selected.group(1).startsWith("rate_limit_client_")) {
                        assertThat(selected.group(2)).as(target.toString()).contains("limit=~\"$limit\"");
                    }
                }
            }
        }
        assertThat(asked)
                .contains(
                        "rate_limit_rate",
                        "rate_limit_base_time_seconds",
                        "rate_limit_client_calls_total",
                        "rate_limit_client_paused");
    }

    /** An alert on an increase would miss the first failure of a counter that appears with it. */
    @Test
    void failuresAreCountedFromZero() {
        PrometheusMeterRegistry prometheus = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        application(prometheus)
                .run(
                        context -> assertThat(prometheus.scrape())
                                .containsPattern(
                                        "(?m)^rate_limit_decisions_total\\{limit=\"refused\",outcome=\"rejected\".*} 0\\.0$")
                                .containsPattern("(?m)^rate_limit_charge_failures_total\\{limit=\"charged\"} 0\\.0$")
                                .containsPattern("(?m)^rate_limit_blocks_total\\{limit=\"blocked\"} 0\\.0$")
                                .containsPattern("(?m)^rate_limit_refused_total\\{limit=\"busy\".*} 0\\.0$")
                                .containsPattern(
                                        "(?m)^rate_limit_client_calls_total\\{client=\"partner\",outcome=\"refused_there\"} 0\\.0$"));
    }

    @Test
    void everyAlertAsksForWhatAnApplicationHas() throws IOException {
        readMetricsOfAnApplication();
        Map<String, Object> file = new Yaml().load(Files.readString(FILES.resolve("prometheus-alerts.yml")));
        int alerts = 0;
        for (Object group : (Iterable<?>) file.get("groups")) {
            for (Object rule : (Iterable<?>) ((Map<?, ?>) group).get("rules")) {
                requireKnown(((Map<?, ?>) rule).get("expr").toString());
                alerts++;
            }
        }
        assertThat(alerts).isEqualTo(6);
    }

    private void requireKnown(String query) {
        Matcher selected = SELECTED.matcher(query);
        Set<String> labels = new TreeSet<>();
        while (selected.find()) {
            assertThat(metrics).as(query).containsKey(selected.group(1));
            Map<String, Set<String>> known = metrics.get(selected.group(1));
            labels.addAll(known.keySet());
            Matcher label = LABEL.matcher(selected.group(2) == null ? "" : selected.group(2));
            while (label.find()) {
                if (OF_PROMETHEUS.contains(label.group(1))) {
                    continue;
                }
                assertThat(known).as(query).containsKey(label.group(1));
                if (!label.group(2).startsWith("$")) {
                    assertThat(known.get(label.group(1)))
                            .as(query)
                            .contains(label.group(2).split("\\|"));
                }
            }
        }
        labels.addAll(OF_PROMETHEUS);
        assertThat(labels).as("%s has no metric", query).hasSizeGreaterThan(OF_PROMETHEUS.size());
        Matcher by = BY.matcher(query);
        while (by.find()) {
            assertThat(labels).as(query).contains(by.group(1).split(", ", -1));
        }
    }

    /** An application in which all has happened that is counted, except that its Redis went away: that is a value of source. */
    private void readMetricsOfAnApplication() {
        PrometheusMeterRegistry prometheus = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        application(prometheus).run(context -> {
            Service service = context.getBean(Service.class);
            service.refused();
            assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(service::refused);
            service.delayed();
            service.delayed();
            service.shadowed();
            service.shadowed();
            service.blocked();
            assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(service::blocked);
            service.charged(1);
            service.charged(3);
            service.charged("what nobody can count");
            read(prometheus.scrape());
        });
        for (Decision.Source away : List.of(Decision.Source.FALLBACK, Decision.Source.UNAVAILABLE)) {
            metrics.get("rate_limit_decisions_total")
                    .get("source")
                    .add(away.name().toLowerCase(Locale.ROOT));
        }
    }

    private static ApplicationContextRunner application(PrometheusMeterRegistry prometheus) {
        return Contexts.runner(new ManualTicker().autoAdvance())
                .withConfiguration(AutoConfigurations.of(
                        RateLimitMetricsAutoConfiguration.class,
                        ClientRateLimitAutoConfiguration.class,
                        RestClientAutoConfiguration.class))
                .withBean(MeterRegistry.class, () -> prometheus)
                .withBean(Service.class)
                .withPropertyValues(
                        "rate-limit.limits.busy.algorithm=adaptive", "rate-limit.clients.partner.hosts=partner.example")
                .withInitializer(context -> context.addApplicationListener(event -> {
                    if (event instanceof ContextRefreshedEvent refreshed) {
                        refreshed
                                .getApplicationContext()
                                .getBeansOfType(MeterBinder.class)
                                .values()
                                .forEach(binder -> binder.bindTo(prometheus));
                    }
                }));
    }

    private void read(String scrape) {
        Matcher samples = SAMPLE.matcher(scrape);
        while (samples.find()) {
            Map<String, Set<String>> labels = metrics.computeIfAbsent(samples.group(1), added -> new TreeMap<>());
            LABEL.matcher(samples.group(2))
                    .results()
                    .collect(Collectors.groupingBy(
                            label -> label.group(1), Collectors.mapping(label -> label.group(2), Collectors.toSet())))
                    .forEach((label, values) -> labels.computeIfAbsent(label, added -> new TreeSet<>())
                            .addAll(values));
        }
    }

    static class Service {

        @RateLimited(name = "refused", rate = "1/h")
        public void refused() {}

        @RateLimited(name = "delayed", rate = "1/s", policy = Policy.WAIT, maxWait = "5s")
        public void delayed() {}

        @RateLimited(name = "shadowed", rate = "1/h", policy = Policy.SHADOW)
        public void shadowed() {}

        @RateLimited(name = "blocked", rate = "1/h", key = "'all'", block = "1h")
        public void blocked() {}

        @RateLimited(name = "charged", rate = "10/h", permits = "2", charge = "#result")
        public Object charged(Object cost) {
            return cost;
        }
    }
}
