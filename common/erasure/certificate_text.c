// SPDX-License-Identifier: Apache-2.0
#include "common/erasure/certificate_text.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"

#define FORMAT "stentor.erasure.certificate/1"

// clang-format off
static const char KEYS[] =
    "SELECT encode(x.subject, 'hex'), x.generation, coalesce(encode(x.wrapper, 'hex'), ''), encode(x.wrapped_sha256, 'hex'),"
    " (extract(epoch FROM x.made_at) * 1000000)::bigint, (extract(epoch FROM x.destroyed_at) * 1000000)::bigint, coalesce(e.number, 0),"
    " coalesce((extract(epoch FROM e.destroyed_at) * 1000000)::bigint, 0)"
    " FROM erasure.destroyed_keys x LEFT JOIN keys.epochs e ON e.key_id = substr(x.wrapper, 3, 4) AND substr(x.wrapper, 2, 1) = '\\x02'"
    " WHERE x.request = $1 ORDER BY x.subject, x.generation";

static const char KEPT[] =
    "SELECT encode(subject, 'hex'), generation, duty, (extract(epoch FROM until) * 1000000)::bigint FROM erasure.kept_keys"
    " WHERE request = $1 AND ended_at IS NULL ORDER BY subject, generation";

static const char *const remains[] = {
    "keyed hashes of addresses, ids, channels, categories, template names, times, outcomes, costs and country codes of notifications and attempts",
    "suppressions, by hash",
    "identity_id, locale and time zone in the events of the record on PEOPLE and in its segments",
    "entries of the audit log and of the archive's journal, without an address",
    "the digests of the destroyed keys, and this chain of certificates",
    "what was sent to a former address alone that another recipient had later (addresses_kept), until that recipient is erased",
};

static const struct { const char *what, *until; int days; } later[] = {
    {"keys in the memory of programs",                                         "60 s after the erasure",    0},
    {"events in EVENTS, in dead letters and waiting for their order, sealed under a key of their epoch",
     "the destruction of the epoch key (the final certificate); without epoch keys, their age there",      14},
    {"EVENTS: events of a tenant that keeps them in clear",                    "their age there",           7},
    {"INBOUND: vendors' callbacks, sealed under the tenant's key",             "their age there",           30},
    {"vendors' callbacks in object storage, sealed under the tenant's key",
     "STENTOR_CALLBACKS_KEPT of the archiver; the date is that of its default",                            548},
    {"members of uploaded batches, sealed under the tenant's key",             "the batch's retention",     90},
    {"wrapped keys in backups of Postgres",
     "the destruction of the epoch key that wrapped them (the final certificate); without epoch keys, the retirement of the master key", 14},
    {"the application's own tables, and what vendors keep",                    "not decided here",          0},
};
// clang-format on

static json_t *time_json(int64_t at_us)
{
    char text[CLOCK_RFC3339_SIZE] = "";
    if (at_us != 0) {
        clock_format(at_us, text);
    }
    return json_string(text);
}

static int64_t integer(const PGresult *rows, int row, int column)
{
    return strtoll(PQgetvalue(rows, row, column), NULL, 10);
}

static json_t *keys_json(PGconn *pg, const char *request, Error *err)
{
    AUTO(PGresult) rows = erasure_pg_query(pg, KEYS, 1, &request, err);
    if (rows == NULL) {
        return NULL;
    }
    json_t *list = json_array();
    for (int i = 0; i < PQntuples(rows); i++) {
        json_t *key = json_pack(
            "{s:s, s:I, s:s, s:s, s:o, s:o}", "subject", PQgetvalue(rows, i, 0), "generation",
            (json_int_t)integer(rows, i, 1), "wrapped_by", PQgetvalue(rows, i, 2), "wrapped_sha256",
            PQgetvalue(rows, i, 3), "made_at", time_json(integer(rows, i, 4)), "destroyed_at",
            time_json(integer(rows, i, 5)));
        if (integer(rows, i, 6) > 0) {
            json_object_set_new(key, "epoch", json_integer(integer(rows, i, 6)));
            json_object_set_new(key, "epoch_destroyed_at", time_json(integer(rows, i, 7)));
        }
        json_array_append_new(list, key);
    }
    return list;
}

// *ret NULL: a duty keeps nothing.
static bool records_json(PGconn *pg, const char *request, json_t **ret, Error *err)
{
    AUTO(PGresult) rows = erasure_pg_query(pg, KEPT, 1, &request, err);
    *ret = NULL;
    if (rows == NULL || PQntuples(rows) == 0) {
        return rows != NULL;
    }
    json_t *keys = json_array();
    for (int i = 0; i < PQntuples(rows); i++) {
        json_array_append_new(
            keys, json_pack(
                      "{s:s, s:I}", "subject", PQgetvalue(rows, i, 0), "generation",
                      (json_int_t)integer(rows, i, 1)));
    }
    *ret = json_pack(
        "{s:s, s:s, s:o, s:o}", "what",
        "notifications of the retention class record with their contents, and orders: readable by "
        "an operator's command that the audit log notes, and by no service",
        "under", PQgetvalue(rows, 0, 2), "until", time_json(integer(rows, 0, 3)), "keys", keys);
    return true;
}

