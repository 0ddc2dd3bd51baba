// SPDX-License-Identifier: Apache-2.0
// What a person's browser gets who signs in or out: a page that asks, or says what went wrong (for
// a program that asks for no page a problem, RFC 9457); cookies; the console.
#pragma once

#include "common/api/api.h"

// `detail` is a sentence of ours.
void console_refuse(HttpRequest *http, int status, const char *slug, const char *detail);

typedef struct ConsoleAsk {
    Str token, user, role, tenants; // of the link
    Str present;                    // who is signed in here; empty: no person is
} ConsoleAsk;

// A page with one button, which needs no script: sign in by this link? 200.
void console_ask(HttpRequest *http, const ConsoleAsk *ask);
// A server that is needed does not answer.
void console_fail(HttpRequest *http, const Error *err);
// For Max-Age `seconds`; 0: for as long as the browser runs. An empty value takes it away.
void console_cookie(
    const Sessions *sessions, HttpRequest *http, const char *name, const char *value, int seconds);
void console_go_to(HttpRequest *http, const char *place);
