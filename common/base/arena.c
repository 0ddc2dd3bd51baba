// SPDX-License-Identifier: Apache-2.0
#include "common/base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, FIRST_BLOCK = 4096, BLOCK_MAX = 1024 * 1024 };
static_assert(_Alignof(max_align_t) <= ALIGNMENT, "a block is not aligned for any type");

typedef struct Owned {
    struct Owned *next;
    void (*free_it)(void *thing);
    void *thing;
} Owned;

typedef struct Block {
    struct Block *next;
    size_t size;
} Block;

struct Arena {
    char *at; // next free byte of the current block
    char *end;
    Block *blocks; // all but the first, which lies behind the Arena itself
    Owned *owned;  // in the arena itself
    size_t first_size;
    size_t next_size;
    size_t used;
};

enum {
    ARENA_HEAD = (sizeof(Arena) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT,
    BLOCK_HEAD = (sizeof(Block) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT,
};

// A size that no memory can serve is a caller that did not check its input: the same end.
static _Noreturn void end_out_of_memory(size_t size)
{
    fprintf(stderr, "stentor: out of memory, asked for %zu bytes\n", size);
    abort();
}

void *xmalloc(size_t size)
{
    void *p = malloc(size > 0 ? size : 1);
    if (p == NULL) {
        end_out_of_memory(size);
    }
    return p;
}

void *xcalloc(size_t count, size_t size)
{
    void *p = calloc(count > 0 ? count : 1, size > 0 ? size : 1);
    if (p == NULL) {
        end_out_of_memory(size);
    }
    return p;
}

void *xrealloc(void *old, size_t size)
{
    void *p = realloc(old, size > 0 ? size : 1);
    if (p == NULL) {
        end_out_of_memory(size);
    }
    return p;
}

char *xstrdup(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(xmalloc(size), text, size);
}

static void start_over(Arena *arena)
{
    arena->at = (char *)arena + ARENA_HEAD;
    arena->end = arena->at + arena->first_size;
    arena->blocks = NULL;
    arena->owned = NULL;
    arena->next_size = arena->first_size;
    arena->used = 0;
    MEMORY_POISON(arena->at, arena->first_size);
}

Arena *arena_new(size_t first_block_bytes)
{
    size_t size = first_block_bytes == 0 ? FIRST_BLOCK : first_block_bytes;
    assert(size <= BLOCK_MAX);
    Arena *arena = xmalloc(ARENA_HEAD + size);
    arena->first_size = size;
    start_over(arena);
    return arena;
}

static void free_blocks(Arena *arena)
{
    for (const Owned *owned = arena->owned; owned != NULL; owned = owned->next) {
        owned->free_it(owned->thing);
    }
    for (Block *block = arena->blocks; block != NULL;) {
        Block *next = block->next;
        free(block);
        block = next;
    }
}

void arena_free(Arena *arena)
{
    if (arena != NULL) {
        free_blocks(arena);
        free(arena);
    }
}

void arena_reset(Arena *arena)
{
    free_blocks(arena);
    start_over(arena);
}

static char *add_block(Arena *arena, size_t size)
{
    Block *block = xmalloc(BLOCK_HEAD + size);
    block->size = size;
    block->next = arena->blocks;
    arena->blocks = block;
    MEMORY_POISON((char *)block + BLOCK_HEAD, size);
    return (char *)block + BLOCK_HEAD;
}

static void *alloc_beyond_block(Arena *arena, size_t size)
{
    if (arena->next_size < BLOCK_MAX) {
        arena->next_size *= 2;
    }
    if (size > arena->next_size / 4) {
        // A large piece gets a block of its own, so that what is left of the current one stays in
        // use.
        return add_block(arena, size);
    }
    char *start = add_block(arena, arena->next_size);
    arena->at = start + size;
    arena->end = start + arena->next_size;
    return start;
}

void *arena_alloc(Arena *arena, size_t size)
{
    if (size > PTRDIFF_MAX - ALIGNMENT) {
        end_out_of_memory(size);
    }
    size_t rounded = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    arena->used += rounded;
    char *p = arena->at;
    if (rounded > (size_t)(arena->end - arena->at)) {
        p = alloc_beyond_block(arena, rounded);
    } else {
        arena->at += rounded;
    }
    MEMORY_UNPOISON(p, size);
    return p;
}

void arena_own(Arena *arena, void (*free_it)(void *thing), void *thing)
{
    Owned *owned = arena_alloc(arena, sizeof *owned);
    *owned = (Owned){.next = arena->owned, .free_it = free_it, .thing = thing};
    arena->owned = owned;
}

void *arena_zalloc(Arena *arena, size_t size)
{
    return memset(arena_alloc(arena, size), 0, size);
}

void *arena_array(Arena *arena, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        end_out_of_memory(SIZE_MAX);
    }
    return arena_zalloc(arena, count * size);
}

void *arena_copy(Arena *arena, const void *data, size_t size)
{
    void *copy = arena_alloc(arena, size);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    return copy;
}

char *arena_cstr(Arena *arena, Str s)
{
    char *copy = arena_alloc(arena, s.len + 1);
    if (s.len > 0) {
        memcpy(copy, s.ptr, s.len);
    }
    copy[s.len] = '\0';
    return copy;
}

Str arena_str(Arena *arena, Str s)
{
    return (Str){arena_cstr(arena, s), s.len};
}

char *arena_printf(Arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(length >= 0);
    char *text = arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

size_t arena_used(const Arena *arena)
{
    return arena->used;
}
