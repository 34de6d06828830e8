package io.ratelimited.redis.simulation;

import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.simulation.Simulations.Plans;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Functions of the scripts that do something else: those of a family of algorithms, which {@code common.lua} lists, or others;
 * or {@code redis.call} and {@code redis.pcall}, by which a script reads and writes.
 *
 * @param functions by their names, such as {@code fixed_window.open}; none for the commands
 * @param change an expression: the function in place of each, which may call {@code shipped} and the others of its
 *     {@code family}
 */
record ScriptMutant(String breaks, Plans plans, List<String> functions, String change) implements Mutant {

    private static final Path SCRIPTS = Path.of("io/ratelimited/redis");

    static ScriptMutant functions(String breaks, Plans plans, List<String> functions, String change) {
        return new ScriptMutant(breaks, plans, functions, change);
    }

    /** @param change has the name of a command and its arguments */
    static ScriptMutant commands(String breaks, Plans plans, String change) {
        return new ScriptMutant(breaks, plans, List.of(), change);
    }

    @Override
    public void writeTo(Path classes) throws IOException {
        Path changed = classes.resolve(SCRIPTS);
        Files.createDirectories(changed);
        if (functions.isEmpty()) {
            // The first file of a script has the time; all other commands come after it.
            Path first = changed.resolve("time.lua");
            Files.writeString(first, Files.readString(shipped().resolve("time.lua")) + """
                    local shipped_redis = redis
                    local redis = { error_reply = redis.error_reply, log = redis.log, LOG_WARNING = redis.LOG_WARNING }
                    for _, name in ipairs({ 'call', 'pcall' }) do
                      local shipped = shipped_redis[name]
                      redis[name] = %s
                    end
                    """.formatted(change));
        }
        for (String function : functions) {
            change(function, changed);
        }
    }

    /** Changes a function behind its definition, which ends at the indentation at which it begins. */
    private void change(String function, Path changed) throws IOException {
        Pattern definition = Pattern.compile(
                "^( *)(?:local )?function " + Pattern.quote(function) + "\\(.*?^\\1end$",
                Pattern.MULTILINE | Pattern.DOTALL);
        String family = function.contains(".") ? function.substring(0, function.indexOf('.')) : "nil";
        String next =
                "\ndo\nlocal shipped, family = %s, %s\n%s = %s\nend\n".formatted(function, family, function, change);
        long found = 0;
        try (Stream<Path> files = Files.list(shipped())) {
            for (Path file :
                    files.filter(path -> path.toString().endsWith(".lua")).toList()) {
                Path written = changed.resolve(Objects.requireNonNull(file.getFileName()));
                // Another function of the mutant may be in the same file.
                Matcher matcher = definition.matcher(Files.readString(Files.exists(written) ? written : file));
                long definitions = matcher.results().count();
                found += definitions;
                if (definitions > 0) {
                    Files.writeString(written, matcher.replaceAll("$0" + Matcher.quoteReplacement(next)));
                }
            }
        }
        if (found != 1) {
            throw new AssertionError(
                    found + " definitions of the function " + function + " in the scripts, for the mutant: " + breaks);
        }
    }

    private static Path shipped() {
        try {
            return Path.of(Objects.requireNonNull(Script.class.getResource("/io/ratelimited/redis/time.lua"))
                            .toURI())
                    .getParent();
        } catch (URISyntaxException ex) {
            throw new IllegalStateException(ex);
        }
    }

    @Override
    public String toString() {
        return breaks;
    }
}
