package io.ratelimited.spring.internals.text;

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
    public static Optional<String> find(String name, Collection<String> known) {
        return known.stream()
                .filter(other -> !other.equals(name))
                .filter(other -> distance(name, other) <= Math.max(1, Math.min(name.length(), other.length()) / 3))
                .min(Comparator.comparingInt(other -> distance(name, other)));
    }

    /** The insertions, deletions, replacements and swaps of neighbours from one to the other, regardless of case. */
    private static int distance(String one, String other) {
        String a = one.toLowerCase(Locale.ROOT);
        String b = other.toLowerCase(Locale.ROOT);
        int[][] steps = new int[a.length() + 1][b.length() + 1];
        for (int i = 0; i <= a.length(); i++) {
            for (int j = 0; j <= b.length(); j++) {
                if (i == 0 || j == 0) {
                    steps[i][j] = i + j;
                    continue;
                }
                int replaced = steps[i - 1][j - 1] + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
                steps[i][j] = Math.min(replaced, Math.min(steps[i][j - 1], steps[i - 1][j]) + 1);
                if (i > 1 && j > 1 && a.charAt(i - 1) == b.charAt(j - 2) && a.charAt(i - 2) == b.charAt(j - 1)) {
                    steps[i][j] = Math.min(steps[i][j], steps[i - 2][j - 2] + 1);
                }
            }
        }
        return steps[a.length()][b.length()];
    }
}
