// SPDX-License-Identifier: Apache-2.0
// apikey create, list, rotate, revoke: cfg.apikey.<tenant>.<key id>. A key's secret is shown once
// and kept nowhere; CONFIG has its SHA-256.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/span.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/model/scope.h"
#include "common/session/config_get.h"
#include "common/session/config_put.h"
#include "services/cli/cli.h"
#include "services/cli/config/config_walk.h"
#include "stentor/v1/config.pb-c.h"

enum {
    KEY_ID_SIZE = 17,
    SECRET_SIZE = 65,
    NAMES_MAX = 16,
    NAME_MAX_BYTES = 128,
    KEYS_MAX = 100000
};

#define ID_PREFIX STR("stn_")
static const int64_t DAY_US = INT64_C(86400) * 1000000;

typedef Stentor__V1__ApiKey ApiKey;

// ---- flags ----

// --tenant, else STENTOR_TENANT. NULL: *err says so.
static char *tenant_of(Cli *cli, Error *err)
{
    const char *flag = args_flag(&cli->args, "tenant");
    const char *name = flag != NULL ? flag : cli->settings.tenant;
    if (!cli_need(name, "STENTOR_TENANT", err)) {
        return NULL;
    }
    if (!id_is_tenant(str_from(name))) {
        (void)error_set(
            err, ERROR_CONFIG, "'%s' is not a tenant id: 1 to 32 of a-z 0-9 '_' '-'", name);
        return NULL;
    }
    return arena_cstr(cli->arena, str_from(name));
}

// All the names are longer than an Error's text.
static bool fail_scope(Cli *cli, Str name, Error *err)
{
    Buf known;
    buf_init(&known, 4096);
    scope_print_known(&known, ",");
    const char *text = arena_cstr(cli->arena, buf_view(&known));
    buf_done(&known);
    fprintf(stderr, "stentor: HINT: --scopes takes one or more of %s\n", text);
    return error_set(
        err, ERROR_CONFIG, "--scopes: '" STR_FMT "' is no scope (HINT: stentor help apikey create)",
        STR_ARG(str_slice(name, 0, 40)));
}

// "send,recipients:read"; not given: *count stays 0.
static bool read_scopes(Cli *cli, char ***ret, size_t *ret_count, Error *err)
{
    const char *text = args_flag(&cli->args, "scopes");
    Str rest = str_from(text);
    Str name = STR_EMPTY;
    *ret = arena_array(cli->arena, NAMES_MAX, sizeof **ret);
    *ret_count = 0;
    while (text != NULL && str_split(&rest, ',', &name)) {
        name = str_trim(name);
        if (scope_set_from_name(name) == 0) {
            return fail_scope(cli, name, err);
        }
        if (*ret_count == NAMES_MAX) {
            return error_set(err, ERROR_CONFIG, "--scopes: more than %d names", (int)NAMES_MAX);
        }
        (*ret)[(*ret_count)++] = arena_cstr(cli->arena, name);
    }
    return true;
}

// A time ahead, or how long from now: "90d". Not given: *ret_us stays.
static bool read_expiry(const Cli *cli, int64_t now_us, int64_t *ret_us, Error *err)
{
    const char *text = args_flag(&cli->args, "expires");
    int64_t span_us = 0;
    int64_t at_us = 0;
    if (text == NULL) {
        return true;
    }
    if (span_parse(str_from(text), &span_us)) {
        at_us = now_us + span_us;
    } else if (!clock_parse(str_from(text), &at_us)) {
        return error_set(
            err, ERROR_CONFIG,
            "--expires '%s': expected a time (RFC 3339) or how long from now (12h, 90d)", text);
    }
    *ret_us = at_us;
    return at_us > now_us ||
           error_set(err, ERROR_CONFIG, "--expires '%s' does not lie ahead", text);
}

static bool read_name(Cli *cli, char **ret, Error *err)
{
    Str name = str_from(args_flag(&cli->args, "name"));
    if (name.len > NAME_MAX_BYTES || !str_is_utf8(name) || str_has_control(name)) {
        return error_set(
            err, ERROR_CONFIG, "--name: at most %d bytes of UTF-8 on one line",
            (int)NAME_MAX_BYTES);
    }
    *ret = name.len > 0 ? arena_cstr(cli->arena, name) : *ret;
    return true;
}

// ---- making one ----

// Fills in id and hash; returns the whole key.
static char *make_secret(Cli *cli, ApiKey *key)
{
    uint8_t random[40];
    char secret[SECRET_SIZE];
    uint8_t *hash = arena_alloc(cli->arena, SHA256_LEN);
    key->key_id = arena_alloc(cli->arena, KEY_ID_SIZE);
    random_bytes(random, sizeof random);
    hex_encode(random, 8, key->key_id);
    hex_encode(random + 8, 32, secret);
    char *whole = arena_printf(cli->arena, "stn_%s.%s", key->key_id, secret);
    sha256(str_from(whole), hash);
    key->secret_hash = pb_data(str_of(hash, SHA256_LEN));
    return whole;
}

