// SPDX-License-Identifier: Apache-2.0
// apikey create, list, rotate, revoke: /v1/api-keys. apikey bootstrap writes an operator's key into
// CONFIG itself: the first one, which the API's own operator commands need.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/api_key.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/span.h"
#include "common/session/config_put.h"
#include "services/cli/api_client.h"
#include "services/cli/noted.h"

#define DAY_US (INT64_C(86400) * 1000000)

// ---- flags ----

// All the names are longer than an Error's text.
static bool fail_scope(Cli *cli, Str name, Error *err)
{
    Buf known;
    buf_init(&known, 4096);
    scope_print_known(&known, ",");
    const char *text = arena_cstr(cli->arena, buf_view(&known));
    buf_done(&known);
    cli_note(cli, "--scopes takes one or more of %s", text);
    return error_set(
        err, ERROR_USAGE,
        "--scopes: '" STR_FMT "' is not a scope (HINT: stentor help apikey create)",
        STR_ARG(str_slice(name, 0, 40)));
}

// "send,recipients:read"; not given: the list stays empty.
static bool read_scopes(Cli *cli, json_t *list, Error *err)
{
    const char *text = args_flag(&cli->args, "scopes");
    Str rest = str_from(text);
    Str name = STR_EMPTY;
    while (text != NULL && str_split(&rest, ',', &name)) {
        name = str_trim(name);
        if (scope_set_from_name(name) == 0) {
            return fail_scope(cli, name, err);
        }
        (void)json_array_append_new(list, json_stringn(name.ptr, name.len));
    }
    return true;
}

// *ret NULL: not given.
static bool read_expiry(Cli *cli, const char **ret, int64_t *ret_us, Error *err)
{
    const char *text = args_flag(&cli->args, "expires");
    int64_t now_us = clock_now_us();
    char time[CLOCK_RFC3339_SIZE];
    *ret = NULL;
    *ret_us = 0;
    if (text == NULL) {
        return true;
    }
    if (!args_time(&cli->args, "expires", TIME_FROM_NOW, now_us, ret_us, err)) {
        return false;
    }
    clock_format(*ret_us, time);
    *ret = arena_cstr(cli->arena, str_from(time));
    return *ret_us > now_us ||
           error_set(err, ERROR_USAGE, "--expires '%s' is not in the future", text);
}

static bool read_name(const Cli *cli, Error *err)
{
    Str name = str_from(args_flag(&cli->args, "name"));
    return (name.len <= API_KEY_NAME_MAX && str_is_utf8(name) && !str_has_control(name)) ||
           error_set(
               err, ERROR_USAGE, "--name: at most %d bytes of UTF-8 on one line",
               (int)API_KEY_NAME_MAX);
}

// "10.0.0.0/8,192.0.2.7"; the gateway checks each.
static void read_ranges(const Cli *cli, json_t *body)
{
    const char *text = args_flag(&cli->args, "allow-from");
    Str rest = str_from(text), item = STR_EMPTY;
    json_t *list = json_array();
    while (str_split(&rest, ',', &item)) {
        item = str_trim(item);
        if (item.len > 0) {
            (void)json_array_append_new(list, json_stringn(item.ptr, item.len));
        }
    }
    if (text != NULL) {
        (void)json_object_set(body, "allowed_cidrs", list);
    }
    json_decref(list);
}

// What the flags say of a new key; NULL: *err. New reference.
static json_t *read_flags(Cli *cli, const char *default_scope, Error *err)
{
    const char *name = args_flag(&cli->args, "name");
    const char *expires = NULL;
    int64_t expires_us = 0;
    json_t *scopes = json_array();
    if (!read_name(cli, err) || !read_scopes(cli, scopes, err) ||
        !read_expiry(cli, &expires, &expires_us, err)) {
        json_decref(scopes);
        return NULL;
    }
    if (json_array_size(scopes) == 0 && default_scope != NULL) {
        (void)json_array_append_new(scopes, json_string(default_scope));
    }
    json_t *body = json_object();
    if (name != NULL) {
        (void)json_object_set_new(body, "name", json_string(name));
    }
    if (expires != NULL) {
        (void)json_object_set_new(body, "expires_at", json_string(expires));
    }
    if (json_array_size(scopes) > 0) {
        (void)json_object_set(body, "scopes", scopes);
    }
    read_ranges(cli, body);
    json_decref(scopes);
    return body;
}

