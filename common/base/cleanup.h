// SPDX-License-Identifier: Apache-2.0
// AUTO(T) frees at the end of the scope through T_cleanup; TAKE(p) hands the pointer over and
// leaves NULL behind.
#pragma once

#include <stddef.h>

#define CLEANUP(function) __attribute__((cleanup(function)))
#define AUTO(type) CLEANUP(type##_cleanup) type *

// Defines `static inline void name(type *p)` that calls free_function on a non-NULL pointer.
#define DEFINE_CLEANUP(name, type, free_function)                                                  \
    static inline void name(type *p)                                                               \
    {                                                                                              \
        if (*p != NULL) {                                                                          \
            free_function(*p);                                                                     \
        }                                                                                          \
    }

static inline void *take_pointer(void *pp)
{
    void **slot = pp;
    void *p = *slot;
    *slot = NULL;
    return p;
}
#define TAKE(p) take_pointer(&(p))
