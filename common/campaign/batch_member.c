// SPDX-License-Identifier: Apache-2.0
#include "common/campaign/batch_member.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/codec/hash.h"
#include "common/json/json_read.h"
#include "common/json/json_write.h"
#include "common/model/retention/retention.h"
#include "common/request/consent.h"
#include "common/request/required.h"

DEFINE_CLEANUP(free_json, json_t *, json_decref)

typedef struct Reading {
    Member *member;
    const MemberRules *rules;
    Arena *arena;
    FieldError *err;
} Reading;

static bool take_text(Reading *r, const char *field, const json_t *value, Str *ret)
{
    if (!json_is_string(value)) {
        return field_error(r->err, field, "must be a string");
    }
    *ret = arena_str(r->arena, str_of(json_string_value(value), json_string_length(value)));
    return true;
}

static bool read_variables(Reading *r, const json_t *value)
{
    if (!json_is_object(value)) {
        return field_error(r->err, "variables", "must be an object");
    }
    r->member->variables = json_text(value, JSON_DECIMALS, r->arena);
    size_t size = r->member->variables.len;
    return size <= r->rules->variables_max ||
           field_error(
               r->err, "variables", "%zu bytes of JSON; at most %zu", size,
               r->rules->variables_max);
}

static bool read_field(Reading *r, const char *name, const json_t *value)
{
    const struct {
        const char *name;
        Str *place;
    } texts[] = {
        {"to", &r->member->to},
        {"name", &r->member->name},
        {"recipient_id", &r->member->recipient_id},
        {"locale", &r->member->locale},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(name, texts[i].name) == 0) {
            return take_text(r, texts[i].name, value, texts[i].place);
        }
    }
    if (strcmp(name, "variables") == 0) {
        return read_variables(r, value);
    }
    if (strcmp(name, "consent") == 0) {
        Member *m = r->member;
        return consent_read(value, r->arena, &m->consent_source, &m->consent_at_us, r->err);
    }
    return field_error(
        r->err, arena_cstr(r->arena, str_slice(str_from(name), 0, 40)), "unknown field");
}

// By the rules of a request, so that what is taken here cannot be refused when it is sent.
static bool check_member(Reading *r)
{
    Member *m = r->member;
    Request request = r->rules->model;
    request.to = m->to;
    request.to_name = m->name;
    request.recipient_id = m->recipient_id;
    request.variables = m->variables;
    request.locale = m->locale.len > 0 ? m->locale : request.locale;
    request.consent_source = m->consent_source;
    request.consent_at_us = m->consent_at_us;
    if (!request_check(&request, r->rules->now_us, r->arena, r->err)) {
        if (strcmp(r->err->field, "to.name") == 0) {
            r->err->field = "name"; // which is what it is called here
        }
        return false;
    }
    m->to = request.to;
    return true;
}

bool batch_member_read(
    const json_t *value, const MemberRules *rules, Arena *arena, Member *ret, FieldError *err)
{
    Member member = {0};
    Reading r = {.member = &member, .rules = rules, .arena = arena, .err = err};
    if (!json_is_object(value)) {
        return field_error(err, "", "must be a JSON object");
    }
    const char *name = NULL;
    json_t *part = NULL;
    json_object_foreach((json_t *)(uintptr_t)value, name, part)
    {
        if (!json_is_null(part) && !read_field(&r, name, part)) {
            return false;
        }
    }
    if (!check_member(&r)) {
        return false;
    }
    const char *at = rules->required;
    const char *path = required_missing(&at, json_object_get(value, "variables"), rules->defaults);
    if (path != NULL) {
        return required_error(err, path, &rules->model, arena);
    }
    *ret = member;
    return true;
}

bool batch_member_parse(
    Str line, const MemberRules *rules, Arena *arena, Member *ret, FieldError *err)
{
    json_error_t error;
    CLEANUP(free_json)
    json_t *root = json_read(line, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (root == NULL) {
        bool utf8 = json_error_code(&error) == json_error_invalid_utf8;
        return field_error(
            err, "", "not JSON: column %d: %.100s", error.column,
            utf8 ? "not valid UTF-8" : error.text);
    }
    return batch_member_read(root, rules, arena, ret, err);
}

void batch_notification_id(Str batch_id, int64_t index, int64_t begun_at_us, char out[ID_SIZE])
{
    char text[64];
    int len = snprintf(text, sizeof text, STR_FMT "/%" PRId64, STR_ARG(batch_id), index);
    uint8_t digest[SHA256_LEN];
    sha256(str_of(text, (size_t)len), digest);
    id_derived("ntf_", begun_at_us, digest, out);
    retention_id_set_code(out, retention_class_code(retention_class_of_id(batch_id)));
}