static ConfigEntry entry_of(const ApiKey *key, uint64_t replaces)
{
    return (ConfigEntry){
        "apikey", str_from(key->tenant), str_from(key->key_id), &key->base, replaces};
}

static const char *time_text(Cli *cli, int64_t at_us, const char *none)
{
    char text[CLOCK_RFC3339_SIZE];
    if (at_us == 0) {
        return none;
    }
    clock_format(at_us, text);
    return arena_cstr(cli->arena, str_from(text));
}

static const char *scopes_text(Cli *cli, const ApiKey *key)
{
    Buf out;
    buf_init(&out, 64 * 1024);
    for (size_t i = 0; i < key->n_scopes; i++) {
        buf_printf(&out, "%s%s", i > 0 ? "," : "", key->scopes[i]);
    }
    const char *text = arena_cstr(cli->arena, buf_view(&out));
    buf_done(&out);
    return text[0] != '\0' ? text : "all (made before scopes)";
}

static void print_key(Cli *cli, const ApiKey *key, const char *whole)
{
    print_pairs(
        cli, (const char *const[]){
                 "tenant", key->tenant, "key", whole, "key_id", key->key_id, "scopes",
                 scopes_text(cli, key), "expires_at", time_text(cli, key->expires_at_us, "never"),
                 NULL});
}

int cmd_apikey_create(Cli *cli)
{
    static char made_by[] = "cli";
    static char all[] = "admin";
    static char *everything[] = {all};
    Error err = {0};
    ApiKey key;
    stentor__v1__api_key__init(&key);
    key.created_at_us = clock_now_us();
    key.created_by = made_by;
    key.tenant = tenant_of(cli, &err);
    if (key.tenant == NULL || !read_name(cli, &key.name, &err) ||
        !read_scopes(cli, &key.scopes, &key.n_scopes, &err) ||
        !read_expiry(cli, key.created_at_us, &key.expires_at_us, &err)) {
        return cli_fail(&err);
    }
    if (key.n_scopes == 0) {
        key.scopes = everything;
        key.n_scopes = 1;
    }
    char *whole = make_secret(cli, &key);
    ConfigEntry entry = entry_of(&key, 0);
    if (!config_put_once(&cli->settings.session, cli->arena, &entry, &err)) {
        return cli_fail(&err);
    }
    print_key(cli, &key, whole);
    return EXIT_DONE;
}

// ---- listing ----

static const char *state_of(const ApiKey *key, int64_t now_us)
{
    bool revoked = key->revoked_at_us != 0 && key->revoked_at_us <= now_us;
    bool expired = key->expires_at_us != 0 && key->expires_at_us <= now_us;
    return revoked                   ? "revoked"
           : expired                 ? "expired"
           : key->revoked_at_us != 0 ? "ending"
                                     : "active";
}

typedef struct Listing {
    Cli *cli;
    int64_t now_us;
    bool all;
    const ApiKey **keys;
    size_t count;
    size_t room;
} Listing;

static bool is_over(const char *state)
{
    return strcmp(state, "revoked") == 0 || strcmp(state, "expired") == 0;
}

static bool take_key(void *ctx, const BusMessage *message, const char *reason, Error *err)
{
    (void)err;
    Listing *listing = ctx;
    const ApiKey *key =
        reason != NULL || message->payload.len == 0
            ? NULL
            : (const ApiKey *)event_unpack(
                  &stentor__v1__api_key__descriptor, message->payload, listing->cli->arena, NULL);
    if (key == NULL || (!listing->all && is_over(state_of(key, listing->now_us))) ||
        listing->count == KEYS_MAX) {
        return true;
    }
    if (listing->count == listing->room) {
        listing->room = listing->room == 0 ? 64 : 2 * listing->room;
        const ApiKey **keys = arena_array(listing->cli->arena, listing->room, sizeof *keys);
        if (listing->count > 0) {
            memcpy(keys, listing->keys, listing->count * sizeof *keys);
        }
        listing->keys = keys;
    }
    listing->keys[listing->count++] = key;
    return true;
}

static int by_age(const void *a, const void *b)
{
    const ApiKey *x = *(const ApiKey *const *)a;
    const ApiKey *y = *(const ApiKey *const *)b;
    return x->created_at_us < y->created_at_us ? -1 : x->created_at_us > y->created_at_us;
}

