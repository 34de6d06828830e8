package io.ratelimited.spring.call;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.config.ConfigurableBeanFactory;
import org.springframework.expression.spel.SpelNode;
import org.springframework.expression.spel.ast.BeanReference;

/**
 * The beans that an expression names, as variables of it: SpEL compiles a variable, but not a bean reference, and resolves
 * one anew for each call. A bean is got by the first call that needs it. Only a singleton is kept. Thread-safe.
 */
final class BeanVariables {

    private static final String PREFIX = "bean$";

    /** Of an expression that is a parameter: an application may have a thousand of them. */
    static final BeanVariables NONE = new BeanVariables();

    private final Map<String, NamedBean> beans = new HashMap<>();
    private final String text;

    private BeanVariables() {
        this.text = "";
    }

    /**
     * Finds the beans of an expression.
     *
     * @param parsed the text as it was parsed
     */
    BeanVariables(String text, SpelNode parsed, ConfigurableBeanFactory factory) {
        List<BeanReference> references = new ArrayList<>();
        collect(parsed, references);
        references.sort((one, other) -> other.getStartPosition() - one.getStartPosition());
        StringBuilder rewritten = new StringBuilder(text);
        for (BeanReference reference : references) {
            String name = name(reference);
            String variable = PREFIX + beans.size();
            beans.put(variable, new NamedBean(name, factory));
            // The position of a reference is that of its name, or of the & before it.
            int start = reference.getStartPosition();
            rewritten.replace(
                    name.startsWith("&") ? start : text.lastIndexOf('@', start),
                    reference.getEndPosition(),
                    "#" + variable);
        }
        this.text = rewritten.toString();
    }

    private static void collect(SpelNode node, List<BeanReference> references) {
        if (node instanceof BeanReference reference) {
            references.add(reference);
        }
        for (int i = 0; i < node.getChildCount(); i++) {
            collect(node.getChild(i), references);
        }
    }

    /** The name of a bean, with {@code &} for the factory that makes it. */
    static String name(BeanReference reference) {
        String written = reference.toStringAST().replace("'", "");
        return written.startsWith("@") ? written.substring(1) : written;
    }

    boolean isEmpty() {
        return beans.isEmpty();
    }

    /** The expression with variables for its beans. */
    String text() {
        return text;
    }

    /** The bean of a variable; null when the variable is none of these. */
    @Nullable
    Object get(String variable) {
        NamedBean bean = beans.get(variable);
        return bean == null ? null : bean.get();
    }

    private static final class NamedBean {

        private final String name;
        private final ConfigurableBeanFactory factory;
        private volatile @Nullable Object singleton;

        private NamedBean(String name, ConfigurableBeanFactory factory) {
            this.name = name;
            this.factory = factory;
        }

        private Object get() {
            Object known = singleton;
            if (known != null) {
                return known;
            }
            Object bean = factory.getBean(name);
            if (factory.isSingleton(name)) {
                singleton = bean;
            }
            return bean;
        }
    }
}
