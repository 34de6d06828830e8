package com.example;

import org.springframework.beans.factory.BeanFactory;
import org.springframework.boot.CommandLineRunner;
import org.springframework.stereotype.Component;

@Component
class EveryKind implements CommandLineRunner {

    private final BeanFactory beans;

    EveryKind(BeanFactory beans) {
        this.beans = beans;
    }

    @Override
    public void run(String... arguments) {
        System.out.println("every kind " + EveryKindApplication.callEverything(beans));
    }
}
