// SPDX-License-Identifier: Apache-2.0
// RequestIds of a batch of requests: each row's notification id, recorded before anything is
// published, so that feedback finds the row. A request that was recorded before keeps its id and
// time: then its message is built again with that time.
#pragma once

#include "common/outbox/sql/relay_sql.h"
#include "services/outbox-relay/publish/post.h"
#include "services/outbox-relay/row/row.h"

typedef struct RequestIds {
    Row *rows;
    const RowMessage *messages;
    const Post *posts; // POST_WAITS: to be recorded
    size_t count;
} RequestIds;

// Adds `plan` and `note`. false: no row is to be recorded, and nothing was added.
bool request_ids_note(const RequestIds *requests, const RelaySql *sql, Str claim_id, DbTxn *txn);
// Reads the answer of `note`. Writes the rows whose time has changed to ret_changed (room for
// `count`) and returns how many.
size_t request_ids_read(
    const RequestIds *requests, const PGresult *noted, Arena *arena, size_t *ret_changed);