static json_t *key_json(Cli *cli, const ApiKey *key, int64_t now_us)
{
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:s, s:s}", "key_id", key->key_id, "tenant", key->tenant, "name",
        key->name, "state", state_of(key, now_us), "created_at",
        time_text(cli, key->created_at_us, ""));
    json_t *scopes = json_array();
    for (size_t i = 0; i < key->n_scopes; i++) {
        (void)json_array_append_new(scopes, json_string(key->scopes[i]));
    }
    (void)json_object_set_new(json, "scopes", scopes);
    const char *const more[][2] = {
        {"expires_at", time_text(cli, key->expires_at_us, "")},
        {"revoked_at", time_text(cli, key->revoked_at_us, "")},
        {"rotated_from", key->rotated_from},
        {"created_by", key->created_by},
    };
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        if (more[i][1][0] != '\0') {
            (void)json_object_set_new(json, more[i][0], json_string(more[i][1]));
        }
    }
    return json;
}

static void print_json(const Listing *listing)
{
    json_t *list = json_array();
    for (size_t i = 0; i < listing->count; i++) {
        (void)json_array_append_new(
            list, key_json(listing->cli, listing->keys[i], listing->now_us));
    }
    char *text = json_dumps(list, JSON_COMPACT);
    printf("%s\n", text != NULL ? text : "[]");
    free(text);
    json_decref(list);
}

static void print_table(const Listing *listing)
{
    printf(
        "%-16s  %-8s %-20s %-20s %-24s %s\n", "KEY ID", "STATE", "CREATED", "UNTIL", "SCOPES",
        "NAME");
    for (size_t i = 0; i < listing->count; i++) {
        const ApiKey *key = listing->keys[i];
        bool revoked = key->revoked_at_us != 0 &&
                       (key->expires_at_us == 0 || key->revoked_at_us < key->expires_at_us);
        int64_t until_us = revoked ? key->revoked_at_us : key->expires_at_us;
        printf(
            "%-16s  %-8s %-20.19s %-20.19s %-24s %s\n", key->key_id, state_of(key, listing->now_us),
            time_text(listing->cli, key->created_at_us, "-"),
            time_text(listing->cli, until_us, "-"), scopes_text(listing->cli, key), key->name);
    }
}

int cmd_apikey_list(Cli *cli)
{
    Error err = {0};
    Session session;
    Listing listing = {.cli = cli, .now_us = clock_now_us(), .all = args_has(&cli->args, "all")};
    const char *tenant = tenant_of(cli, &err);
    if (tenant == NULL || !session_open(&session, &cli->settings.session, &err)) {
        return cli_fail(&err);
    }
    const char *filter = arena_printf(cli->arena, "cfg.apikey.%s.>", tenant);
    bool ok = config_walk(&session, &(ConfigPart){.filter = filter}, take_key, &listing, &err);
    session_close(&session);
    if (!ok) {
        return cli_fail(&err);
    }
    if (listing.count > 0) {
        qsort(listing.keys, listing.count, sizeof *listing.keys, by_age);
    }
    if (cli->json) {
        print_json(&listing);
    } else {
        print_table(&listing);
    }
    return EXIT_DONE;
}

// ---- ending one ----

typedef struct Stored {
    ApiKey *key; // NULL: there is none
    uint64_t sequence;
} Stored;

// The id may be written with "stn_" before it.
static bool fetch_key(Session *session, Cli *cli, const char *tenant, Stored *ret, Error *err)
{
    char subject[SUBJECT_SIZE];
    Str payload = STR_EMPTY;
    Str id = str_from(args_word(&cli->args, 0));
    id = str_starts(id, ID_PREFIX) ? str_slice(id, ID_PREFIX.len, id.len) : id;
    *ret = (Stored){0};
    if (!id_is_key(id)) {
        return error_set(
            err, ERROR_CONFIG, "'" STR_FMT "' is not a key id (HINT: stentor apikey list)",
            STR_ARG(str_slice(id, 0, 64)));
    }
    subject_config(subject, "apikey", str_from(tenant), id);
    if (!config_get(session, cli->arena, subject, &payload, &ret->sequence, err)) {
        return false;
    }
    if (payload.len > 0) {
        ret->key =
            (ApiKey *)event_unpack(&stentor__v1__api_key__descriptor, payload, cli->arena, err);
    }
    return payload.len == 0 || ret->key != NULL;
}

static int fail_missing(const Cli *cli, const char *tenant)
{
    fprintf(
        stderr, "stentor: tenant '%s' has no API key '%s' (HINT: stentor apikey list --all)\n",
        tenant, args_word(&cli->args, 0));
    return EXIT_NOT_FOUND;
}

// From at_us on it is valid no more; one that ends earlier already is left as it is.
static bool end_key(Session *session, Cli *cli, const Stored *stored, int64_t at_us, Error *err)
{
    if (stored->key->revoked_at_us != 0 && stored->key->revoked_at_us <= at_us) {
        return true;
    }
    stored->key->revoked_at_us = at_us;
    ConfigEntry entry = entry_of(stored->key, stored->sequence);
    return config_put(session, cli->arena, &entry, err);
}

