package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.nio.CharBuffer;
import java.security.Principal;
import java.time.Instant;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.time.OffsetTime;
import java.time.Period;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Keys that callers make up to fill memory, to slow the map down, or to reach the budget of somebody else. */
class KeyAttacksTest {

    private record Pair(Object left, @Nullable Object right) {}

    private record Other(Object left, @Nullable Object right) {}

    private enum Colour {
        RED,
        BLUE {
            @Override
            public String toString() {
                return "RED";
            }
        }
    }

    private enum Fruit {
        RED
    }

    private static InMemoryRateLimiter limiter() {
        return new InMemoryRateLimiter(
                Limit.of("keys", Algorithm.TOKEN_BUCKET).rate("1/h").build(), new ManualTicker(), 1_000);
    }

    /** Every two of them are different keys. */
    private static List<Object> differentKeys() {
        String longText = "x".repeat(300);
        List<Object> keys = new ArrayList<>(List.<Object>of(
                "",
                "1",
                1,
                1L,
                (short) 1,
                (byte) 1,
                1.0,
                1.0f,
                '1',
                true,
                "true",
                0.0,
                BigInteger.ONE,
                BigDecimal.ONE,
                new BigDecimal("1.1"),
                Instant.EPOCH,
                Instant.EPOCH.atOffset(ZoneOffset.UTC),
                new UUID(0, 1),
                new UUID(0, 1).toString(),
                LocalDate.EPOCH,
                "1970-01-01",
                Colour.RED,
                Colour.BLUE,
                Fruit.RED,
                "RED",
                "ren\u00e9",
                "rene\u0301"));
        keys.addAll(List.<Object>of(
                List.of(),
                Set.of(),
                Map.of(),
                "[]",
                List.of(""),
                List.of("", ""),
                List.of("p, q", "r"),
                List.of("p", "q, r"),
                List.of("p", "q", "r"),
                List.of(List.of("p", "q"), "r"),
                List.of("p", List.of("q", "r")),
                List.of("r", "q", "p"),
                Set.of("p", "q"),
                Map.of("p", "q"),
                Map.of("q", "p"),
                List.of(1),
                List.of(1L),
                List.of("1"),
                List.of("(Integer)1"),
                List.of("1:1"),
                Arrays.asList("p", null),
                List.of("p", "null"),
                List.of("p", "(null)"),
                List.of("p"),
                new Pair("a", "b"),
                new Pair("a", null),
                new Other("a", "b"),
                new Pair("a, right=b", null),
                new Pair("a", Map.of("x", List.of(1, 2))),
                new Pair("a", Map.of("x", List.of(12)))));
        keys.addAll(List.<Object>of(
                longText,
                longText + "?",
                longText + '\ud800',
                longText + '\ud801',
                longText + '\udc00',
                "?",
                "\ud800",
                "\udc00",
                List.of(longText, "a"),
                List.of(longText + "a"),
                List.of(longText + '\ud800', "a"),
                List.of(longText + "?", "a")));
        // What the texts of other keys look like.
        Stream.of(1L, 1, Colour.RED, List.of("p", "q"), longText, "(String)x", "(x", "((x")
                .map(CanonicalKey::text)
                .filter(text -> !keys.contains(text))
                .forEach(keys::add);
        return keys;
    }

    /** Each list is one value in several spellings. */
    private static Stream<List<Object>> spellings() {
        Instant instant = Instant.parse("2026-11-25T08:30:00Z");
        Stream<ZoneOffset> offsets = IntStream.rangeClosed(-18, 18).mapToObj(ZoneOffset::ofHours);
        return Stream.of(
                Stream.of("1", "1.0", "1.00", "10e-1")
                        .<Object>map(BigDecimal::new)
                        .toList(),
                Stream.of("100", "1e2", "100.0").<Object>map(BigDecimal::new).toList(),
                Stream.of("0", "0.00", "0e9", "-0").<Object>map(BigDecimal::new).toList(),
                Stream.of("1e999999999", "10e999999998")
                        .<Object>map(BigDecimal::new)
                        .toList(),
                List.of(0.0, -0.0),
                List.of(0.0f, -0.0f),
                offsets.<Object>map(instant::atOffset).toList(),
                Stream.of("UTC", "Z", "Europe/Berlin", "America/New_York")
                        .<Object>map(zone -> instant.atZone(ZoneId.of(zone)))
                        .toList(),
                List.of(OffsetTime.parse("08:30Z"), OffsetTime.parse("10:30+02:00")),
                List.of(Period.ofYears(1), Period.ofMonths(12)),
                List.of(List.of(new BigDecimal("1.0"), -0.0), List.of(new BigDecimal("1.00"), 0.0)));
    }

