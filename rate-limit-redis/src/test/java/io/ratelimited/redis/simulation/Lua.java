package io.ratelimited.redis.simulation;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.StringReader;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.apache.bcel.classfile.ClassParser;
import org.apache.bcel.classfile.ConstantMethodref;
import org.apache.bcel.classfile.ConstantNameAndType;
import org.apache.bcel.classfile.JavaClass;
import org.apache.bcel.generic.ConstantPoolGen;
import org.jspecify.annotations.Nullable;
import org.luaj.vm2.Globals;
import org.luaj.vm2.LuaError;
import org.luaj.vm2.LuaFunction;
import org.luaj.vm2.LuaString;
import org.luaj.vm2.LuaTable;
import org.luaj.vm2.LuaValue;
import org.luaj.vm2.Varargs;
import org.luaj.vm2.compiler.LuaC;
import org.luaj.vm2.lib.BaseLib;
import org.luaj.vm2.lib.OneArgFunction;
import org.luaj.vm2.lib.PackageLib;
import org.luaj.vm2.lib.StringLib;
import org.luaj.vm2.lib.TableLib;
import org.luaj.vm2.lib.VarArgFunction;
import org.luaj.vm2.lib.jse.JseMathLib;
import org.luaj.vm2.luajc.LuaJC;

/**
 * Runs the scripts as Redis does: with its functions and its rules for replies. For one thread. Public because
 * {@link MutantsTest} loads all other classes again and again, and this one once.
 */
public final class Lua {

    private static final LuaString ERR = LuaString.valueOf("err");
    private static final LuaString OK = LuaString.valueOf("ok");
    private static final LuaString KEYS = LuaString.valueOf("KEYS");
    private static final LuaString ARGV = LuaString.valueOf("ARGV");
    private static final Pattern ERROR_OF_A_COMMAND = Pattern.compile("^[A-Z]+ ");
    /** Where a script that is interpreted raises an error. */
    private static final Pattern AT = Pattern.compile("^script:\\d+ ");

    /** Compiling a script takes seconds, in which it is interpreted about so often. */
    private static final Lua SHARED = new Lua(100_000);

    private final Globals globals = new Globals();
    private final int interpretedRuns;
    private final Map<String, Loaded> scripts = new HashMap<>();
    /** The last failure of a script that is no error of a command. */
    private @Nullable RuntimeException failure;
    /** Runs the commands of the script that is running. */
    private Function<Varargs, LuaValue> commands = args -> LuaValue.NIL;

    /** The only one. */
    public static Lua shared() {
        return SHARED;
    }

    /** Interprets a script so many times before it compiles it. */
    Lua(int interpretedRuns) {
        this.interpretedRuns = interpretedRuns;
        globals.load(new BaseLib());
        globals.load(new PackageLib());
        globals.load(new TableLib());
        globals.load(new StringLib());
        globals.load(new JseMathLib());
        LuaC.install(globals);
        globals.set("unpack", globals.get("table").get("unpack"));
        globals.get("string").set("format", new Format());
        LuaTable redis = new LuaTable();
        redis.set("call", new VarArgFunction() {
            @Override
            public Varargs invoke(Varargs args) {
                try {
                    return commands.apply(args);
                } catch (RedisError ex) {
                    throw new LuaError(failure(ex.getMessage()));
                }
            }
        });
        redis.set("pcall", new VarArgFunction() {
            @Override
            public Varargs invoke(Varargs args) {
                try {
                    return commands.apply(args);
                } catch (RedisError ex) {
                    return failure(ex.getMessage());
                }
            }
        });
        redis.set("error_reply", new OneArgFunction() {
            @Override
            public LuaValue call(LuaValue text) {
                return failure(text.tojstring());
            }
        });
        globals.set("redis", redis);
        LuaTable struct = new LuaTable();
        struct.set("pack", new Pack());
        struct.set("unpack", new Unpack());
        globals.set("struct", struct);
    }

    /** Returns the last failure of a script that is no error of a command, and forgets it. */
    @Nullable
    RuntimeException lastFailure() {
        RuntimeException last = failure;
        failure = null;
        return last;
    }

    private static LuaTable failure(String text) {
        LuaTable table = new LuaTable();
        table.rawset(ERR, LuaString.valueOf(text));
        return table;
    }

