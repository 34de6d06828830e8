/**
 * The fields by which servers state their limits, one extension point each way: a bean writes or reads them instead of draft
 * 10, as for a later draft or a dialect of a partner.
 */
@NullMarked
package io.ratelimited.spring.fields;

import org.jspecify.annotations.NullMarked;
