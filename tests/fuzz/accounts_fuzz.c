// SPDX-License-Identifier: Apache-2.0
// links: stentor_bus
// Any bytes as the operator's table of accounts: refused with a reason, or written as a
// configuration.
#include <stdlib.h>

#include "common/bus/topology/accounts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    Accounts accounts;
    Error err = {0};
    Buf out;
    buf_init(&out, 16 * 1024 * 1024);
    if (!accounts_read(str_of((const char *)data, size), arena, &accounts, &err)) {
        if (err.text[0] == '\0') {
            abort();
        }
    } else if (!accounts_write(&out, &accounts) && !out.full) {
        abort();
    }
    buf_done(&out);
    arena_free(arena);
    return 0;
}