    /**
     * Runs a script.
     *
     * @param commands runs its commands, and throws a {@link RedisError} for each that fails
     * @return integers as Long, tables as List, the rest as String
     */
    public List<Object> run(
            String text, List<LuaString> keys, List<LuaString> args, Function<Varargs, LuaValue> commands) {
        LuaFunction script = scripts.computeIfAbsent(text, Loaded::new).next();
        Function<Varargs, LuaValue> before = this.commands;
        this.commands = commands;
        globals.rawset(KEYS, table(keys));
        globals.rawset(ARGV, table(args));
        try {
            return reply(script.call());
        } catch (LuaError ex) {
            LuaValue cause = ex.getMessageObject();
            if (cause instanceof LuaTable table && table.rawget(ERR).isstring()) {
                throw new RedisError(table.rawget(ERR).tojstring());
            }
            String message = AT.matcher(ex.getMessage()).replaceFirst("");
            if (ERROR_OF_A_COMMAND.matcher(message).find()) {
                throw new RedisError("ERR " + message);
            }
            // No fault of a server, but of the script: callers would fall back, and nobody would notice.
            failure = ex;
            throw new IllegalStateException("a script fails", ex);
        } catch (IllegalStateException ex) {
            failure = ex;
            throw ex;
        } finally {
            this.commands = before;
        }
    }

    /** A script, and how often it has run. */
    private final class Loaded {

        private final String text;
        private LuaFunction function;
        private int runs;

        private Loaded(String text) {
            this.text = text;
            this.function = (LuaFunction) globals.load(text, "script");
        }

        private LuaFunction next() {
            if (runs++ == interpretedRuns) {
                function = compile(text);
            }
            return function;
        }
    }

    /** To Java classes: a script runs twice as fast as one that is interpreted. */
    private LuaFunction compile(String text) {
        try {
            LuaFunction script = (LuaFunction)
                    new Scripts(LuaJC.instance.compileAll(new StringReader(text), "Script", "script", globals, false))
                            .loadClass("Script")
                            .getConstructor()
                            .newInstance();
            script.initupvalue1(globals);
            return script;
        } catch (IOException | ReflectiveOperationException ex) {
            throw new IllegalStateException(ex);
        }
    }

    /** The classes of a script, whose tables are {@link Fields}. */
    private static final class Scripts extends ClassLoader {

        private final Map<?, ?> compiled;

        private Scripts(Map<?, ?> compiled) {
            super(Lua.class.getClassLoader());
            this.compiled = compiled;
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            if (!(compiled.get(name) instanceof byte[] code)) {
                throw new ClassNotFoundException(name);
            }
            try {
                JavaClass script = new ClassParser(new ByteArrayInputStream(code), name).parse();
                ConstantPoolGen constants = new ConstantPoolGen(script.getConstantPool());
                int fields = constants.addClass(Fields.class.getName());
                for (int i = 1; i < constants.getSize(); i++) {
                    if (constants.getConstant(i) instanceof ConstantMethodref called
                            && constants.getConstant(called.getNameAndTypeIndex()) instanceof ConstantNameAndType method
                            && method.getName(constants.getConstantPool()).equals("tableOf")
                            && method.getSignature(constants.getConstantPool()).startsWith("(II)")) {
                        called.setClassIndex(fields);
                    }
                }
                script.setConstantPool(constants.getFinalConstantPool());
                byte[] changed = script.getBytes();
                return defineClass(name, changed, 0, changed.length);
            } catch (IOException ex) {
                throw new UncheckedIOException(ex);
            }
        }
    }

    private static LuaTable table(List<LuaString> values) {
        LuaTable table = new LuaTable(values.size(), 0);
        for (int i = 0; i < values.size(); i++) {
            table.rawset(i + 1, values.get(i));
        }
        return table;
    }

    private static List<Object> reply(LuaValue value) {
        if (!(value instanceof LuaTable table)) {
            return value.isnil() ? List.of() : List.of(one(value));
        }
        if (table.rawget(ERR).isstring()) {
            throw new RedisError(table.rawget(ERR).tojstring());
        }
        if (table.rawget(OK).isstring()) {
            return List.of(table.rawget(OK).tojstring());
        }
        return all(table);
    }

    private static List<Object> all(LuaTable table) {
        List<Object> all = new ArrayList<>();
        for (int i = 1; !table.rawget(i).isnil(); i++) {
            all.add(one(table.rawget(i)));
        }
        return all;
    }

    private static Object one(LuaValue value) {
        if (value instanceof LuaTable table) {
            return all(table);
        }
        return value instanceof LuaString text ? text(text) : (Object) (long) value.checkdouble();
    }

    /** Replies are ASCII. */
    public static String text(LuaString text) {
        return new String(text.m_bytes, text.m_offset, text.m_length, StandardCharsets.ISO_8859_1);
    }

