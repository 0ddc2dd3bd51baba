// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/sendgrid_events.h"

#include <jansson.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/id.h"
#include "common/base/json_scan.h"
#include "common/base/log.h"

DEFINE_CLEANUP(free_json, json_t *, json_decref)

enum { ID_TEXT_MAX = 200 };

#define YEAR_2100_S INT64_C(4102444800)

typedef struct Kind {
    const char *event;
    const char *type; // NULL: any; of bounces
    Status status;
    Outcome outcome;
    const char *reason_code;
    SuppressionReason suppress;
} Kind;

// clang-format off
static const Kind KINDS[] = {
    {"delivered",   NULL,      STATUS_DELIVERED,  OUTCOME_DELIVERED, "",            SUPPRESSION_NONE},
    {"open",        NULL,      STATUS_OPENED,     OUTCOME_OPENED,    "",            SUPPRESSION_NONE},
    {"click",       NULL,      STATUS_CLICKED,    OUTCOME_CLICKED,   "",            SUPPRESSION_NONE},
    {"bounce",      "blocked", STATUS_FAILED,     OUTCOME_FAILED,    "blocked",     SUPPRESSION_NONE},
    {"bounce",      NULL,      STATUS_BOUNCED,    OUTCOME_BOUNCE,    "hard_bounce", SUPPRESSION_HARD_BOUNCE},
    {"dropped",     NULL,      STATUS_FAILED,     OUTCOME_FAILED,    "dropped",     SUPPRESSION_NONE},
    {"spamreport",  NULL,      STATUS_COMPLAINED, OUTCOME_COMPLAINT, "complaint",   SUPPRESSION_COMPLAINT},
    {"unsubscribe", NULL,      STATUS_NONE,       OUTCOME_NONE,      "",            SUPPRESSION_OPT_OUT},
};
// clang-format on

static Str text_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? str_of(json_string_value(value), json_string_length(value))
                                 : STR_EMPTY;
}

// A vendor's id, which is copied into events: bounded and printable, or none.
static Str take_id(const json_t *object, const char *name, Arena *arena)
{
    Str text = text_of(object, name);
    return text.len > ID_TEXT_MAX || str_has_control(text) ? STR_EMPTY : arena_str(arena, text);
}

static const Kind *find_kind(Str event, Str type)
{
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        if (str_eq(event, str_from(KINDS[i].event)) &&
            (KINDS[i].type == NULL || str_eq(type, str_from(KINDS[i].type)))) {
            return &KINDS[i];
        }
    }
    return NULL;
}

static Str find_notification(const json_t *object, Arena *arena)
{
    Str custom = text_of(object, "notification_id");
    if (id_parse(custom, "ntf_", NULL)) {
        return arena_str(arena, custom);
    }
    // "<ntf_...@mail.example.com>": the Message-ID that we gave it.
    Str ours = text_of(object, "smtp-id");
    ours = str_starts(ours, STR("<")) ? str_slice(ours, 1, ours.len) : ours;
    ptrdiff_t at = str_find(ours, '@');
    ours = at < 0 ? STR_EMPTY : str_slice(ours, 0, (size_t)at);
    return id_parse(ours, "ntf_", NULL) ? arena_str(arena, ours) : STR_EMPTY;
}

// Cut at the start of a character, so that the rest is still UTF-8.
static Str cut_text(Str text, size_t max)
{
    if (text.len <= max) {
        return text;
    }
    while (max > 0 && ((unsigned char)text.ptr[max] & 0xc0) == 0x80) {
        max--;
    }
    return str_slice(text, 0, max);
}

static Str take_text(const json_t *object, Arena *arena)
{
    Str text = text_of(object, "reason");
    if (text.len == 0) {
        text = text_of(object, "response");
    }
    // Masking may lengthen the text: cut before and after.
    char *masked = arena_alloc(arena, 2 * SENDGRID_TEXT_MAX + 1);
    mask_addresses(cut_text(text, SENDGRID_TEXT_MAX), masked, 2 * SENDGRID_TEXT_MAX + 1);
    return cut_text(str_from(masked), SENDGRID_TEXT_MAX);
}

static int64_t take_time(const json_t *object)
{
    json_int_t at_s = json_integer_value(json_object_get(object, "timestamp"));
    return at_s > 0 && at_s < YEAR_2100_S ? (int64_t)at_s * 1000000 : 0;
}

static Str take_email(const json_t *object, Arena *arena)
{
    Str text = text_of(object, "email");
    ptrdiff_t at = str_find(text, '@');
    bool good = text.len <= SENDGRID_ADDRESS_MAX && at > 0 && (size_t)at + 1 < text.len &&
                !str_has_control(text) && str_find(text, ' ') < 0;
    return good ? arena_str(arena, text) : STR_EMPTY;
}

static void read_event(const json_t *object, const Kind *kind, Arena *arena, SendgridEvent *ret)
{
    *ret = (SendgridEvent){
        .id = take_id(object, "sg_event_id", arena),
        .notification_id = find_notification(object, arena),
        .message_id = take_id(object, "sg_message_id", arena),
        .status = kind->status,
        .outcome = kind->outcome,
        .reason_code = kind->reason_code,
        .suppress = kind->suppress,
        .email = take_email(object, arena),
        .enhanced_code = take_id(object, "status", arena),
        .text = take_text(object, arena),
        .at_us = take_time(object),
    };
}

static void read_item(const json_t *item, Arena *arena, SendgridBatch *batch)
{
    Str event = text_of(item, "event"); // empty when the item is not an object
    const Kind *kind = find_kind(event, text_of(item, "type"));
    if (kind != NULL) {
        read_event(item, kind, arena, &batch->events[batch->count++]);
    } else if (event.len == 0) {
        batch->unreadable++;
    } else {
        batch->ignored++;
    }
}

bool sendgrid_events_parse(Str body, Arena *arena, SendgridBatch *ret, Error *err)
{
    json_error_t where;
    JsonExcess excess;
    if (!json_is_modest(body, &excess)) {
        return error_set(err, ERROR_PERMANENT, "the callback has %s", excess.what);
    }
    CLEANUP(free_json) json_t *root = json_loadb(body.ptr, body.len, 0, &where);
    if (root == NULL) {
        return error_set(
            err, ERROR_PERMANENT, "the callback is not JSON: line %d, column %d", where.line,
            where.column);
    }
    if (!json_is_array(root) || json_array_size(root) > SENDGRID_EVENTS_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "the callback is not an array of at most %d events",
            SENDGRID_EVENTS_MAX);
    }
    size_t count = json_array_size(root);
    *ret = (SendgridBatch){.events = arena_array(arena, count, sizeof *ret->events)};
    for (size_t i = 0; i < count; i++) {
        read_item(json_array_get(root, i), arena, ret);
    }
    return true;
}
