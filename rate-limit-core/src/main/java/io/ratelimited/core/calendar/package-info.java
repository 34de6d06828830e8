/** Weeks, months and years as the calendar of a time zone has them. Knows no limits. */
@NullMarked
package io.ratelimited.core.calendar;

import org.jspecify.annotations.NullMarked;
