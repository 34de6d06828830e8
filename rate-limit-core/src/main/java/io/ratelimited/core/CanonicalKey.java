package io.ratelimited.core;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.RecordComponent;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.Principal;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.MonthDay;
import java.time.OffsetDateTime;
import java.time.OffsetTime;
import java.time.Period;
import java.time.Year;
import java.time.YearMonth;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The canonical text of a key, the same in memory, on Redis and on all nodes: equal keys have the same text, and different
 * keys have different texts. A text of more than 64 characters is stored as its SHA-256 digest, {@code sha256:} and 64
 * hexadecimal digits, so that callers cannot fill memory.
 *
 * <ul>
 *   <li>A string, or another {@link CharSequence}, is its own text: {@code ann}. If it starts with a parenthesis, it gets the
 *       prefix {@code (String)}.
 *   <li>A number, a boolean, a character, a {@link UUID}, and a date or time of {@code java.time} have their type as a
 *       prefix: {@code (Long)42}. So do enum constants: {@code (enum com.example.Colour)RED}. Equal values have the same
 *       text: {@code 1.0} is {@code 1.00}, {@code -0.0} is {@code 0.0}, an instant is the same in every offset, and a year is
 *       twelve months.
 *   <li>A list, another collection or an array consists of the texts of its elements, each with its length: {@code
 *       (List)3:ann4:gold}. In a set, {@code (Set)}, and a map, {@code (Map)}, they are sorted. A record consists of its
 *       components: {@code (record com.example.Customer)7:(Long)7}. Null is {@code (null)}.
 *   <li>A {@link URI} is its text, a {@link Principal} its name, and an {@link Optional} its value.
 *   <li>Any other object is not a key, because its {@code toString} may not identify it.
 * </ul>
 *
 * An instance represents the key with its text, wherever a key is expected. Immutable.
 */
public final class CanonicalKey {

    /** Characters of the longest text that is kept as it is. */
    private static final int LONGEST = 64;

    private static final String DIGEST = "sha256:";
    private static final int SHORT_DIGEST_BYTES = 20;
    private static final String NULL = "(null)";

    /** Types whose values have a text of their own. */
    private static final Set<Class<?>> SIMPLE = Set.of(
            Boolean.class,
            Character.class,
            Byte.class,
            Short.class,
            Integer.class,
            Long.class,
            Float.class,
            Double.class,
            BigInteger.class,
            BigDecimal.class,
            UUID.class,
            Duration.class,
            Period.class,
            Instant.class,
            LocalDate.class,
            LocalTime.class,
            LocalDateTime.class,
            OffsetDateTime.class,
            OffsetTime.class,
            ZonedDateTime.class,
            MonthDay.class,
            Year.class,
            YearMonth.class);

    /** Beginning of the text of a key that is not a string. */
    private static final Pattern TYPED = Pattern.compile("\\((String|List|Set|Map|null|(record|enum) [^)]+"
            + SIMPLE.stream().map(type -> '|' + type.getSimpleName()).collect(Collectors.joining())
            + ")\\)");

    private static final ClassValue<List<MethodHandle>> COMPONENTS = new ClassValue<>() {
        @Override
        protected List<MethodHandle> computeValue(Class<?> type) {
            return components(type);
        }
    };

    private final String text;

    private CanonicalKey(String text) {
        this.text = text;
    }

    /**
     * The text of a key.
     *
     * @throws IllegalArgumentException for an object that is no key; the message names its class
     */
    public static String text(Object key) {
        return text(key, Function.identity());
    }

    /** {@link #text(Object)}; null for no key. */
    public static @Nullable String textOrNull(@Nullable Object key) {
        return key == null ? null : text(key);
    }

    private static String text(Object key, Function<Object, @Nullable Object> parts) {
        return key instanceof String string ? ofString(string) : ofOther(key, parts);
    }

