package io.ratelimited.spring.test.guide;

import org.springframework.boot.autoconfigure.SpringBootApplication;

/** The application of a reader of the guide. */
@SpringBootApplication
class QuoteApplication {}
