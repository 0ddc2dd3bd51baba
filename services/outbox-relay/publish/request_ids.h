// SPDX-License-Identifier: Apache-2.0
// RequestIds of a batch of requests: each row's notification id, noted before anything is
// published, so that what STATUS says of it finds the row. A letter that was noted before keeps its
// id and time: then its message is made again with that time.
#pragma once

#include "common/outbox/sql/relay_sql.h"
#include "services/outbox-relay/publish/post.h"
#include "services/outbox-relay/row/row.h"

typedef struct RequestIds {
    Row *rows;
    const RowMessage *messages;
    const Post *posts; // those that still wait are noted
    size_t count;
} RequestIds;

// Adds `plan` and `note`. false: there is none to note, and nothing was added.
bool request_ids_note(const RequestIds *requests, const RelaySql *sql, Str claim_id, DbTxn *txn);
// Takes over what `note` answered. Writes the rows whose time is another one to ret_again (room for
// `count`) and returns how many.
size_t request_ids_read(
    const RequestIds *requests, const PGresult *noted, Arena *arena, size_t *ret_again);
