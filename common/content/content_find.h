// SPDX-License-Identifier: Apache-2.0
// The rendered event of a notification: where history says when it was rendered, in these minutes
// of its lane; else from the id's time on in all lanes. Blocking.
#pragma once

#include "common/content/content_session.h"
#include "stentor/v1/rendered.pb-c.h"

// What history has of it; empty texts and 0: not known.
typedef struct ContentRow {
    bool found;
    const char *status;
    Priority priority;
    int64_t rendered_us, updated_us;
    Str checksum; // SHA-256 of its packed content
} ContentRow;

// Texts are in the session's arena.
bool content_row(
    ContentSession *session, const char *tenant, const char *id, ContentRow *ret, Error *err);

typedef struct ContentFound {
    const Stentor__V1__Rendered *event; // NULL: not there; in the session's arena
    const char *stream;
    uint64_t sequence;
    int64_t stored_at_us;
} ContentFound;

// Its first rendering; later attempts send the same content.
bool content_find(
    ContentSession *session, const char *tenant, const char *id, const ContentRow *row,
    ContentFound *ret, Error *err);
