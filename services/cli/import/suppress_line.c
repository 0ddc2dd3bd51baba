// SPDX-License-Identifier: Apache-2.0
#include "services/cli/import/suppress_line.h"

#include <jansson.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/codec/hash.h"
#include "common/model/address.h"

typedef enum Field {
    FIELD_ADDRESS,
    FIELD_ADDRESS_HASH,
    FIELD_CHANNEL,
    FIELD_CATEGORY,
    FIELD_REASON,
    FIELD_NOTE,
    FIELD_EXPIRES_AT,
    FIELD_RELEASED_AT,
    FIELD_COUNT
} Field;

static const char *const NAMES[FIELD_COUNT] = {"address",    "address_hash", "channel",
                                               "category",   "reason",       "note",
                                               "expires_at", "released_at"};

typedef struct Texts {
    Str of[FIELD_COUNT]; // empty: not told
} Texts;

// ---- CSV (RFC 4180, one record a line) ----

// Takes the next value of the record; *more: another one follows. false: a quote is not closed, or
// something stands behind it.
static bool take_value(Str *rest, Arena *arena, Str *ret, bool *more)
{
    if (rest->len == 0 || rest->ptr[0] != '"') {
        ptrdiff_t comma = str_find(*rest, ',');
        size_t len = comma < 0 ? rest->len : (size_t)comma;
        *ret = str_trim(str_slice(*rest, 0, len));
        *rest = str_slice(*rest, len, rest->len);
    } else {
        char *text = arena_alloc(arena, rest->len);
        size_t len = 0;
        size_t at = 1;
        while (at < rest->len &&
               (rest->ptr[at] != '"' || (at + 1 < rest->len && rest->ptr[at + 1] == '"'))) {
            text[len++] = rest->ptr[at];
            at += rest->ptr[at] == '"' ? 2 : 1;
        }
        if (at >= rest->len) {
            return false;
        }
        *ret = str_of(text, len);
        *rest = str_trim(str_slice(*rest, at + 1, rest->len));
    }
    *more = rest->len > 0 && rest->ptr[0] == ',';
    if (rest->len > 0 && !*more) {
        return false;
    }
    *rest = str_slice(*rest, 1, rest->len);
    return true;
}

static int find_field(Str name)
{
    for (int i = 0; i < FIELD_COUNT; i++) {
        if (str_eq_nocase(name, str_from(NAMES[i]))) {
            return i;
        }
    }
    return -1;
}

bool suppress_header_parse(Str line, SuppressColumns *ret, Error *err)
{
    Arena *arena = arena_new(0);
    bool seen[FIELD_COUNT] = {false};
    bool more = true;
    bool ok = true;
    *ret = (SuppressColumns){0};
    while (ok && more) {
        Str name;
        ok = take_value(&line, arena, &name, &more) && ret->count < SUPPRESS_COLUMNS_MAX;
        int field = ok ? find_field(name) : -1;
        if (field >= 0) {
            ok = !seen[field];
            seen[field] = true;
        }
        if (ok) {
            ret->field[ret->count++] = field;
        }
    }
    arena_free(arena);
    if (!ok || (!seen[FIELD_ADDRESS] && !seen[FIELD_ADDRESS_HASH])) {
        return error_set(
            err, ERROR_PERMANENT,
            "the first line must name the columns, each once, among them 'address' or "
            "'address_hash'");
    }
    return true;
}

static bool read_csv(const SuppressColumns *columns, Str line, Arena *arena, Texts *ret, Error *err)
{
    bool more = true;
    for (int i = 0; more; i++) {
        Str value;
        if (!take_value(&line, arena, &value, &more)) {
            return error_set(err, ERROR_PERMANENT, "column %d: a quote is not closed", i + 1);
        }
        if (i == columns->count) {
            return error_set(
                err, ERROR_PERMANENT, "more than the %d columns of the first line", columns->count);
        }
        if (columns->field[i] >= 0) {
            ret->of[columns->field[i]] = value;
        }
    }
    return true;
}

// ---- NDJSON ----

