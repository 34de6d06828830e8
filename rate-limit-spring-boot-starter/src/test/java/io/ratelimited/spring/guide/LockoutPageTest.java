package io.ratelimited.spring.guide;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.internals.web.Logins;
import io.ratelimited.spring.internals.web.RunningServer;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

/** The recipe for a lockout, and that for users of {@code application.yml}, as the page on guessing of passwords has them. */
@Tag("proof")
class LockoutPageTest {

    private static final String PAGE = "stop-guessing-passwords.md";

    @TempDir
    static Path directory;

    private static RunningServer start(Kind kind) throws Exception {
        DocPage section = DocPage.section(PAGE, "Lockout with exponential backoff");
        List<Class<?>> sources = new ArrayList<>(section.classes(directory).values());
        sources.add(App.class);
        List<String> properties = new ArrayList<>(List.of(section.properties()));
        properties.add("rate-limit.http.trusted-proxies=1");
        properties.add("devices.secret=0123456789abcdef");
        return kind.start(sources, properties.toArray(String[]::new));
    }

    private static HttpResponse<String> login(RunningServer server, String name, String password, String address) {
        return server.get("/login?name=" + name + "&password=" + password, "X-Forwarded-For", address);
    }

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "REACTOR_NETTY"})
    void everySpellingOfANameIsOneAccount(Kind kind) throws Exception {
        Locale before = Locale.getDefault();
        Locale.setDefault(Locale.forLanguageTag("tr-TR"));
        try (RunningServer server = start(kind)) {
            int checked = 0;
            for (String name : new String[] {"titi", "TITI", "TiTi", "tITi", "TItI", "Titi", "tiTI"}) {
                checked += login(server, name, "wrong", "192.0.2.1").statusCode() == 401 ? 1 : 0;
            }
            assertThat(checked).isEqualTo(5);
        } finally {
            Locale.setDefault(before);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "REACTOR_NETTY"})
    void strangersLearnNothingOfAnAccount(Kind kind) throws Exception {
        try (RunningServer server = start(kind)) {
            HttpResponse<String> wrong = login(server, "ann", "wrong", "192.0.2.1");
            assertThat(wrong.statusCode()).isEqualTo(401);
            assertThat(wrong.headers().firstValue("RateLimit"))
                    .hasValueSatisfying(shown -> assertThat(shown)
                            .contains("guesses-of-source")
                            .doesNotContain("guesses-of-account", "guesses-here"));
        }
    }

    @Test
    void threeAddressesLockOutTheOwnerOfAnAccountByALimitOfTheAccountAlone() throws Exception {
        try (RunningServer server = start(Kind.TOMCAT)) {
            int checked = 0;
            for (int minute = 0; minute < 600 && checked < 100; minute++) {
                for (int address = 1; address <= 3; address++) {
                    while (login(server, "ann", "wrong", "192.0.2." + address).statusCode() == 401) {
                        checked++;
                    }
                }
                if (login(server, "ann", "right", "198.51.100.7").statusCode() == 429) {
                    break;
                }
                server.ticker().advance(Duration.ofMinutes(1));
            }
            assertThat(checked).isGreaterThanOrEqualTo(100);
            assertThat(login(server, "ann", "right", "198.51.100.7").statusCode())
                    .as("the owner, from an address of her own")
                    .isEqualTo(429);
            assertThat(login(server, "bob", "right", "198.51.100.7").statusCode())
                    .isEqualTo(200);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "REACTOR_NETTY"})
    void theRecipeWorksBesideAUserOfTheProperties(Kind kind) throws Exception {
        boolean reactive = kind == Kind.REACTOR_NETTY;
        DocPage servlet = DocPage.section(PAGE, "A servlet application");
        DocPage section = reactive ? DocPage.section(PAGE, "A WebFlux application") : servlet;
        Map<String, Class<?>> users =
                DocPage.section(PAGE, "Users in application.yml").classes(directory);
        List<Class<?>> sources = new ArrayList<>(section.classes(directory).values());
        sources.add(users.get(reactive ? "ReactiveUserConfiguration" : "UserConfiguration"));
        sources.add(reactive ? Logins.ReactiveForm.class : Logins.ServletForm.class);
        List<String> properties = new ArrayList<>(List.of(servlet.properties()));
        properties.add("spring.security.user.name=ann");
        properties.add("spring.security.user.password=right");
        try (RunningServer server = kind.startSecured(sources, properties.toArray(String[]::new))) {
            for (int i = 0; i < 5; i++) {
                assertThat(Logins.login(server, "ann", "right"))
                        .startsWith("HTTP/1.1 302")
                        .doesNotContain("?error");
                assertThat(Logins.login(server, "ann", "wrong")).contains("?error");
            }
            assertThat(Logins.login(server, "ann", "right")).startsWith("HTTP/1.1 429");
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class App {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean
        Login login(ApplicationContext context) {
            return new Login(context);
        }
    }

    /** Calls the check of the page. */
    @RestController
    static class Login {

        private final ApplicationContext context;

        Login(ApplicationContext context) {
            this.context = context;
        }

        @GetMapping("/login")
        String login(@RequestParam String name, @RequestParam String password) throws Exception {
            Object check = context.getBean("passwordCheck");
            Method method = null;
            for (Class<?> type = check.getClass(); method == null; type = type.getSuperclass()) {
                for (Method each : type.getDeclaredMethods()) {
                    method = each.getName().equals("check") && each.getParameterCount() == 2 ? each : method;
                }
            }
            method.setAccessible(true);
            try {
                method.invoke(check, name, password);
                return "welcome";
            } catch (InvocationTargetException ex) {
                if (ex.getCause() instanceof RateLimitExceededException refusal) {
                    throw refusal;
                }
                throw new ResponseStatusException(HttpStatus.UNAUTHORIZED);
            }
        }
    }
}