// "/v1/api-keys/<id>/..."; NULL: the word is no id.
static const char *path_of(Cli *cli, const char *tail, Error *err)
{
    Str id = api_key_bare_id(str_from(args_word(&cli->args, 0)));
    if (!id_is_key(id)) {
        (void)error_set(
            err, ERROR_USAGE, "'" STR_FMT "' is not a key id (HINT: stentor apikey list)",
            STR_ARG(str_slice(id, 0, 64)));
        return NULL;
    }
    return arena_printf(cli->arena, "/v1/api-keys/" STR_FMT "%s", STR_ARG(id), tail);
}

// ---- what is shown ----

static const char *scopes_text(Cli *cli, const json_t *key)
{
    const json_t *scopes = json_object_get(key, "scopes");
    const char *text = "";
    for (size_t i = 0; i < json_array_size(scopes); i++) {
        text = arena_printf(
            cli->arena, "%s%s%s", text, i > 0 ? "," : "",
            json_string_value(json_array_get(scopes, i)));
    }
    return text[0] != '\0' ? text : "all (made before scopes)";
}

static void note_once(const Cli *cli)
{
    if (!cli->json) {
        cli_note(cli, "the key is shown this once and cannot be read again: store it now");
    }
}

static int show_made(Cli *cli, const json_t *key)
{
    api_client_warnings(cli, key);
    print_pairs(
        cli,
        (const char *const[]){
            "tenant", api_client_text(key, "tenant", ""), "key", api_client_text(key, "key", ""),
            "key_id", api_client_text(key, "key_id", ""), "scopes", scopes_text(cli, key),
            "expires_at", api_client_text(key, "expires_at", "never"), NULL});
    note_once(cli);
    return EXIT_DONE;
}

int cmd_apikey_create(Cli *cli)
{
    Error err = {0};
    json_t *body = read_flags(cli, "admin", &err);
    return body == NULL ? cli_fail(cli, &err)
                        : api_client_run(cli, "POST", "/v1/api-keys", body, show_made);
}

static int show_rotated(Cli *cli, const json_t *key)
{
    const char *until = api_client_text(key, "old_valid_until", NULL);
    const char *old = api_client_text(key, "rotated_from", "");
    print_pairs(
        cli,
        (const char *const[]){
            "tenant", api_client_text(key, "tenant", ""), "key", api_client_text(key, "key", ""),
            "key_id", api_client_text(key, "key_id", ""), "scopes", scopes_text(cli, key),
            "expires_at", api_client_text(key, "expires_at", "never"), "rotated_from", old,
            "old_valid_until", until != NULL ? until : "must be revoked", NULL});
    note_once(cli);
    if (until == NULL) {
        cli_note(
            cli,
            "the new key is stored, but the old one still has no end (HINT: stentor apikey revoke "
            "%s)",
            old);
    }
    return until != NULL ? EXIT_DONE : EXIT_FAILED;
}

static int hint_missing(const Cli *cli, int status)
{
    if (status == EXIT_NOT_FOUND) {
        cli_note(cli, "stentor apikey list --all shows the ids");
    }
    return status;
}

int cmd_apikey_rotate(Cli *cli)
{
    Error err = {0};
    const char *grace = args_flag(&cli->args, "grace");
    int64_t grace_us = DAY_US;
    if (grace != NULL && !span_parse(str_from(grace), &grace_us)) {
        (void)error_set(
            &err, ERROR_USAGE, "--grace '%s': expected how long (0s, 30m, 24h, 7d)", grace);
        return cli_fail(cli, &err);
    }
    const char *path = path_of(cli, "/rotate", &err);
    json_t *body = path == NULL ? NULL : read_flags(cli, NULL, &err);
    if (body == NULL) {
        return cli_fail(cli, &err);
    }
    (void)json_object_set_new(body, "overlap_seconds", json_integer(grace_us / 1000000));
    return hint_missing(cli, api_client_run(cli, "POST", path, body, show_rotated));
}

static int show_revoked(Cli *cli, const json_t *key)
{
    print_pairs(
        cli, (const char *const[]){
                 "tenant", api_client_text(key, "tenant", ""), "key_id",
                 api_client_text(key, "key_id", ""), "state", "revoked", "revoked_at",
                 api_client_text(key, "revoked_at", ""), NULL});
    return EXIT_DONE;
}

