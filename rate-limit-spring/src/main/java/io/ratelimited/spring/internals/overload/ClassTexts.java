package io.ratelimited.spring.internals.overload;

import io.ratelimited.core.InvalidLimitException;
import java.math.BigDecimal;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;

/** Classes of calls and their shares as properties state them. */
public final class ClassTexts {

    private static final Pattern PERCENTAGE = Pattern.compile("\\d{1,3}([.]\\d{1,6})?\\s*%");

    private ClassTexts() {}

    /** The names of a list of a property. */
    public static List<String> names(Collection<?> stated) {
        return stated.stream().map(name -> String.valueOf(name).strip()).toList();
    }

    /**
     * The shares of the percentages of a property.
     *
     * @throws InvalidLimitException when one is not written as in {@code 5%}
     */
    public static Map<String, Double> shares(Map<?, ?> percentages) {
        Map<String, Double> shares = new TreeMap<>();
        percentages.forEach((name, stated) -> {
            String text = String.valueOf(stated).strip();
            if (!PERCENTAGE.matcher(text).matches()) {
                throw new InvalidLimitException(
                        "shares", "must be percentages such as 5%: " + name + " is \"" + text + "\"");
            }
            BigDecimal percent =
                    new BigDecimal(text.substring(0, text.length() - 1).strip());
            shares.put(String.valueOf(name).strip(), percent.movePointLeft(2).doubleValue());
        });
        return shares;
    }

    /** The shares of a limit as a property states them. */
    public static Map<String, String> percentages(Map<String, Double> shares) {
        Map<String, String> percentages = new TreeMap<>();
        shares.forEach((name, share) -> percentages.put(
                name,
                BigDecimal.valueOf(share).movePointRight(2).stripTrailingZeros().toPlainString() + "%"));
        return percentages;
    }
}
