// SPDX-License-Identifier: Apache-2.0
// Which web pages of another origin may call /v1/inbox (CORS). Law: never with credentials: what
// opens an inbox is the token in the Authorization header, which no browser adds by itself.
#pragma once

#include "common/base/error.h"
#include "common/http/server.h"

enum { INBOX_ORIGINS_MAX = 64, INBOX_ORIGIN_BYTES_MAX = 255 };

typedef struct InboxOrigins {
    Str list[INBOX_ORIGINS_MAX];
    size_t count;
    bool any; // "*"
} InboxOrigins;

// "https://app.example, http://localhost:3000", "*", or empty: none but the API's own. Borrows
// `text`. ERROR_CONFIG names the item and what is wrong with it.
bool inbox_origins_parse(Str text, InboxOrigins *ret, Error *err);
bool inbox_origins_has(const InboxOrigins *origins, Str origin);

// Adds to the coming answer what a browser has to know. false: it was a browser's question before
// the call itself (OPTIONS), which is answered now, without a token.
bool inbox_origins_admit(const InboxOrigins *origins, HttpRequest *http);
