// SPDX-License-Identifier: Apache-2.0
// Arena: the memory of one message, batch or request. Allocate freely, free all at once.
// Out of memory ends the process (redelivery is the tested recovery), so sizes are checked
// where input enters, not here.
#pragma once

#include "common/base/str.h"

typedef struct Arena Arena;

Arena *arena_new(size_t first_block_bytes); // 0: 4 KiB; blocks double up to 1 MiB
void arena_free(Arena *arena);              // NULL-safe
void arena_reset(Arena *arena);             // keeps the first block
// Has free_it(thing) called when the arena is freed or reset: for what a foreign library allocates
// (a JSON tree) and slices of which must live as long as all else of the request. Last one first.
void arena_own(Arena *arena, void (*free_it)(void *thing), void *thing);
// Aligned for any type, not zeroed. Never NULL. size 0 gives a valid pointer.
void *arena_alloc(Arena *arena, size_t size) __attribute__((malloc, returns_nonnull));
void *arena_zalloc(Arena *arena, size_t size) __attribute__((malloc, returns_nonnull));
void *arena_array(Arena *arena, size_t count, size_t size)
    __attribute__((malloc, returns_nonnull)); // zeroed
void *arena_copy(Arena *arena, const void *data, size_t size) __attribute__((returns_nonnull));
Str arena_str(Arena *arena, Str s);    // a copy; has a NUL after its end
char *arena_cstr(Arena *arena, Str s); // the same as a C string
char *arena_printf(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
size_t arena_used(const Arena *arena); // bytes handed out

// malloc family that ends the process when memory is out: for objects of process life.
void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *old, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *text) __attribute__((returns_nonnull));
