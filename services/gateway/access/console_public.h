// SPDX-License-Identifier: Apache-2.0
// /console/login (console_link.h), /console/oidc, /console/callback, /console/logout,
// /console/ways: how a person signs in and out, without a key. Law: what goes wrong says how to
// sign in, and nothing of who may.
#pragma once

#include "common/api/api.h"
#include "services/gateway/access/console_sql.h"

typedef struct Oidc Oidc;

typedef struct ConsolePublic {
    const Sessions *sessions;
    ConsoleTimes times;
    Oidc *oidc;                        // NULL: by links only
    const char *(*unready)(void *ctx); // NULL: requests are taken
    void *unready_ctx;
} ConsolePublic;

bool console_is_path(Str path);
bool console_public_admit(const ConsolePublic *console, HttpRequest *http);
void console_public_handle(const ConsolePublic *console, HttpRequest *http);
