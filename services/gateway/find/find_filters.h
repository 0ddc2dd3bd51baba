// SPDX-License-Identifier: Apache-2.0
// What a list of notifications may be asked by: a closed table of filters. Of those that are given
// the one that finds fewest is looked up in the index, the others are compared with the rows of
// history; so is that one, where the row has its value, since a key is a hash. Pure.
#pragma once

#include "common/api/api.h"
#include "common/find/find_key.h"
#include "common/history/fold.h"

// In the order in which they are preferred as what the index is asked by.
typedef enum FindFilter {
    FIND_BY_VENDOR_MESSAGE,
    FIND_BY_CORRELATION,
    FIND_BY_SOURCE_EVENT,
    FIND_BY_RECIPIENT,
    FIND_BY_ADDRESS,
    FIND_BY_STATUS, // an end only; other statuses have no entries
    FIND_BY_BATCH,
    FIND_BY_TEMPLATE,
    FIND_BY_CHANNEL, // no index
    FIND_BY_CATEGORY,
    FIND_FILTERS
} FindFilter;

enum {
    FIND_HASHES_MAX = MASTER_KEYS_MAX * CHANNEL_COUNT,
    FIND_SCAN_HOURS = 24, // the longest span that is looked through without an index
};

typedef struct FindQuery {
    Str value[FIND_FILTERS]; // empty: not asked by
    int64_t since_us;        // inclusive
    int64_t until_us;        // exclusive; 0: now
    FindFilter driver;       // FIND_FILTERS: no index serves it
    int64_t keys[FIND_HASHES_MAX];
    size_t key_count;
    uint8_t hashes[FIND_HASHES_MAX][ADDRESS_HASH_LEN]; // of the address
    size_t hash_count;
    Str own_id;  // the notification's, which an SMTP Message-ID begins with; empty: none
    bool checks; // a row may be found that does not fit
} FindQuery;

// Reads the call's query. fixed: a filter that the path gives, with its value; FIND_FILTERS: none.
// false: answered.
bool find_query_read(
    ApiCall *call, const MasterKey *master, FindFilter fixed, Str value, FindQuery *ret);
bool find_query_fits(const FindQuery *query, const HistoryRow *row);
