// SPDX-License-Identifier: Apache-2.0
// links: stentor_json
// Any text, read by ours and by jansson: the same values or none, and written the same.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_scan.h"
#include "common/json/json_read.h"
#include "common/json/json_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const json_t *value, size_t flags, Arena *arena)
{
    Str text = json_text(value, flags, arena);
    char *theirs = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | flags);
    assert(theirs != NULL && str_eq(text, str_from(theirs)));
    free(theirs);
}

static void check_flags(Str text, size_t flags)
{
    json_t *plain = json_read_plain(text, flags);
    json_t *theirs = json_loadb(text.ptr, text.len, flags, NULL);
    if (plain != NULL) {
        JsonExcess excess;
        Arena *arena = arena_new(0);
        assert(json_equal(plain, theirs));
        assert(json_is_modest(text, &excess));
        // In jansson's order too.
        check_text(plain, 0, arena);
        check_text(plain, JSON_SORT_KEYS, arena);
        // At fewer digits it can be read again.
        json_t *again = json_read(json_text(plain, JSON_DECIMALS, arena), flags, NULL);
        assert(again != NULL);
        json_decref(again);
        assert(str_eq(json_text(plain, 0, arena), json_text(theirs, 0, arena)));
        arena_free(arena);
    }
    json_t *ours = json_read(text, flags, NULL);
    assert((ours == NULL) == (theirs == NULL));
    json_decref(ours);
    json_decref(theirs);
    json_decref(plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    // Memory of its own: a read behind the end is seen.
    char *text = malloc(size > 0 ? size : 1);
    assert(text != NULL);
    if (size > 0) {
        memcpy(text, data, size);
    }
    check_flags(str_of(text, size), 0);
    check_flags(str_of(text, size), JSON_DECODE_ANY);
    check_flags(str_of(text, size), JSON_REJECT_DUPLICATES | JSON_DECODE_ANY);
    free(text);
    return 0;
}
