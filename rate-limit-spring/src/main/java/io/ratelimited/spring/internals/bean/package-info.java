/** Internal. How the beans of the library are declared. */
@NullMarked
package io.ratelimited.spring.internals.bean;

import org.jspecify.annotations.NullMarked;
