package io.ratelimited.spring.internals.expression;

import io.ratelimited.spring.internals.text.LogText;
import java.security.Principal;
import org.jspecify.annotations.Nullable;
import org.springframework.core.convert.TypeDescriptor;
import org.springframework.expression.spel.support.StandardTypeConverter;

/**
 * Makes texts of objects in expressions, as in {@code principal + ':' + #region}: of a caller its name. An object without {@code
 * toString()} has no text. Thread-safe.
 */
final class CallerTexts extends StandardTypeConverter {

    static final CallerTexts CONVERTER = new CallerTexts();

    private static final ClassValue<Boolean> WITHOUT_TEXT = new ClassValue<>() {
        @Override
        protected Boolean computeValue(Class<?> type) {
            try {
                return !type.isInterface() && type.getMethod("toString").getDeclaringClass() == Object.class;
            } catch (NoSuchMethodException ex) {
                return false;
            }
        }
    };

    private CallerTexts() {}

    @Override
    public boolean canConvert(@Nullable TypeDescriptor source, TypeDescriptor target) {
        return isText(source, target) || super.canConvert(source, target);
    }

    private static boolean isText(@Nullable TypeDescriptor source, TypeDescriptor target) {
        return source != null
                && target.getType() == String.class
                && (Principal.class.isAssignableFrom(source.getType()) || WITHOUT_TEXT.get(source.getType()));
    }

    @Override
    public @Nullable Object convertValue(
            @Nullable Object value, @Nullable TypeDescriptor source, TypeDescriptor target) {
        if (value == null || !isText(TypeDescriptor.forObject(value), target)) {
            return super.convertValue(value, source, target);
        }
        if (value instanceof Principal caller) {
            return CallerNames.of(caller);
        }
        throw withoutText(value);
    }

    /** Returns whether the text of an object is that of {@link Object#toString}. */
    static boolean isWithoutText(Object object) {
        return WITHOUT_TEXT.get(object.getClass());
    }

    static IllegalArgumentException withoutText(Object object) {
        return new IllegalArgumentException(
                "a " + LogText.escaped(object.getClass().getName())
                        + " has no toString(), so its text differs for each object: use its id");
    }
}
