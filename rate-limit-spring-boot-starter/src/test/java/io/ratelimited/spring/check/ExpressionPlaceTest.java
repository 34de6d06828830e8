package io.ratelimited.spring.check;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimited;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** A wrong expression is reported at the place that sets it; a property that the declared type lacks, at the start. */
@ExtendWith(OutputCaptureExtension.class)
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
        Contexts.with(Contexts.runner(), Pets.class)
                .withPropertyValues("rate-limit.limits.pets." + property + "=" + text)
                .run(context -> assertThat(
                                Contexts.analyse(context.getStartupFailure()).getDescription())
                        .contains("(rate-limit.limits.pets." + property + ", used by @RateLimited on "
                                + Pets.class.getName()));
    }

    @Test
    void wrongExpressionOfTheAnnotationIsReportedThereWhateverTheProperties() {
        Contexts.with(Contexts.runner(), Wrong.class)
                .withPropertyValues("rate-limit.limits.wrong.rate=9/s")
                .run(context -> assertThat(
                                Contexts.analyse(context.getStartupFailure()).getDescription())
                        .contains("(@RateLimited on " + Wrong.class.getName() + ".find(Owner))"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "#owner.ownerid",
                "#owner.address.citty",
                "{#owner.name, #owner.ownerid}",
                "#owner.name + #owner.ownerid",
                "#owners[0] + #owner.ownerid"
            })
    void propertyThatTheDeclaredTypeLacksIsWarnedOfAtTheStart(String key, CapturedOutput output) {
        Contexts.with(Contexts.runner(), Pets.class)
                .withPropertyValues("rate-limit.limits.pets.key=" + key)
                .run(context -> assertThat(context).hasNotFailed());
        assertThat(output)
                .contains("The key of rate limit 'pets' \"" + key + "\" reads ")
                .containsAnyOf("ownerid of " + Owner.class.getName(), "citty of " + Address.class.getName());
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
    void propertyThatMayBeThereIsNotWarnedOf(String key, CapturedOutput output) {
        Contexts.with(Contexts.runner(), Pets.class)
                .withPropertyValues("rate-limit.limits.pets.key=" + key)
                .run(context -> assertThat(context).hasNotFailed());
        assertThat(output).doesNotContain("which does not declare it");
    }

    static class Pets {

        @RateLimited(name = "pets", rate = "5/m", key = "#owner.name")
        public void find(Owner owner, List<Owner> owners, Map<String, String> more, Object anything) {}
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

        public String[] getLines() {
            return new String[0];
        }

        public String getZip() {
            return "zip";
        }
    }
}
