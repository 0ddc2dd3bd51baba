// SPDX-License-Identifier: Apache-2.0
// The options of the search index and of the read pool: FIND_ROWS(GatewayOptions) where that has a
// `FindOptions find`.
#pragma once

#include "common/service/options.h"

typedef struct FindOptions {
    bool on;
    const char *database_url;      // "": the gateway's own
    const char *read_database_url; // "": the gateway's own
    int64_t days;
} FindOptions;

// clang-format off
#define FIND_ROWS(type) \
    {"STENTOR_GATEWAY_FIND", OPTION_BOOL, offsetof(type, find.on), \
     "true", 0, 0, false, \
     "keep the index by which notifications are searched (FIND.md); false: searches by it are 503"}, \
    {"STENTOR_GATEWAY_FIND_DATABASE_URL", OPTION_TEXT, offsetof(type, find.database_url), \
     "", 0, 0, true, \
     "another migrated Postgres for that index; empty: STENTOR_DATABASE_URL"}, \
    {"STENTOR_GATEWAY_FIND_DAYS", OPTION_INT, offsetof(type, find.days), \
     "180", 1, 3650, false, \
     "days for which notifications are found; older days of the index are dropped"}, \
    {"STENTOR_GATEWAY_READ_DATABASE_URL", OPTION_TEXT, offsetof(type, find.read_database_url), \
     "", 0, 0, true, \
     "a hot standby, for reading history; empty: STENTOR_DATABASE_URL"}
// clang-format on