    @ParameterizedTest
    @MethodSource("spellings")
    void anotherSpellingOfANumberOrInstantBuysNoBudget(List<Object> spellings) {
        InMemoryRateLimiter limiter = limiter();
        assertThat(spellings).filteredOn(key -> limiter.tryAcquire(key, 1)).hasSize(1);
        assertThat(spellings).extracting(CanonicalKey::text).containsOnly(CanonicalKey.text(spellings.get(0)));
    }

    @Test
    void aNumberIsWrittenAsPeopleWriteIt() {
        assertThat(CanonicalKey.text(new BigDecimal("1e2"))).isEqualTo("(BigDecimal)100");
        assertThat(CanonicalKey.text(new BigDecimal("2.50"))).isEqualTo("(BigDecimal)2.5");
        assertThat(CanonicalKey.text(new BigDecimal("1e999999999"))).isEqualTo("(BigDecimal)1E+999999999");
        assertThat(CanonicalKey.text(OffsetDateTime.parse("2026-11-25T10:30+02:00")))
                .isEqualTo("(OffsetDateTime)2026-11-25T08:30:00Z");
    }

    @Test
    void anAddressIsAKeyAsItIsWritten() {
        URI address = URI.create("https://a.example/x");
        assertThat(CanonicalKey.text(address)).isEqualTo("https://a.example/x");
        assertThat(CanonicalKey.text(List.of("GET", address))).isEqualTo("(List)3:GET19:https://a.example/x");
        assertThat(CanonicalKey.isKey(URI.class)).isTrue();
    }

    @Test
    void noTwoKeysAreOne() {
        List<Object> keys = differentKeys();
        assertThat(keys.stream().map(CanonicalKey::text)).doesNotHaveDuplicates();
        InMemoryRateLimiter limiter = limiter();
        assertThat(keys).allMatch(key -> limiter.tryAcquire(key, 1)).noneMatch(key -> limiter.tryAcquire(key, 1));
    }

    static Stream<Pair> equalKeysAreOne() {
        return Stream.of(
                new Pair("a", CharBuffer.wrap("a")),
                new Pair("a", Optional.of("a")),
                new Pair("ann", (Principal) () -> "ann"),
                new Pair(1_000L, Long.valueOf("1000")),
                new Pair(Colour.BLUE, Colour.valueOf("BLUE")),
                new Pair(List.of("a", "b"), new ArrayDeque<>(List.of("a", "b"))),
                new Pair(List.of("a", "b"), new String[] {"a", "b"}),
                new Pair(List.of(1, 2), new int[] {1, 2}),
                new Pair(List.of(List.of(1), List.of(2)), new int[][] {{1}, {2}}),
                new Pair(new LinkedHashSet<>(List.of("a", "b", "c")), new LinkedHashSet<>(List.of("c", "b", "a"))),
                new Pair(ordered("a", 1, "b", 2), ordered("b", 2, "a", 1)),
                new Pair(new Pair("a", new int[] {1}), new Pair("a", new int[] {1})),
                new Pair("k".repeat(1_000), "k".repeat(1_000)),
                new Pair(CanonicalKey.frozen(List.of("a")), List.of("a")));
    }

    private static Map<String, Integer> ordered(String first, int one, String second, int two) {
        Map<String, Integer> map = new LinkedHashMap<>();
        map.put(first, one);
        map.put(second, two);
        return map;
    }

    @ParameterizedTest
    @MethodSource
    void equalKeysAreOne(Pair equal) {
        InMemoryRateLimiter limiter = limiter();
        assertThat(limiter.tryAcquire(equal.left, 1)).isTrue();
        assertThat(limiter.tryAcquire(equal.right, 1)).isFalse();
        assertThat(limiter.peek(equal.right, 1, 0).admitted()).isFalse();
        limiter.reset(equal.right);
        assertThat(limiter.tryAcquire(equal.left, 1)).isTrue();
    }

