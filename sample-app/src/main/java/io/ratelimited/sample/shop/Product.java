package io.ratelimited.sample.shop;

/** Something the shop sells. */
record Product(String id, String name, int cents) {}
