// SPDX-License-Identifier: Apache-2.0
#include "services/cli/config/config_line.h"

#include <jansson.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/codec/event.h"

enum { HEX_LEN = 2 * SHA256_LEN };

static void sum_line(ConfigLine *line, Arena *arena)
{
    uint8_t payload[SHA256_LEN];
    char hex[HEX_LEN + 1];
    sha256(line->payload, payload);
    hex_encode(payload, sizeof payload, hex);
    const char *text = arena_printf(
        arena, "%.*s\n%lld\n%zu\n%s", STR_ARG(line->subject), (long long)line->stored_at_us,
        line->payload.len, hex);
    sha256(str_from(text), line->sum);
}

static void add_line(ConfigTotal *total, const ConfigLine *line)
{
    uint8_t both[2 * SHA256_LEN];
    memcpy(both, total->sum, SHA256_LEN);
    memcpy(both + SHA256_LEN, line->sum, SHA256_LEN);
    sha256(str_of((const char *)both, sizeof both), total->sum);
    total->entries++;
}

// Standard base64, as every tool reads it.
static const char *base64(Str bytes, Arena *arena)
{
    size_t room = 4 * ((bytes.len + 2) / 3) + 1;
    char *text = arena_alloc(arena, room);
    base64url_encode(bytes.ptr, bytes.len, text);
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++) {
        text[i] = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
    }
    while (len % 4 != 0) {
        text[len++] = '=';
    }
    text[len] = '\0';
    return text;
}

void config_line_write(Buf *out, ConfigLine *line, ConfigTotal *total, Arena *arena)
{
    char hex[HEX_LEN + 1], stored_at[CLOCK_RFC3339_SIZE];
    sum_line(line, arena);
    add_line(total, line);
    hex_encode(line->sum, SHA256_LEN, hex);
    clock_format(line->stored_at_us, stored_at);
    buf_cstr(out, "{\"subject\":");
    buf_json(out, line->subject);
    buf_printf(
        out, ",\"stored_at\":\"%s\",\"stored_at_us\":%lld,\"payload\":\"%s\",\"sha256\":\"%s\"}\n",
        stored_at, (long long)line->stored_at_us, base64(line->payload, arena), hex);
}

void config_total_write(Buf *out, const ConfigTotal *total)
{
    char hex[HEX_LEN + 1];
    hex_encode(total->sum, SHA256_LEN, hex);
    buf_printf(out, "{\"entries\":%lld,\"sha256\":\"%s\"}\n", (long long)total->entries, hex);
}

// ---- reading ----

static bool is_sum(const json_t *value, const uint8_t sum[SHA256_LEN])
{
    uint8_t bytes[SHA256_LEN];
    size_t len = 0;
    Str hex = str_of(json_string_value(value), json_string_length(value));
    return json_is_string(value) && hex.len == HEX_LEN &&
           hex_decode(hex, bytes, sizeof bytes, &len) && memcmp(bytes, sum, SHA256_LEN) == 0;
}

static bool check_total(const json_t *root, const ConfigTotal *total, Error *err)
{
    json_int_t entries = json_integer_value(json_object_get(root, "entries"));
    if (entries != total->entries) {
        return error_set(
            err, ERROR_PERMANENT, "its last line counts %lld entries, the file holds %lld",
            (long long)entries, (long long)total->entries);
    }
    return is_sum(json_object_get(root, "sha256"), total->sum) ||
           error_set(
               err, ERROR_PERMANENT,
               "the lines are not those that were exported, or not in "
               "their order: sha256 differs");
}

static bool read_entry(const json_t *root, Arena *arena, ConfigLine *ret, Error *err)
{
    const json_t *subject = json_object_get(root, "subject");
    const json_t *payload = json_object_get(root, "payload");
    const json_t *stored = json_object_get(root, "stored_at_us");
    if (!json_is_string(subject) || !json_is_string(payload) || !json_is_integer(stored)) {
        return error_set(
            err, ERROR_PERMANENT,
            "not an entry: expected subject, stored_at_us, payload and sha256");
    }
    Str text = str_of(json_string_value(payload), json_string_length(payload));
    size_t room = text.len / 4 * 3 + 3, len = 0;
    uint8_t *bytes = arena_alloc(arena, room);
    if (!base64_decode(text, bytes, room, &len) || len > EVENT_BYTES_MAX) {
        return error_set(err, ERROR_PERMANENT, "'payload' is not base64 of an entry");
    }
    *ret = (ConfigLine){
        .subject =
            arena_str(arena, str_of(json_string_value(subject), json_string_length(subject))),
        .payload = str_of((const char *)bytes, len),
        .stored_at_us = json_integer_value(stored)};
    if (ret->subject.len > CONFIG_SUBJECT_MAX) {
        return error_set(err, ERROR_PERMANENT, "'subject' is too long");
    }
    sum_line(ret, arena);
    return is_sum(json_object_get(root, "sha256"), ret->sum) ||
           error_set(
               err, ERROR_PERMANENT, "the entry was changed after its export: sha256 differs");
}

bool config_line_read(
    Str text, ConfigTotal *total, Arena *arena, ConfigLineKind *ret_kind, ConfigLine *ret,
    Error *err)
{
    json_error_t where;
    json_t *root = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL) {
        return error_set(err, ERROR_PERMANENT, "not JSON: %.100s", where.text);
    }
    ConfigLine line;
    bool is_total = json_object_get(root, "entries") != NULL;
    bool ok = is_total ? check_total(root, total, err) : read_entry(root, arena, &line, err);
    json_decref(root);
    if (ok && !is_total) {
        add_line(total, &line);
        *ret = line;
    }
    *ret_kind = is_total ? CONFIG_LINE_TOTAL : CONFIG_LINE_ENTRY;
    return ok;
}
