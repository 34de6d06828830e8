package io.ratelimited.sample.docs;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.sample.SnippetApplication;
import io.ratelimited.sample.SnippetCompiler;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimited;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.springframework.aop.support.AopUtils;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.annotation.AnnotatedElementUtils;

/**
 * The snippets of a section of the guide are one application: it is compiled and started, and the tests in it are run.
 */
@Tag("once")
@Tag("slow")
class GuideTest {

    private static final Path ROOT = Pages.ROOT;
    /**
     * The first three need Reactor, which the sample does not use: DocSnippetsTest and ChargingPageTest of the starter. The
     * fourth needs a Redis, and the last Spring Security: PasswordGuessingTest of the starter. What the page of errors shows does
     * not start: ErrorsPageTest of the starter.
     */
    private static final Set<String> ELSEWHERE = Set.of(
            "docs/annotation.md",
            "docs/charging.md",
            "docs/charging-recipes.md",
            "docs/cluster.md",
            "docs/errors.md",
            "docs/stop-guessing-passwords.md");
    /**
     * What a test knows how to check. DocSnippetsTest of the starter compares "kotlin" with what the build compiles; http, json and
     * plain text show output.
     */
    private static final Set<String> KINDS =
            Set.of("java", "kotlin", "groovy", "yaml", "properties", "xml", "console", "shell", "http", "json", "");

    /** The application that a reader of the page on tests has. */
    private static final String APPLICATION =
            "@org.springframework.boot.autoconfigure.SpringBootApplication class Shop {}\n";

    private static final Pattern PROPERTIES = Pattern.compile("(?ms)^```properties\\n(.*?)^```$");

    private static final Pattern SECTION = Pattern.compile("(?ms)^## (.+?)$(.*?)(?=^## |\\z)");
    private static final Pattern SNIPPET = Pattern.compile("(?ms)^```(java|yaml)\\n(.*?)^```$");
    private static final Pattern LIMIT = Pattern.compile("(?m)^ {4}\"?\\[?([\\w.-]+)\\]?\"?:");
    private static final Pattern FENCE = Pattern.compile("(?ms)^```([^\\n]*)\\n.*?^```$");
    private static final Pattern LINK = Pattern.compile("\\]\\(([^)#:]*)(#[^)]*)?\\)");
    private static final Pattern HEADING = Pattern.compile("(?m)^#+ (.+)$");

    @TempDir
    private Path directory;

    static Stream<Section> sections() throws IOException {
        List<Section> sections = new ArrayList<>();
        for (String page : Pages.all()) {
            Matcher matcher = SECTION.matcher(Files.readString(ROOT.resolve(page)));
            while (!ELSEWHERE.contains(page) && matcher.find()) {
                // The sample has no WebFlux and no OkHttp: GuideTest of rate-limit-test, WholeGuideTest of the starter.
                if (Stream.of("@WebFluxTest(", "import okhttp3.").noneMatch(matcher.group(2)::contains)) {
                    sections.add(Section.of(page + ": " + matcher.group(1), matcher.group(2)));
                }
            }
        }
        return sections.stream().filter(section -> !section.java.isEmpty() || !section.yaml.isEmpty());
    }

