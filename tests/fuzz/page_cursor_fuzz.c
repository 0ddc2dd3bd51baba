// SPDX-License-Identifier: Apache-2.0
// links: stentor_api
// Any bytes as a cursor; then the same bytes as a position behind a good MAC. What is taken must
// give the same cursor again, and no other binding takes it.
#include <stdlib.h>
#include <string.h>

#include "common/api/page_cursor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool try_cursor(const PageKeys *keys, Str cursor)
{
    uint8_t position[PAGE_POSITION_MAX];
    char again[PAGE_CURSOR_SIZE];
    size_t len = 0;
    if (!page_cursor_read(keys, STR("list"), cursor, position, &len)) {
        return false;
    }
    page_cursor_write(keys, STR("list"), str_of(position, len), again);
    require(str_eq(str_from(again), cursor));
    require(!page_cursor_read(keys, STR("another list"), cursor, position, &len));
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const PageKeys keys = {.bytes = {"a key of thirty-two bytes, or so"}, .count = 1};
    Str text = str_of(data, size);
    (void)try_cursor(&keys, text);
    if (size > 0 && size <= PAGE_POSITION_MAX) {
        char cursor[PAGE_CURSOR_SIZE];
        page_cursor_write(&keys, STR("list"), text, cursor);
        require(try_cursor(&keys, str_from(cursor)));
        cursor[size % strlen(cursor)] ^= 1; // one letter for its neighbour
        require(!try_cursor(&keys, str_from(cursor)));
    }
    return 0;
}