static json_t *place_json(const ErasurePlace *place)
{
    json_t *out = json_pack(
        "{s:s, s:I, s:I, s:I}", "name", place->name, "looked_at", (json_int_t)place->looked_at,
        "sealed", (json_int_t)place->sealed, "readable", (json_int_t)place->readable);
    if (place->last > 0) {
        json_object_set_new(out, "first", json_integer((json_int_t)place->first));
        json_object_set_new(out, "last", json_integer((json_int_t)place->last));
    }
    if (place->sha256 != NULL) {
        json_object_set_new(out, "sha256", json_string(place->sha256));
    }
    return out;
}

static json_t *scanned_json(const ErasureScan *scan)
{
    json_t *out = json_pack("{s:[], s:[], s:[], s:[]}", "table", "stream", "segment", "archive");
    for (size_t i = 0; i < scan->count; i++) {
        const ErasurePlace *place = &scan->places[i];
        json_array_append_new(json_object_get(out, place->kind), place_json(place));
    }
    json_object_set_new(
        out, "how",
        json_string("each table, stream, log segment and archived object was read whole for fields "
                    "that name a "
                    "destroyed key (subject and generation); such a field can be opened by that "
                    "random key alone, which was looked for in keys.data_keys"));
    return out;
}

static json_t *later_json(int64_t erased_us)
{
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        json_t *row = json_pack("{s:s, s:s}", "what", later[i].what, "until", later[i].until);
        if (later[i].days > 0) {
            int64_t end_us = erased_us + later[i].days * INT64_C(86400) * 1000000;
            json_object_set_new(row, "by", time_json(end_us));
        }
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *remains_json(void)
{
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof remains / sizeof *remains; i++) {
        json_array_append_new(list, json_string(remains[i]));
    }
    return list;
}

static json_t *request_json(const ErasureRequest *request)
{
    return json_pack(
        "{s:s, s:s, s:o}", "ground", request->ground, "by", request->requested_by, "at",
        time_json(request->requested_us));
}

// Former addresses whose key was left to their last owner.
static json_t *kept_json(const ErasureRequest *request)
{
    json_t *cleared = json_loads(request->cleared, 0, NULL);
    json_int_t kept = json_integer_value(json_object_get(cleared, "addresses_kept"));
    json_decref(cleared);
    return json_integer(kept);
}

const char *certificate_text(PGconn *pg, const CertificateText *text, Arena *arena, Error *err)
{
    const CertificateSpec *spec = text->spec;
    const ErasureRequest *request = spec->request;
    char public_key[2 * ERASURE_PUBLIC_LEN + 1];
    hex_encode(spec->public_key, ERASURE_PUBLIC_LEN, public_key);
    json_t *keys = keys_json(pg, request->id, err);
    json_t *kept = NULL;
    if (keys == NULL || !records_json(pg, request->id, &kept, err)) {
        json_decref(keys);
        return NULL;
    }
    json_t *root = json_pack(
        "{s:s, s:I, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:s, "
        "s:s, s:o}",
        "format", FORMAT, "number", (json_int_t)text->number, "kind",
        certificate_kind_name(spec->kind), "id", request->id, "tenant", request->tenant,
        "recipient", request->recipient_id, "subject", request->subject, "request",
        request_json(request), "erased_at", time_json(request->erased_us), "keys", keys, "scanned",
        scanned_json(spec->scan), "remains", remains_json(), "ends_later",
        later_json(request->erased_us), "issued_at", time_json(spec->now_us), "audit_log",
        spec->audit_head, "program", spec->version, "previous", text->previous, "public_key",
        public_key, "addresses_kept", kept_json(request));
    if (kept != NULL) {
        json_object_set_new(root, "kept", kept);
    }
    char *dumped = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
    const char *body = arena_cstr(arena, str_from(dumped));
    free(dumped);
    json_decref(root);
    return body;
}

// ---- reading ----

static bool take(const json_t *root, const char *name, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(root, name));
    return text != NULL && str_to_c(str_from(text), out, size);
}

bool certificate_links(Str body, CertificateLinks *ret)
{
    json_t *root = json_loadb(body.ptr, body.len, JSON_REJECT_DUPLICATES, NULL);
    char format[64];
    ret->number = json_integer_value(json_object_get(root, "number"));
    bool ok = take(root, "format", format, sizeof format) && strcmp(format, FORMAT) == 0 &&
              take(root, "id", ret->request, sizeof ret->request) &&
              take(root, "previous", ret->previous, sizeof ret->previous) &&
              take(root, "public_key", ret->public_key, sizeof ret->public_key);
    json_decref(root);
    return ok;
}
