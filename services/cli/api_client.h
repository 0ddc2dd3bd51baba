// SPDX-License-Identifier: Apache-2.0
// The HTTP API as a sub-command uses it: one connection, kept from call to call.
#pragma once

#include <jansson.h>

#include "common/base/buf.h"
#include "services/cli/cli.h"

typedef struct ApiClient ApiClient;

typedef struct ApiAnswer {
    long status;
    json_t *json; // NULL: it was none; the next call and api_client_free free it
    Str text;     // valid as long
} ApiAnswer;

// ERROR_CONFIG when STENTOR_API_KEY is not set.
ApiClient *api_client_new(Cli *cli, Error *err);
void api_client_free(ApiClient *client); // NULL-safe
// body.ptr NULL: none. ERROR_TRANSIENT: no answer.
bool api_client_call(
    ApiClient *client, const char *method, const char *path, Str body, ApiAnswer *ret, Error *err);
// The server's problem document in one line; its kind is TRANSIENT for a 429 or 5xx.
bool api_client_explain(const ApiAnswer *answer, Error *err); // returns false
// Percent-encoded for a query, in the command's arena.
const char *api_client_escape(ApiClient *client, const char *text);
// Calls, expects 2xx, prints the answer (the same document with and without --json) and returns the
// exit status; 404 is EXIT_NOT_FOUND.
int api_client_print(Cli *cli, const char *method, const char *path, Str body);