    /**
     * Returns an unchangeable key: the key itself, or a key with its current text if it is mutable.
     *
     * @throws IllegalArgumentException for an object that is no key; the message names its class
     */
    public static Object frozen(Object key) {
        return frozen(key, Function.identity());
    }

    /**
     * {@link #frozen(Object)}, with replacements for parts of the key.
     *
     * @param parts receives each part of a composite key, at any depth, and returns its replacement, or null for none; can
     *     throw for a part that is not a key
     * @throws IllegalArgumentException for an object that is no key; the message names its class
     */
    public static Object frozen(Object key, Function<Object, @Nullable Object> parts) {
        boolean constant = key instanceof String
                || key instanceof CanonicalKey
                || key instanceof Enum
                || SIMPLE.contains(key.getClass());
        return constant ? key : new CanonicalKey(ofOther(key, parts));
    }

    /**
     * Returns the key with this text, as {@link #toString} and {@link RateLimiter#knownKeys} show it.
     *
     * @param text of a key; a longer text is replaced by its digest. A text without a type as a prefix is that of a string
     */
    public static Object ofText(String text) {
        if (TYPED.matcher(text).lookingAt()) {
            return new CanonicalKey(shorten(text));
        }
        return text.length() > LONGEST && text.startsWith(DIGEST) ? new CanonicalKey(text) : text;
    }

    /** Returns whether instances of a class can be keys. If not, instances of its subclasses may still be keys. */
    public static boolean isKey(Class<?> type) {
        return type.isPrimitive()
                || type.isArray()
                || type.isRecord()
                || SIMPLE.contains(type)
                || type == CanonicalKey.class
                || type == Optional.class
                || type == URI.class
                || Stream.of(Enum.class, CharSequence.class, Principal.class, Collection.class, Map.class)
                        .anyMatch(kind -> kind.isAssignableFrom(type));
    }