    /** Nodes of a cluster agree on the text, today and after an upgrade. */
    @Test
    void textsAreTheSameOnAllNodes() {
        assertThat(CanonicalKey.text("ann")).isEqualTo("ann");
        assertThat(CanonicalKey.text("(ann")).isEqualTo("(String)(ann");
        assertThat(CanonicalKey.text(42L)).isEqualTo("(Long)42");
        assertThat(CanonicalKey.text(Thread.State.NEW)).isEqualTo("(enum java.lang.Thread$State)NEW");
        assertThat(CanonicalKey.text(Arrays.asList("ann", null, 4L))).isEqualTo("(List)3:ann6:(null)7:(Long)4");
        assertThat(CanonicalKey.text(Set.of("b", "a"))).isEqualTo("(Set)1:a1:b");
        assertThat(CanonicalKey.text(Map.of("b", 1, "a", 2))).isEqualTo("(Map)1:a10:(Integer)21:b10:(Integer)1");
        assertThat(CanonicalKey.text("é\ud800".repeat(100)))
                .isEqualTo("sha256:605180f8a0019b85ce751873fcabbd95c396959e88d188dac6a10de3f8385370");
        assertThat(CanonicalKey.digest("ann")).isEqualTo("UUyXfIFlELqc1p6lF2SHjXWBI9o");
    }

    @Test
    void aTextHas64CharactersOrIsItsDigest() {
        String longest = "k".repeat(64);
        assertThat(CanonicalKey.text(longest)).isSameAs(longest);
        List<Object> large = List.of(
                "k".repeat(65),
                "(" + "k".repeat(60),
                List.of("k".repeat(1_000_000), "k".repeat(1_000_000)),
                new Pair("k".repeat(1_000_000), List.of("k".repeat(1_000_000))),
                Map.of("k".repeat(1_000_000), Set.of("k".repeat(1_000_000))),
                new byte[1_000_000]);
        assertThat(large).allSatisfy(key -> assertThat(CanonicalKey.text(key)).matches("sha256:[0-9a-f]{64}"));
        InMemoryRateLimiter limiter = limiter();
        assertThat(large).allMatch(key -> limiter.tryAcquire(key, 1));
        assertThat(limiter.knownKeys())
                .hasSameSizeAs(large)
                .allMatch(key -> key instanceof CanonicalKey && key.toString().length() == 71);
    }

    /** Whose hash codes a caller can choose. */
    private record Colliding(int id) {
        @Override
        public int hashCode() {
            return 7;
        }
    }

    @Test
    void mapsOfKeysSeeShortStringsOnly() {
        InMemoryRateLimiter limiter = limiter();
        List.of(new Colliding(1), new Colliding(2), List.of(new Colliding(3)), 4L, "5")
                .forEach(key -> limiter.tryAcquire(key, 1));
        Set<Integer> hashes = new HashSet<>();
        limiter.knownKeys().forEach(key -> hashes.add(key.hashCode()));
        assertThat(hashes).hasSize(5);
        assertThat(limiter.knownKeys()).allMatch(key -> limiter.peek(key, 1, 0).remaining() == 0);
    }

    private static final class WithEqualsAndText {

        private final String secret;

        WithEqualsAndText(String secret) {
            this.secret = secret;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof WithEqualsAndText same && same.secret.equals(secret);
        }

        @Override
        public int hashCode() {
            return Objects.hash(secret);
        }

        @Override
        public String toString() {
            return "secret ***";
        }
    }

    static Stream<Object> whatHasNoKnownTextIsNoKey() {
        return Stream.of(
                new WithEqualsAndText("a"),
                new Object(),
                new BitSet(),
                List.of(new BitSet()),
                new Pair(new BitSet(), 1));
    }

    @ParameterizedTest
    @MethodSource
    void whatHasNoKnownTextIsNoKey(Object key) {
        RateLimiter limiter = limiter();
        assertThatIllegalArgumentException()
                .isThrownBy(() -> limiter.tryAcquire(key, 1))
                .withMessageMatching(
                        "an object of the class \\S+ is not a key, because its text may not identify it: use its"
                                + " id, or its toString\\(\\) if each object has a different text");
        assertThatIllegalArgumentException().isThrownBy(() -> limiter.reserve(key, 1, 0));
        assertThatIllegalArgumentException().isThrownBy(() -> limiter.peek(key, 1, 0));
        assertThatIllegalArgumentException().isThrownBy(() -> CanonicalKey.frozen(key));
    }
}
