package com.example;
@rate-limit-spring-boot-starter/src/test/java/io/ratelimited/spring/aot/EveryKindApplication.java java@
