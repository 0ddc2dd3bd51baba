// SPDX-License-Identifier: Apache-2.0
// How a session begins, by whatever way: its secret, its row, its cookie.
#pragma once

#include "services/gateway/access/console_public.h"

typedef struct Entering {
    const ConsolePublic *console;
    HttpRequest *http;
    int result;              // of the statement that begins the session
    const char *slug, *over; // what is said where it begins none
    char secret[SESSION_SECRET_SIZE];
    char id[ID_SIZE];
} Entering;

// In the request's arena; ret_hash is the SHA-256 of its secret.
Entering *console_enter(
    const ConsolePublic *console, HttpRequest *http, uint8_t ret_hash[SHA256_LEN]);
// Of the transaction with that statement; ctx is the Entering. Answers.
void console_on_entered(void *ctx, DbTxn *txn, const Error *err);