    /**
     * Returns a digest of a text: 160 bits of its SHA-256, as 27 characters of base64url. No two texts with the same digest
     * can be found. It has no salt: a text that can be guessed, such as a user name or an IPv4 address, can be found by trying.
     */
    public static String digest(String text) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(Arrays.copyOf(sha256(text), SHORT_DIGEST_BYTES));
    }

    private static String ofString(String string) {
        return string.startsWith("(") ? shorten("(String)" + string) : shorten(string);
    }

    private static String ofOther(Object key, Function<Object, @Nullable Object> parts) {
        if (SIMPLE.contains(key.getClass())) {
            return shorten('(' + key.getClass().getSimpleName() + ')' + value(key));
        }
        if (key instanceof Enum<?> constant) {
            return shorten("(enum " + constant.getDeclaringClass().getName() + ')' + constant.name());
        }
        if (key instanceof CanonicalKey made) {
            return made.text;
        }
        if (key instanceof CharSequence || key instanceof URI) {
            return ofString(key.toString());
        }
        if (key instanceof Principal principal) {
            return part(principal.getName(), Function.identity());
        }
        if (key instanceof Optional<?> optional) {
            return part(optional.orElse(null), parts);
        }
        return shorten(ofSeveral(key, parts));
    }

    /** Returns one value for all spellings of a value, so that nobody gets another budget by writing it in another way. */
    private static Object value(Object key) {
        if (key instanceof BigDecimal number) {
            BigDecimal shortest = number.stripTrailingZeros();
            long digits = (long) shortest.precision() - shortest.scale();
            return shortest.scale() < 0 && digits <= LONGEST ? shortest.setScale(0) : shortest;
        }
        if (key instanceof Double number) {
            return number == 0 ? 0.0 : number;
        }
        if (key instanceof Float number) {
            return number == 0 ? 0f : number;
        }
        if (key instanceof OffsetDateTime time) {
            return time.toInstant();
        }
        if (key instanceof ZonedDateTime time) {
            return time.toInstant();
        }
        if (key instanceof OffsetTime time) {
            return time.withOffsetSameInstant(ZoneOffset.UTC);
        }
        return key instanceof Period period
                ? "P" + period.toTotalMonths() + 'M' + period.get(ChronoUnit.DAYS) + 'D'
                : key;
    }

    private static String ofSeveral(Object key, Function<Object, @Nullable Object> parts) {
        Class<?> type = key.getClass();
        StringBuilder all = new StringBuilder();
        if (key instanceof Record) {
            all.append("(record ").append(type.getName()).append(')');
            COMPONENTS.get(type).forEach(component -> append(all, value(component, key), parts));
        } else if (key instanceof Map<?, ?> map) {
            all.append("(Map)");
            map.entrySet().stream()
                    .map(entry -> append(append(new StringBuilder(), entry.getKey(), parts), entry.getValue(), parts)
                            .toString())
                    .sorted()
                    .forEach(all::append);
        } else if (key instanceof Set<?> set) {
            all.append("(Set)");
            set.stream()
                    .map(element -> append(new StringBuilder(), element, parts).toString())
                    .sorted()
                    .forEach(all::append);
        } else if (key instanceof Collection<?> elements) {
            all.append("(List)");
            elements.forEach(element -> append(all, element, parts));
        } else if (type.isArray()) {
            all.append("(List)");
            for (int i = 0; i < Array.getLength(key); i++) {
                append(all, Array.get(key, i), parts);
            }
        } else {
            throw new IllegalArgumentException(
                    "an object of the class " + type.getName() + " is not a key, because its text may not identify it:"
                            + " use its id, or its toString() if each object has a different text");
        }
        return all.toString();
    }

    private static StringBuilder append(
            StringBuilder all, @Nullable Object element, Function<Object, @Nullable Object> parts) {
        String part = part(element, parts);
        return all.append(part.length()).append(':').append(part);
    }

    private static String part(@Nullable Object part, Function<Object, @Nullable Object> parts) {
        Object known = part == null ? null : parts.apply(part);
        return known == null ? NULL : text(known, parts);
    }

    /** The accessors of a record are public, but its class need not be: the look-up has the rights of the record. */
    private static List<MethodHandle> components(Class<?> type) {
        List<MethodHandle> components = new ArrayList<>();
        try {
            MethodHandles.Lookup lookup = MethodHandles.privateLookupIn(type, MethodHandles.lookup());
            for (RecordComponent component : type.getRecordComponents()) {
                components.add(lookup.unreflect(component.getAccessor())
                        .asType(MethodType.methodType(Object.class, Object.class)));
            }
        } catch (IllegalAccessException ex) {
            throw new IllegalArgumentException(
                    "the record " + type.getName() + " cannot be read as a key: open its package to this module, or use"
                            + " its components",
                    ex);
        }
        return List.copyOf(components);
    }

    private static @Nullable Object value(MethodHandle component, Object key) {
        try {
            return component.invoke(key);
        } catch (RuntimeException | Error ex) {
            throw ex;
        } catch (Throwable ex) {
            throw new IllegalArgumentException(key.getClass() + " cannot be read as a key", ex);
        }
    }

    private static String shorten(String text) {
        return text.length() <= LONGEST ? text : DIGEST + HexFormat.of().formatHex(sha256(text));
    }

    /** Hashes the UTF-16 code units, because UTF-8 has no bytes for a surrogate that stands alone. */
    private static byte[] sha256(String text) {
        try {
            ByteBuffer units = ByteBuffer.allocate(Character.BYTES * text.length());
            units.asCharBuffer().put(text);
            return MessageDigest.getInstance("SHA-256").digest(units.array());
        } catch (NoSuchAlgorithmException ex) {
            throw new IllegalStateException("every Java platform has SHA-256", ex);
        }
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof CanonicalKey key && key.text.equals(text);
    }

    @Override
    public int hashCode() {
        return text.hashCode();
    }

    /** The text. */
    @Override
    public String toString() {
        return text;
    }
}
