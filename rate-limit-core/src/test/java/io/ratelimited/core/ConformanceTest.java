package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** The cases of {@code conformance/cases.json}, each under each algorithm it names. Another file runs as it is. */
class ConformanceTest {

    private static final JsonNode FILE = read();

    private static JsonNode read() {
        try (InputStream in = ConformanceTest.class.getResourceAsStream("/conformance/cases.json")) {
            return JsonMapper.builder().build().readTree(in);
        } catch (IOException ex) {
            throw new IllegalStateException(ex);
        }
    }

    @Test
    void theFileHasCases() {
        assertThat(FILE.path("format").asInt()).isEqualTo(1);
        assertThat(FILE.path("cases").size()).isPositive();
    }

    @TestFactory
    Stream<DynamicTest> cases() {
        return FILE.path("cases")
                .valueStream()
                .flatMap(node -> algorithms(node)
                        .flatMap(algorithm -> bases(node)
                                .map(base -> DynamicTest.dynamicTest(
                                        node.path("id").asString() + ", " + algorithm
                                                + (base == null ? "" : ", clock at " + base),
                                        () -> run(node, algorithm, base)))));
    }

    private static void run(JsonNode node, String algorithm, Long base) {
        Assumptions.assumeFalse(
                algorithm.equals("sliding_window_counter"),
                "the core offers no sliding_window_counter: SLIDING_WINDOW and SLIDING_LOG bound every true window");
        Assumptions.assumeFalse(
                node.path("verdict").asString().equals("semantic_variant"),
                "the case documents another meaning than that of the core");
        ConformanceCase test = new ConformanceCase(node, algorithm, base == null ? 0 : base);
        switch (node.path("mode").asString()) {
            case "absolute", "absolute_ns_base", "blocking" -> test.run();
            case "property", "concurrent_property", "derived" -> ConformanceProperty.check(test);
            default -> throw new AssertionError("unknown mode: " + node.path("mode"));
        }
    }

    private static Stream<String> algorithms(JsonNode node) {
        return Stream.of(node.path("algorithm").asString().split("\\|", -1))
                .flatMap(name -> name.equals("any_time_based") ? ConformanceCase.TIME_BASED.stream() : Stream.of(name));
    }

    /** The base of the case; where a case is about the base, the hard ones too. */
    private static Stream<Long> bases(JsonNode node) {
        if (!node.path("mode").asString().equals("absolute_ns_base")) {
            return Stream.of((Long) null);
        }
        Set<Long> bases = new LinkedHashSet<>();
        JsonNode own = node.path("params").path("clock_base_ns");
        bases.add(own.isMissingNode() ? 0 : own.asLong());
        bases.addAll(Set.of(Long.MAX_VALUE - 500_000_000, Long.MIN_VALUE, -1L, 0L, -123_456_789_012L));
        return bases.stream();
    }
}
