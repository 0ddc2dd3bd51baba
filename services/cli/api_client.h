// SPDX-License-Identifier: Apache-2.0
// The HTTP API as a sub-command uses it: one connection, kept from call to call.
#pragma once

#include <curl/curl.h>
#include <jansson.h>

#include "common/base/buf.h"
#include "services/cli/cli.h"

typedef struct ApiClient ApiClient;

typedef struct ApiAnswer {
    long status;
    json_t *json; // NULL: it was none; the next call and api_client_free free it
    Str text;     // valid as long
} ApiAnswer;

// Speaks for STENTOR_TENANT (or a command's --tenant), which an operator's key may choose; not set:
// for the key's own tenant. ERROR_USAGE when STENTOR_API_KEY is not set, or is another
// address's (cli_key_fits).
ApiClient *api_client_new(Cli *cli, Error *err);
void api_client_free(ApiClient *client); // NULL-safe
// A request of its own to the API: whom it trusts over HTTPS (STENTOR_API_CA_FILE).
void api_client_trust(const Cli *cli, CURL *curl);
// A header of the next calls: "Idempotency-Key: 1".
void api_client_header(ApiClient *client, const char *header);
void api_client_type(ApiClient *client, const char *type); // of the bodies; a literal
// body.ptr NULL: none. ERROR_TRANSIENT: no answer; it names the address.
bool api_client_call(
    ApiClient *client, const char *method, const char *path, Str body, ApiAnswer *ret, Error *err);
// Of the last answer, in the command's arena; "": it has none such.
const char *api_client_answer_header(ApiClient *client, const char *name);
// The same with a JSON body (taken over; NULL: none), and an answer of 2xx; else false with the
// problem's text, and ret->status is 0 when there was no answer.
bool api_client_ask(
    ApiClient *client, const char *method, const char *path, json_t *body, ApiAnswer *ret,
    Error *err);
// All of a list, page by page. path has its filters: "/v1/api-keys?state=all". max 0: all. each:
// borrowed; false ends it.
typedef bool (*ApiEach)(void *ctx, const json_t *item);
bool api_client_each(
    ApiClient *client, const char *path, int64_t max, ApiEach each, void *ctx, ApiAnswer *ret,
    Error *err);
// Prints it; EXIT_NOT_FOUND when the last answer was a 404, else as cli_fail.
int api_client_fail(const Cli *cli, const ApiAnswer *answer, const Error *err);
// The API's problem document in one line, with the option that fills its field; cli_fail prints the
// document with --json. The kind is USAGE for an invalid request (400, 413, 422), TRANSIENT for a
// 429 or 5xx. Returns false.
bool api_client_explain(ApiClient *client, const ApiAnswer *answer, Error *err);
// Percent-encoded for a query or a segment of a path, in the command's arena.
const char *api_client_escape(Cli *cli, const char *text);

// ---- a command that is one call ----

// Shows a 2xx answer and returns the exit status.
typedef int (*ApiShow)(Cli *cli, const json_t *answer);
// body is taken over; NULL: none.
int api_client_run(Cli *cli, const char *method, const char *path, json_t *body, ApiShow show);
bool api_client_take(void *list, const json_t *item); // an ApiEach: appends it to a json_t array
// All of a list; a failure is printed.
int api_client_list(Cli *cli, const char *path, ApiEach each, void *ctx);
typedef struct ApiFilter {
    const char *flag, *parameter; // of the command, of the query
} ApiFilter;
// path, which has a query already, with what the flags narrow it to; in the command's arena.
const char *api_client_filter(Cli *cli, const char *path, const ApiFilter *filters, size_t count);
typedef struct ApiList {
    const char *path; // "/v1/scheduled"; it may have a query
    const ApiFilter *filters;
    size_t filter_count;
    const char *none;   // what there is none of, for an empty list
    void (*head)(void); // before the first item; NULL: nothing
    void (*print)(const Cli *cli, const json_t *item);
} ApiList;
// The items that the flags ask for, at most --limit of them (default 100; 0: all): printed one by
// one, or with --json as one array.
int api_client_print_list(Cli *cli, const ApiList *list);
// An ApiShow for any document: a line for each of its values, or the document with --json.
int api_client_show(Cli *cli, const json_t *answer);
// Calls, expects 2xx, shows the answer so and returns the exit status; 404 is EXIT_NOT_FOUND.
int api_client_print(Cli *cli, const char *method, const char *path, Str body);
void api_client_dump(const json_t *json); // the document itself, as one line
// A member's text; def: it has none.
const char *api_client_text(const json_t *object, const char *name, const char *def);
// What the API warned of in its answer, on stderr.
void api_client_warnings(Cli *cli, const json_t *answer);
