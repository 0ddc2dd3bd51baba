// SPDX-License-Identifier: Apache-2.0
#include "common/api/suppress_line.h"

#include <jansson.h>
#include <string.h>

#include "common/api/api_json.h"
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
    Str of[FIELD_COUNT]; // empty: not given
} Texts;

static bool read_json(Str line, Arena *arena, Texts *ret, Error *err)
{
    json_error_t where;
    json_t *root = api_json_load(line, JSON_REJECT_DUPLICATES, &where);
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
        return error_set(err, ERROR_PERMANENT, "channel: unknown; expected " CHANNEL_NAMES);
    }
    if (str_eq(category, STR("any"))) {
        ret->category = CATEGORY_NONE;
    } else if (category.len > 0 && !category_from_name(category, &ret->category)) {
        return error_set(
            err, ERROR_PERMANENT, "category: unknown; expected one such as 'marketing'");
    }
    if (reason.len > 0 && !suppression_reason_from_name(reason, &ret->reason)) {
        return error_set(
            err, ERROR_PERMANENT, "reason: unknown; expected one such as 'hard_bounce'");
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
        return error_set(err, ERROR_PERMANENT, "address: missing");
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
    Texts texts = {{{0}}};
    *ret = reading->defaults;
    if (!str_is_utf8(line)) {
        return error_set(err, ERROR_PERMANENT, "the line is not UTF-8");
    }
    return read_json(line, arena, &texts, err) && read_names(&texts, ret, err) &&
           read_address(reading, &texts, arena, ret, err) && read_rest(&texts, ret, err);
}

Stentor__V1__Suppression *suppress_line_entry(
    const SuppressLine *line, Str tenant, int64_t at_us, Str by, Arena *arena)
{
    const SuppressionSpec spec = {
        .tenant = tenant,
        .channel = line->channel,
        .category = line->category,
        .hash = line->hash,
        .reason = line->reason,
        .at_us = at_us,
        .expires_at_us = line->expires_at_us,
        .by = by,
        .note = line->note,
        .notification_id = STR_EMPTY,
        .address = line->address,
    };
    return suppression_make(&spec, arena);
}
