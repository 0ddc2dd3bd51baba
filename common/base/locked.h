// SPDX-License-Identifier: Apache-2.0
// Memory for keys, in whole pages of their own: never written to swap, kept out of core dumps. Not
// OpenSSL's secure heap: that one has a fixed size and lets TLS connections fail once it is full.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Zeroed. *ret_locked false: RLIMIT_MEMLOCK is too small, so it may be swapped. Ends the process
// when out of memory.
void *locked_new(size_t size, bool *ret_locked);
void locked_free(void *memory, size_t size); // wiped; NULL-safe