int cmd_apikey_revoke(Cli *cli)
{
    Error err = {0};
    Session session;
    Stored stored = {0};
    const char *tenant = tenant_of(cli, &err);
    if (tenant == NULL || !session_open(&session, &cli->settings.session, &err)) {
        return cli_fail(&err);
    }
    bool ok = fetch_key(&session, cli, tenant, &stored, &err) &&
              (stored.key == NULL || end_key(&session, cli, &stored, clock_now_us(), &err));
    session_close(&session);
    if (!ok) {
        return cli_fail(&err);
    }
    if (stored.key == NULL) {
        return fail_missing(cli, tenant);
    }
    print_pairs(
        cli, (const char *const[]){
                 "tenant", stored.key->tenant, "key_id", stored.key->key_id, "state", "revoked",
                 "revoked_at", time_text(cli, stored.key->revoked_at_us, ""), NULL});
    return EXIT_DONE;
}

// ---- rotation ----

// The new key: what the old one could, for as long as the old one was made for.
static bool succeed(Cli *cli, const ApiKey *old, ApiKey *ret, Error *err)
{
    static char made_by[] = "cli";
    static char all[] = "admin";
    static char *everything[] = {all};
    stentor__v1__api_key__init(ret);
    ret->tenant = old->tenant;
    ret->name = old->name;
    ret->created_at_us = clock_now_us();
    ret->created_by = made_by;
    ret->rotated_from = old->key_id;
    if (old->expires_at_us != 0) {
        ret->expires_at_us = ret->created_at_us + (old->expires_at_us - old->created_at_us);
    }
    if (old->revoked_at_us != 0 && old->revoked_at_us <= ret->created_at_us) {
        return error_set(
            err, ERROR_CONFIG, "key '%s' is revoked (HINT: stentor apikey create)", old->key_id);
    }
    if (!read_name(cli, &ret->name, err) || !read_scopes(cli, &ret->scopes, &ret->n_scopes, err) ||
        !read_expiry(cli, ret->created_at_us, &ret->expires_at_us, err)) {
        return false;
    }
    if (ret->n_scopes == 0) {
        ret->scopes = old->n_scopes > 0 ? old->scopes : everything;
        ret->n_scopes = old->n_scopes > 0 ? old->n_scopes : 1;
    }
    return true;
}

static bool read_grace(const Cli *cli, int64_t *ret_us, Error *err)
{
    const char *text = args_flag(&cli->args, "grace");
    *ret_us = DAY_US;
    return text == NULL || span_parse(str_from(text), ret_us) ||
           error_set(err, ERROR_CONFIG, "--grace '%s': expected how long (0s, 30m, 24h, 7d)", text);
}

// First the new key is stored, then the old one's end: killed in between, the old one goes on and
// the new one, which was shown to none, stands in the list.
static int rotate(Session *session, Cli *cli, const Stored *stored, int64_t grace_us)
{
    Error err = {0};
    ApiKey next;
    if (!succeed(cli, stored->key, &next, &err)) {
        return cli_fail(&err);
    }
    char *whole = make_secret(cli, &next);
    ConfigEntry entry = entry_of(&next, 0);
    if (!config_put(session, cli->arena, &entry, &err)) {
        return cli_fail(&err);
    }
    bool ended = end_key(session, cli, stored, next.created_at_us + grace_us, &err);
    print_pairs(
        cli, (const char *const[]){
                 "tenant", next.tenant, "key", whole, "key_id", next.key_id, "scopes",
                 scopes_text(cli, &next), "expires_at", time_text(cli, next.expires_at_us, "never"),
                 "rotated_from", next.rotated_from, "old_valid_until",
                 time_text(cli, ended ? stored->key->revoked_at_us : 0, "revoked by hand"), NULL});
    if (!ended) {
        fprintf(
            stderr,
            "stentor: the new key is stored, the old one's end is not: %s (HINT: stentor apikey "
            "revoke %s)\n",
            err.text, stored->key->key_id);
    }
    return ended ? EXIT_DONE : EXIT_FAILED;
}

int cmd_apikey_rotate(Cli *cli)
{
    Error err = {0};
    Session session;
    Stored stored = {0};
    int64_t grace_us = 0;
    const char *tenant = tenant_of(cli, &err);
    if (tenant == NULL || !read_grace(cli, &grace_us, &err) ||
        !session_open(&session, &cli->settings.session, &err)) {
        return cli_fail(&err);
    }
    bool ok = fetch_key(&session, cli, tenant, &stored, &err);
    int status = !ok                  ? cli_fail(&err)
                 : stored.key == NULL ? fail_missing(cli, tenant)
                                      : rotate(&session, cli, &stored, grace_us);
    session_close(&session);
    return status;
}
