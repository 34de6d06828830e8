/** Internal. Annotated methods: which limits an annotation declares, how each kind of method is called, and the advice around it. */
@NullMarked
package io.ratelimited.spring.internals.aop;

import org.jspecify.annotations.NullMarked;
