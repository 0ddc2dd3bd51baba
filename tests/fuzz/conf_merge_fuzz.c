// SPDX-License-Identifier: Apache-2.0
// links: svc_cli
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "services/cli/init/conf_merge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// A settings file with anything in it, and the fresh one: a second run changes nothing more.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    Buf fresh;
    Str lines = STR("STENTOR_A=\"1\"\nSTENTOR_B=\"two\"\n");
    buf_init(&fresh, 4096);
    conf_head(&fresh, lines);
    buf_str(&fresh, lines);
    ConfMerge once = conf_merge(str_of(data, size), buf_view(&fresh), arena);
    ConfMerge twice = conf_merge(once.text, buf_view(&fresh), arena);
    assert(str_eq(once.text, twice.text));
    (void)conf_whole_is_ours(str_of(data, size), buf_view(&fresh));
    buf_done(&fresh);
    arena_free(arena);
    return 0;
}
