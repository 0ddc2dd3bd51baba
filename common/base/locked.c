// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE // explicit_bzero, MAP_ANONYMOUS, madvise, syscall
#include "common/base/locked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *locked_new(size_t size, bool *ret_locked)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        fputs("stentor: out of memory\n", stderr);
        abort();
    }
    (void)madvise(memory, size, MADV_DONTDUMP);
    *ret_locked = syscall(SYS_mlock, memory, size) == 0; // the sanitizer's mlock() locks nothing
    return memory;
}

void locked_free(void *memory, size_t size)
{
    if (memory != NULL) {
        explicit_bzero(memory, size);
        (void)munmap(memory, size);
    }
}
