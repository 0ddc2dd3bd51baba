// SPDX-License-Identifier: Apache-2.0
// /v1/console/logins and /v1/console/sessions: a one-time link for a person, and who is signed in.
// Law: a link's role may no more than who makes it; only its SHA-256 is kept.
#pragma once

#include "common/api/api.h"

typedef struct ConsoleLogins {
    DbPool *pool;
    Str origin; // STENTOR_CONSOLE_URL; empty: whoever asks knows the address
} ConsoleLogins;

void console_logins_add(Api *api, ConsoleLogins *logins);
