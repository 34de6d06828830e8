package io.ratelimited.spring.limit;

import java.util.Collection;
import java.util.Comparator;
import java.util.Locale;
import java.util.Optional;

/** Finds the known name that is most similar to a misspelt one. */
public final class SimilarName {

    private SimilarName() {}

    /** {@code " (did you mean 'search'?)"}, or nothing when no known name is near. */
    public static String hint(String name, Collection<String> known) {
        return find(name, known).map(near -> " (did you mean '" + near + "'?)").orElse("");
    }

    /** The nearest of the other names, if one is near. */
    static Optional<String> find(String name, Collection<String> known) {
        return known.stream()
                .filter(other -> !other.equals(name))
                .filter(other -> distance(name, other) <= Math.max(1, Math.min(name.length(), other.length()) / 3))
                .min(Comparator.comparingInt(other -> distance(name, other)));
    }

    /** The insertions, deletions and replacements from one to the other, regardless of case (Levenshtein). */
    private static int distance(String one, String other) {
        String a = one.toLowerCase(Locale.ROOT);
        String b = other.toLowerCase(Locale.ROOT);
        int[] row = new int[b.length() + 1];
        for (int j = 0; j < row.length; j++) {
            row[j] = j;
        }
        for (int i = 1; i <= a.length(); i++) {
            int diagonal = row[0];
            row[0] = i;
            for (int j = 1; j <= b.length(); j++) {
                int replaced = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
                diagonal = row[j];
                row[j] = Math.min(replaced, Math.min(row[j - 1], row[j]) + 1);
            }
        }
        return row[b.length()];
    }
}