int cmd_apikey_revoke(Cli *cli)
{
    Error err = {0};
    const char *path = path_of(cli, "", &err);
    return path == NULL
               ? cli_fail(cli, &err)
               : hint_missing(cli, api_client_run(cli, "DELETE", path, NULL, show_revoked));
}

// ---- the list, the oldest first ----

static int by_age(const void *a, const void *b)
{
    return strcmp(
        api_client_text(*(const json_t *const *)a, "created_at", ""),
        api_client_text(*(const json_t *const *)b, "created_at", ""));
}

// Without the member the gateway does not know it: Postgres is away.
static const char *last_use_text(const json_t *key)
{
    const char *never = json_is_null(json_object_get(key, "last_used_at")) ? "never" : "?";
    return api_client_text(key, "last_used_at", never);
}

static void print_row(Cli *cli, const json_t *key)
{
    const char *revoked = api_client_text(key, "revoked_at", NULL);
    const char *expires = api_client_text(key, "expires_at", NULL);
    bool ends_first = revoked != NULL && (expires == NULL || strcmp(revoked, expires) < 0);
    const char *until = ends_first ? revoked : expires;
    printf(
        "%-16s  %-8s %-20.19s %-20.19s %-20.19s %-24s %s\n", api_client_text(key, "key_id", ""),
        api_client_text(key, "state", ""), api_client_text(key, "created_at", "-"),
        until != NULL ? until : "-", last_use_text(key), scopes_text(cli, key),
        api_client_text(key, "name", ""));
}

static void print_keys(Cli *cli, const json_t *list)
{
    size_t count = json_array_size(list);
    const json_t **keys = arena_array(cli->arena, count + 1, sizeof *keys);
    json_t *sorted = json_array();
    for (size_t i = 0; i < count; i++) {
        keys[i] = json_array_get(list, i);
    }
    qsort(keys, count, sizeof *keys, by_age);
    if (!cli->json && count == 0) {
        cli_note_empty(cli, "API key in force");
    } else if (!cli->json) {
        printf(
            "%-16s  %-8s %-20s %-20s %-20s %-24s %s\n", "KEY ID", "STATE", "CREATED", "UNTIL",
            "LAST USED", "SCOPES", "NAME");
    }
    for (size_t i = 0; i < count; i++) {
        if (cli->json) {
            (void)api_client_take(sorted, keys[i]);
        } else {
            print_row(cli, keys[i]);
        }
    }
    if (cli->json) {
        api_client_dump(sorted);
    }
    json_decref(sorted);
}

int cmd_apikey_list(Cli *cli)
{
    json_t *list = json_array();
    bool all = args_has(&cli->args, "all");
    int status = api_client_list(
        cli, all ? "/v1/api-keys?state=all" : "/v1/api-keys", api_client_take, list);
    if (status == EXIT_DONE) {
        print_keys(cli, list);
    }
    json_decref(list);
    return status;
}

// ---- the first key ----

int cmd_apikey_bootstrap(Cli *cli)
{
    Error err = {0};
    const char *expires = NULL;
    Stentor__V1__ApiKey key;
    stentor__v1__api_key__init(&key);
    api_key_make_operator(&key, clock_now_us());
    if (!read_name(cli, &err) || !read_expiry(cli, &expires, &key.expires_at_us, &err)) {
        return cli_fail(cli, &err);
    }
    key.name = arena_cstr(cli->arena, str_from(args_flag(&cli->args, "name")));
    const char *whole = api_key_make(&key, cli->arena);
    ConfigEntry entry = {"apikey", str_from(key.tenant), str_from(key.key_id), &key.base, 0};
    if (!cli_audit_write(cli, NULL, "api_key.bootstrapped", key.key_id, &err) ||
        !config_put_once(&cli->settings.session, cli->arena, &entry, &err)) {
        return cli_fail(cli, &err);
    }
    print_pairs(
        cli, (const char *const[]){
                 "tenant", key.tenant, "key", whole, "key_id", key.key_id, "scopes", key.scopes[0],
                 "expires_at", expires != NULL ? expires : "never", NULL});
    note_once(cli);
    return EXIT_DONE;
}
