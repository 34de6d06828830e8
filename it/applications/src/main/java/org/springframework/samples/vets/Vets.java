package org.springframework.samples.vets;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

@SpringBootApplication
public class Vets {

    public static void main(String[] args) {
        SpringApplication.run(Vets.class, args);
    }
}
