package io.ratelimited.spring.internals.check;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.Explanation;
import io.ratelimited.spring.RateLimited;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A wrong expression is reported at the place that sets it; a property that the declared type lacks, at the start. */
@ExtendWith(CapturedLog.Capture.class)
final class ExpressionPlaceTest {

    @ParameterizedTest
    @CsvSource({
        "key, #nobody",
        "permits, #nobody",
        "when, #nobody",
        "tier, #nobody",
        "charge, #nobody",
        "key, 'owner..id'",
        "fallback, nobody"
    })
    void wrongExpressionOfApplicationYmlIsReportedThere(String property, String text) {
        ContextRunner.with(ContextRunner.limited(), Pets.class)
                .withPropertyValues("rate-limit.limits.pets." + property + "=" + text)
                .run(context -> assertThat(
                                Explanation.of(context.getStartupFailure()).getDescription())
                        .contains("Origin: rate-limit.limits.pets." + property + ", used by @RateLimited on "
                                + Pets.class.getName()));
    }

    @Test
    void wrongExpressionOfTheAnnotationIsReportedThereWhateverTheProperties() {
        ContextRunner.with(ContextRunner.limited(), Wrong.class)
                .withPropertyValues("rate-limit.limits.wrong.rate=9/s")
                .run(context -> assertThat(
                                Explanation.of(context.getStartupFailure()).getDescription())
                        .contains("Origin: @RateLimited on " + Wrong.class.getName() + ".find(Owner)."));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "#owner.ownerid",
                "{#owner.name, #owner.ownerid}",
                "#owner.name + #owner.ownerid",
                "#owners[0] + #owner.ownerid"
            })
    void propertyThatTheDeclaredTypeLacksIsWarnedOfAtTheStart(String key, CapturedLog output) {
        ContextRunner.with(ContextRunner.limited(), Pets.class)
                .withPropertyValues("rate-limit.limits.pets.key=" + key)
                .run(context -> assertThat(context).hasNotFailed());
        assertThat(output)
                .contains("The key of rate limit 'pets' \"" + key + "\" reads ")
                .contains("ownerid of " + Owner.class.getName());
    }

    /** No subclass can have it: every call would fail. */
    @ParameterizedTest
    @CsvSource({
        "key, #owner.address.citty, citty, 'Address', city",
        "permits, #address.citty, citty, 'Address', city",
        "when, #address?.citty == 'x', citty, 'Address', city",
        "key, #text.lenght, lenght, String, length",
        "key, #address.hidden, hidden, 'Address', ''",
        "charge, #result.citty, citty, 'Address', city"
    })
    void propertyThatAFinalClassLacksStopsTheStart(
            String property, String text, String missing, String owner, String meant) {
        ContextRunner.with(ContextRunner.limited(), Final.class)
                .withPropertyValues("rate-limit.limits.final." + property + "=" + text)
                .run(context -> assertThat(
                                Explanation.of(context.getStartupFailure()).getDescription())
                        .contains(
                                "Origin: rate-limit.limits.final." + property,
                                property + " reads " + missing + " of ",
                                owner + ", which does not declare it, in \"" + text + "\"",
                                meant == null || meant.isEmpty() ? "" : "did you mean '" + meant + "'?"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "#address.city",
                "#address.lines.length",
                "#optional?.city",
                "#type.name",
                "#text.bytes",
                "#address.class.name"
            })
    void propertyThatAFinalClassHasStartsAndIsRead(String key) {
        ContextRunner.with(ContextRunner.limited(), Final.class)
                .withPropertyValues("rate-limit.limits.final.key=" + key)
                .run(context -> assertThat(context.getBean(Final.class)
                                .find(
                                        new Owner(),
                                        new Address("rome"),
                                        "text",
                                        Optional.of(new Address("rome")),
                                        String.class))
                        .isEqualTo(new Address("rome")));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "#owner.name",
                "#owner.address.city",
                "#owner.address.lines.length",
                "#owner.address.zip",
                "#owner.toString()",
                "#anything.whatever",
                "#owners[0].ownerid"
            })
    void propertyThatMayBeThereIsNotWarnedOf(String key, CapturedLog output) {
        ContextRunner.with(ContextRunner.limited(), Pets.class)
                .withPropertyValues("rate-limit.limits.pets.key=" + key)
                .run(context -> assertThat(context).hasNotFailed());
        assertThat(output).doesNotContain("which does not declare it");
    }

    @Test
    void propertyOfATypeArgumentIsThatOfTheClassThatStatesIt(CapturedLog output) {
        ContextRunner.with(ContextRunner.limited(), DogHandler.class)
                .run(context -> assertThat(context).hasNotFailed());
        assertThat(output).doesNotContain("which does not declare it");
    }

    abstract static class Handler<T extends Animal> {

        @RateLimited(
                name = "handler",
                rate = "100/h",
                key = "#animal.owner.address",
                charge = "#result.owner.name.length")
        public T handle(T animal) {
            return animal;
        }
    }

    static class DogHandler extends Handler<Dog> {}

    static class Animal {}

    static class Dog extends Animal {
        public Owner getOwner() {
            return new Owner();
        }
    }

    static class Pets {

        @RateLimited(name = "pets", rate = "5/m", key = "#owner.name")
        public void find(Owner owner, List<Owner> owners, Map<String, String> more, Object anything) {}
    }

    static class Final {

        @RateLimited(name = "final", rate = "5/m", key = "#address.city")
        public Address find(Owner owner, Address address, String text, Optional<Address> optional, Class<?> type) {
            return address;
        }
    }

    static class Wrong {

        @RateLimited(name = "wrong", rate = "5/m", key = "#nobody")
        public void find(Owner owner) {}
    }

    static class Owner {

        public String getName() {
            return "name";
        }

        public Address getAddress() {
            return new Address("city");
        }
    }

    record Address(String city) {

        @SuppressWarnings("UnusedMethod") // an expression cannot call it
        private String hidden() {
            return city;
        }

        public String[] getLines() {
            return new String[0];
        }

        public String getZip() {
            return "zip";
        }
    }
}
