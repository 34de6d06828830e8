package org.springframework.samples.contacts;

import io.ratelimited.spring.RateLimited;
import java.util.List;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.annotation.Id;
import org.springframework.data.keyvalue.repository.KeyValueRepository;
import org.springframework.data.map.repository.config.EnableMapRepositories;

/** An application whose package begins as Spring's own do, with a limited repository that another bean is given. */
@Configuration(proxyBeanMethods = false)
@EnableMapRepositories(considerNestedRepositories = true)
public class ContactsApplication {

    @Bean
    Desk desk(Contacts contacts) {
        return new Desk(contacts);
    }

    /** Gives out contacts. */
    public static class Desk {

        private final Contacts contacts;

        Desk(Contacts contacts) {
            this.contacts = contacts;
        }

        /** Has a limit that the properties change in part. */
        @RateLimited(name = "show", rate = "10/s", burst = 20, key = "#name")
        public List<Contact> show(String name) {
            return contacts.findByName(name);
        }

        /** Calls the method above behind its proxy. */
        public List<Contact> showAda() {
            return show("Ada");
        }
    }

    /** Has limits on a derived query and on an overridden method. */
    public interface Contacts extends KeyValueRepository<Contact, String> {

        /** A derived query. */
        @RateLimited(name = "find", rate = "5/s")
        List<Contact> findByName(String name);

        /** A limit with a default name. */
        @RateLimited(rate = "2/s")
        long countByName(String name);

        @Override
        @RateLimited(name = "save", rate = "4/s")
        <S extends Contact> S save(S contact);

        @Override
        @RateLimited(name = "delete", rate = "3/s")
        void delete(Contact contact);
    }

    /** A person. */
    public record Contact(@Id String id, String name) {}
}
