// SPDX-License-Identifier: Apache-2.0
// The cursor of a page: base64url of a MAC and of the position behind which the next page begins.
// The MAC covers what the page is one of (`binding`: any bytes), so that a cursor of something
// else, and one that was cut or edited, is none. Pure.
#pragma once

#include "common/codec/master_key.h"

enum {
    PAGE_POSITION_MAX = 128, // bytes
    PAGE_MAC_LEN = 16,
    PAGE_CURSOR_SIZE = ((PAGE_MAC_LEN + PAGE_POSITION_MAX) * 4 + 2) / 3 + 1, // with NUL
};

// One key for each of the installation's master keys, so that a cursor outlives a rotation: every
// replica has all of them. None (zeroed): cursors are bound, but not
// against forgery.
typedef struct PageKeys {
    uint8_t bytes[MASTER_KEYS_MAX][MASTER_KEY_LEN];
    size_t count;
} PageKeys;

void page_keys_derive(const MasterKey *master, PageKeys *ret); // NULL: none
// position: 1 to PAGE_POSITION_MAX bytes.
void page_cursor_write(const PageKeys *keys, Str binding, Str position, char out[PAGE_CURSOR_SIZE]);
// false: not a cursor of this binding.
bool page_cursor_read(
    const PageKeys *keys, Str binding, Str cursor, uint8_t position[PAGE_POSITION_MAX],
    size_t *ret_len);