    @ParameterizedTest
    @MethodSource("sections")
    void theSnippetsOfASectionAreAnApplicationThatRuns(Section section) throws Exception {
        List<Class<?>> classes = section.java.isEmpty() ? List.of() : SnippetCompiler.compile(section.java, directory);
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        try {
            thread.setContextClassLoader(
                    classes.isEmpty() ? before : classes.get(0).getClassLoader());
            if (section.java.stream().anyMatch(java -> java.contains("@Test"))) {
                runTests(classes);
            } else {
                startApplication(section, classes);
            }
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    private static void startApplication(Section section, List<Class<?>> classes) throws IOException {
        try (ConfigurableApplicationContext context = SnippetApplication.start(classes, section.yaml)) {
            List<Class<?>> limited = SnippetApplication.components(classes).stream()
                    .filter(type -> AnnotatedElementUtils.hasAnnotation(type, RateLimited.class)
                            || Stream.of(type.getDeclaredMethods()).anyMatch(GuideTest::isLimited))
                    .toList();
            assertThat(limited).allMatch(type -> AopUtils.isAopProxy(context.getBean(type)));
            boolean annotated = section.java.stream().anyMatch(java -> java.contains("@RateLimited"));
            assertThat(limited.isEmpty()).isEqualTo(!annotated);
            context.getBeanProvider(RateLimitOperations.class)
                    .ifAvailable(limits -> assertLimitsAreKnown(limits, section));
        }
    }

    private static boolean isLimited(Method method) {
        return !AnnotatedElementUtils.getMergedRepeatableAnnotations(method, RateLimited.class)
                .isEmpty();
    }

    /** Every limit that the section configures is known to the application by its name. */
    private static void assertLimitsAreKnown(RateLimitOperations limits, Section section) {
        for (String yaml : section.yaml) {
            Matcher names = LIMIT.matcher(yaml.contains("\n  limits:") ? yaml : "");
            while (names.find()) {
                assertThat(limits.limit(names.group(1)).name()).isEqualTo(names.group(1));
            }
        }
    }

    private static void runTests(List<Class<?>> classes) {
        SummaryGeneratingListener summary = new SummaryGeneratingListener();
        // The limits of the shop's application.yml are not those of the guide's application.
        System.setProperty("spring.config.name", "guide");
        try {
            LauncherFactory.create()
                    .execute(
                            LauncherDiscoveryRequestBuilder.request()
                                    .selectors(classes.stream()
                                            .filter(type -> type.getSimpleName().endsWith("Test"))
                                            .map(DiscoverySelectors::selectClass)
                                            .toList())
                                    .build(),
                            summary);
        } finally {
            System.clearProperty("spring.config.name");
        }
        assertThat(summary.getSummary().getFailures())
                .extracting(failure -> failure.getException())
                .isEmpty();
        assertThat(summary.getSummary().getTestsSucceededCount()).isPositive();
    }

    static Stream<String> propertiesBlocks() throws IOException {
        List<String> blocks = new ArrayList<>();
        for (String page : Pages.all()) {
            PROPERTIES
                    .matcher(Files.readString(ROOT.resolve(page)))
                    .results()
                    .forEach(block -> blocks.add(block.group(1)));
        }
        return blocks.stream();
    }

    @ParameterizedTest
    @MethodSource("propertiesBlocks")
    void propertiesAreThoseOfAnApplicationThatStarts(String block) throws IOException {
        String yaml = block.lines()
                .map(line -> line.replaceFirst("^([^=]+)=(.*)$", "$1: \"$2\"\n"))
                .collect(Collectors.joining());
        try (ConfigurableApplicationContext context = SnippetApplication.start(List.of(), List.of(yaml))) {
            assertThat(context.isRunning()).isTrue();
        }
    }

    @Test
    void everyLinkOfAPageLeadsSomewhere() throws IOException {
        List<String> broken = new ArrayList<>();
        for (String page : Pages.all()) {
            Matcher links = LINK.matcher(Files.readString(ROOT.resolve(page)));
            while (links.find()) {
                Path target = links.group(1).isEmpty()
                        ? ROOT.resolve(page)
                        : ROOT.resolve(page).resolveSibling(links.group(1));
                if (!leads(target, links.group(2))) {
                    broken.add(page + " -> " + links.group());
                }
            }
        }
        assertThat(broken).isEmpty();
    }

    private static boolean leads(Path target, @Nullable String anchor) throws IOException {
        if (!Files.exists(target)) {
            return false;
        }
        return anchor == null
                || HEADING.matcher(Files.readString(target))
                        .results()
                        .anyMatch(heading -> anchor.equals("#"
                                + heading.group(1)
                                        .toLowerCase(Locale.ROOT)
                                        .replaceAll("[^\\w -]", "")
                                        .replace(' ', '-')));
    }

    @Test
    void everyBlockIsOfAKindThatATestKnows() throws IOException {
        List<String> unknown = new ArrayList<>();
        for (String page : Pages.all()) {
            Matcher fences = FENCE.matcher(Files.readString(ROOT.resolve(page)));
            while (fences.find()) {
                if (!KINDS.contains(fences.group(1))) {
                    unknown.add(page + ": " + fences.group(1));
                }
            }
        }
        assertThat(unknown).isEmpty();
    }

    @Test
    void everyPageOfTheGuideIsInItsContents() throws IOException {
        String contents = Files.readString(ROOT.resolve("docs/README.md"));
        assertThat(Pages.all())
                .filteredOn(page -> page.matches("docs/(?!README)[^/]+"))
                .allMatch(page -> contents.contains("(" + page.substring("docs/".length()) + ")"));
    }

    /** A section of a page. */
    record Section(String title, List<String> java, List<String> yaml) {

        private static Section of(String title, String text) throws IOException {
            Section section = new Section(title, new ArrayList<>(), new ArrayList<>());
            Matcher matcher = SNIPPET.matcher(text);
            while (matcher.find()) {
                (matcher.group(1).equals("java") ? section.java : section.yaml).add(matcher.group(2));
            }
            if (text.contains("@AutoConfigureRateLimits\n")) {
                section.java.add(APPLICATION);
            }
            if (text.contains("@WebMvcTest(QuoteController.class)")) {
                section.java.add(FirstLimitTest.first("java"));
            }
            return section;
        }

        @Override
        public String toString() {
            return title;
        }
    }
}
