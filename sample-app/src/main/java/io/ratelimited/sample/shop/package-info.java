/**
 * A small shop. Read {@code SearchController} first (everything in {@code application.yml}), then {@code
 * OrderController} (a limit for the class, and two on one method), then the services, which wait or fall back.
 */
@NullMarked
package io.ratelimited.sample.shop;

import org.jspecify.annotations.NullMarked;
