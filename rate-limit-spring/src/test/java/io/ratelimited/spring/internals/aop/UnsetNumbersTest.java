package io.ratelimited.spring.internals.aop;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.limit.LimitProperty;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.FieldSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.core.annotation.MergedAnnotation;

/** A number that somebody writes into the annotation is never taken for an attribute that is not set. */
class UnsetNumbersTest {

    private static final Map<Class<?>, Number> UNSET =
            Map.of(long.class, Long.MIN_VALUE, int.class, Integer.MIN_VALUE, double.class, Double.NaN);

    static final List<Method> ATTRIBUTES = Stream.of(RateLimited.class.getDeclaredMethods())
            .filter(attribute -> attribute.getReturnType().isPrimitive())
            .toList();

    @ParameterizedTest
    @FieldSource("ATTRIBUTES")
    void theDefaultOfANumberIsNoNumberThatAnyoneWrites(Method attribute) {
        assertThat(attribute.getDefaultValue()).isEqualTo(UNSET.get(attribute.getReturnType()));
        assertThat(written(attribute.getName(), attribute.getDefaultValue()))
                .doesNotContainKey(LimitProperty.valueOf(constant(attribute)));
    }

    static Stream<Arguments> writtenNumbers() {
        return ATTRIBUTES.stream()
                .flatMap(
                        attribute -> numbers(attribute.getReturnType()).map(number -> Arguments.of(attribute, number)));
    }

    @ParameterizedTest
    @MethodSource("writtenNumbers")
    void everyOtherNumberIsAValueThatIsChecked(Method attribute, Number number) {
        assertThat(written(attribute.getName(), number))
                .containsEntry(LimitProperty.valueOf(constant(attribute)), number);
    }

    private static Stream<Number> numbers(Class<?> type) {
        if (type == double.class) {
            return Stream.of(
                    -1.7, -1.0, 0.0, 0.5, -Double.MAX_VALUE, Double.MIN_VALUE, Double.NEGATIVE_INFINITY, 1e300);
        }
        return type == long.class
                ? Stream.of(-1L, 0L, 1L - Long.MAX_VALUE, -Long.MAX_VALUE, (long) Integer.MIN_VALUE, Long.MAX_VALUE)
                : Stream.of(-1, 0, -Integer.MAX_VALUE, Integer.MAX_VALUE);
    }

    private static String constant(Method attribute) {
        return attribute.getName().replaceAll("([A-Z])", "_$1").toUpperCase(Locale.ROOT);
    }

    private static Map<LimitProperty, Object> written(String attribute, Object value) {
        Method any = UnsetNumbersTest.class.getDeclaredMethods()[0];
        Map<String, Object> attributes = Map.of("name", "any", "algorithm", Algorithm.TOKEN_BUCKET, attribute, value);
        return new Declaration(MergedAnnotation.of(RateLimited.class, attributes), any, Object.class, true, 1)
                .properties(text -> text);
    }
}
