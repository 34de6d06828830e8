/** Internal. Conditions and ahead-of-time hints of the auto-configurations. Each auto-configuration is in the package it wires. */
@NullMarked
package io.ratelimited.spring.autoconfigure;

import org.jspecify.annotations.NullMarked;