static bool read_json(Str line, Arena *arena, Texts *ret, Error *err)
{
    json_error_t where;
    json_t *root = json_loadb(line.ptr, line.len, JSON_REJECT_DUPLICATES, &where);
    if (!json_is_object(root)) {
        json_decref(root);
        return error_set(
            err, ERROR_PERMANENT, "not one JSON object (column %d)",
            root == NULL ? where.column : 1);
    }
    bool ok = true;
    for (int i = 0; ok && i < FIELD_COUNT; i++) {
        const json_t *value = json_object_get(root, NAMES[i]);
        if (json_is_string(value)) {
            ret->of[i] =
                arena_str(arena, str_of(json_string_value(value), json_string_length(value)));
        } else if (value != NULL && !json_is_null(value)) {
            ok = error_set(err, ERROR_PERMANENT, "%s: must be a string", NAMES[i]);
        }
    }
    json_decref(root);
    return ok;
}

// ---- values ----

static bool read_names(const Texts *texts, SuppressLine *ret, Error *err)
{
    Str channel = texts->of[FIELD_CHANNEL];
    Str category = texts->of[FIELD_CATEGORY];
    Str reason = texts->of[FIELD_REASON];
    if (channel.len > 0 && !channel_from_name(channel, &ret->channel)) {
        return error_set(err, ERROR_PERMANENT, "channel: not one such as 'email'");
    }
    if (str_eq(category, STR("any"))) {
        ret->category = CATEGORY_NONE;
    } else if (category.len > 0 && !category_from_name(category, &ret->category)) {
        return error_set(err, ERROR_PERMANENT, "category: not one such as 'marketing'");
    }
    if (reason.len > 0 && !suppression_reason_from_name(reason, &ret->reason)) {
        return error_set(err, ERROR_PERMANENT, "reason: not one such as 'hard_bounce'");
    }
    return true;
}

static bool read_address(
    const SuppressReading *reading, const Texts *texts, Arena *arena, SuppressLine *ret, Error *err)
{
    Str hash = texts->of[FIELD_ADDRESS_HASH];
    Str address = texts->of[FIELD_ADDRESS];
    size_t len = 0;
    if (hash.len > 0) {
        bool good = hex_decode(hash, ret->hash, SUPPRESSION_HASH_LEN, &len);
        return (good && len == SUPPRESSION_HASH_LEN) ||
               error_set(err, ERROR_PERMANENT, "address_hash: not 64 hexadecimal digits");
    }
    char reason[ADDRESS_REASON_SIZE];
    if (address.len == 0) {
        return error_set(err, ERROR_PERMANENT, "address: it is missing");
    }
    ret->address = address;
    if (ret->channel == CHANNEL_EMAIL && !address_parse(address, arena, &ret->address, reason)) {
        return error_set(err, ERROR_PERMANENT, "address: %s", reason);
    }
    address_hash(reading->hash_key, reading->tenant, ret->channel, ret->address, ret->hash);
    return true;
}

static bool read_rest(const Texts *texts, SuppressLine *ret, Error *err)
{
    Str note = texts->of[FIELD_NOTE];
    Str expires = texts->of[FIELD_EXPIRES_AT];
    if (note.len > SUPPRESSION_NOTE_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "note: longer than %d bytes", (int)SUPPRESSION_NOTE_MAX);
    }
    ret->note = note.len > 0 ? note : ret->note;
    if (expires.len > 0 && !clock_parse(expires, &ret->expires_at_us)) {
        return error_set(
            err, ERROR_PERMANENT, "expires_at: not a time such as '2026-11-20T18:25:36Z'");
    }
    ret->released = texts->of[FIELD_RELEASED_AT].len > 0;
    return true;
}

bool suppress_line_parse(
    const SuppressReading *reading, Str line, Arena *arena, SuppressLine *ret, Error *err)
{
    Texts texts;
    for (int i = 0; i < FIELD_COUNT; i++) {
        texts.of[i] = STR_EMPTY;
    }
    *ret = reading->defaults;
    if (!str_is_utf8(line)) {
        return error_set(err, ERROR_PERMANENT, "it is not UTF-8");
    }
    bool read = reading->columns.count > 0 ? read_csv(&reading->columns, line, arena, &texts, err)
                                           : read_json(line, arena, &texts, err);
    return read && read_names(&texts, ret, err) && read_address(reading, &texts, arena, ret, err) &&
           read_rest(&texts, ret, err);
}