    /** A number with 17 digits, as C writes it with %.17g. */
    public static String general(double number) {
        if (!Double.isFinite(number)) {
            return Double.isNaN(number) ? "nan" : number > 0 ? "inf" : "-inf";
        }
        if (number == Math.rint(number) && Math.abs(number) < 1e17) {
            return number == 0 && 1 / number < 0 ? "-0" : Long.toString((long) number);
        }
        BigDecimal exact = new BigDecimal(number).round(new MathContext(17, RoundingMode.HALF_EVEN));
        int exponent = exact.precision() - exact.scale() - 1;
        if (exponent < -4 || exponent >= 17) {
            String digits = exact.unscaledValue().abs().toString();
            String fraction = digits.substring(1).replaceAll("0+$", "");
            return (number < 0 ? "-" : "") + digits.charAt(0) + (fraction.isEmpty() ? "" : "." + fraction) + "e"
                    + (exponent < 0 ? "-" : "+") + (Math.abs(exponent) < 10 ? "0" : "") + Math.abs(exponent);
        }
        return exact.stripTrailingZeros().toPlainString();
    }

    /** {@code string.format} with what the scripts use: %d, %.0f and %.17g. */
    private static final class Format extends VarArgFunction {

        private static final LuaString WHOLE = LuaString.valueOf("%.0f");
        private static final LuaString INTEGER = LuaString.valueOf("%d");

        @Override
        public Varargs invoke(Varargs args) {
            LuaString first = args.checkstring(1);
            if (first.raweq(WHOLE) || first.raweq(INTEGER)) {
                return LuaString.valueOf(whole(args.checkdouble(2)));
            }
            String pattern = first.tojstring();
            StringBuilder text = new StringBuilder();
            int next = 2;
            for (int i = 0; i < pattern.length(); i++) {
                if (pattern.startsWith("%.0f", i)) {
                    text.append(whole(args.checkdouble(next++)));
                    i += 3;
                } else if (pattern.startsWith("%.17g", i)) {
                    text.append(general(args.checkdouble(next++)));
                    i += 4;
                } else if (pattern.charAt(i) == '%') {
                    throw new LuaError("the simulation has no format " + pattern);
                } else {
                    text.append(pattern.charAt(i));
                }
            }
            return LuaString.valueOf(text.toString());
        }

        private static String whole(double number) {
            if (Math.abs(number) < 1e18) {
                return Long.toString((long) Math.rint(number));
            }
            return Double.isFinite(number) ? new BigDecimal(number).toPlainString() : general(number);
        }
    }

    /** {@code struct.pack} for big-endian unsigned integers. */
    private static final class Pack extends VarArgFunction {

        @Override
        public Varargs invoke(Varargs args) {
            LuaString sizes = sizes(args);
            byte[] packed = new byte[8 * sizes.length()];
            int end = 0;
            for (int i = 0; 2 * i + 2 < sizes.length(); i++) {
                int size = sizes.luaByte(2 * i + 2) - '0';
                long number = (long) args.checkdouble(i + 2);
                for (int at = size - 1; at >= 0; at--) {
                    packed[end + at] = (byte) number;
                    number >>= 8;
                }
                end += size;
            }
            return LuaString.valueOf(packed, 0, end);
        }
    }

    private static LuaString sizes(Varargs args) {
        LuaString sizes = args.checkstring(1);
        if (sizes.luaByte(0) != '>' || sizes.length() % 2 == 0) {
            throw new LuaError("the simulation has no structure " + sizes.tojstring());
        }
        return sizes;
    }

    /** {@code struct.unpack} for the same, with the position behind them. */
    private static final class Unpack extends VarArgFunction {

        @Override
        public Varargs invoke(Varargs args) {
            LuaString sizes = sizes(args);
            LuaString packed = args.checkstring(2);
            int at = args.optint(3, 1) - 1;
            int count = sizes.length() / 2;
            LuaValue[] all = new LuaValue[count + 1];
            for (int i = 0; i < count; i++) {
                int size = sizes.luaByte(2 * i + 2) - '0';
                if (at + size > packed.length()) {
                    throw new LuaError("data string too short");
                }
                long number = 0;
                for (int end = at + size; at < end; at++) {
                    number = number << 8 | packed.luaByte(at);
                }
                all[i] = LuaValue.valueOf((double) number);
            }
            all[count] = LuaValue.valueOf(at + 1);
            return LuaValue.varargsOf(all);
        }
    }
}
