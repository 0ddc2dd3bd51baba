// SPDX-License-Identifier: Apache-2.0
#include "common/trigger/trigger.h"

#include <string.h>

#include "common/api/api_json.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/names/event_type.h"
#include "common/trigger/trigger_path.h"

typedef Stentor__V1__Trigger Trigger;

// ---- rules ----

bool trigger_is_event_type(Str text)
{
    if (text.len == 0 || text.len > TRIGGER_TYPE_MAX || str_eq(text, STR("notify"))) {
        return false;
    }
    bool in_token = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool dot = c == '.';
        if (dot ? !in_token : !ascii_is_alnum(c) && c != '_' && c != '-') {
            return false;
        }
        in_token = !dot;
    }
    return in_token;
}

bool trigger_anchor_is_event(const Trigger *t)
{
    return t->anchor[0] == '\0' || strcmp(t->anchor, "event_produced_at") == 0;
}

bool trigger_reschedules(const Trigger *t)
{
    bool waits = !trigger_anchor_is_event(t) || t->offset_s > 0;
    return waits && t->subject_path[0] != '\0' && !t->keep_earlier;
}

static int channel_of_trigger(const Trigger *t)
{
    return t->channel == 0 ? (int)CHANNEL_EMAIL : (int)t->channel;
}

bool trigger_collides(const Trigger *a, const Trigger *b)
{
    return !a->per_trigger && !b->per_trigger && !a->disabled && !b->disabled &&
           strcmp(a->key, b->key) != 0 &&
           str_eq(
               event_type_plain(str_from(a->event_type)),
               event_type_plain(str_from(b->event_type))) &&
           strcmp(a->template_, b->template_) == 0 && strcmp(a->resolver, b->resolver) == 0 &&
           channel_of_trigger(a) == channel_of_trigger(b);
}

static bool check_path(const char *path, const char *field, FieldError *err)
{
    return path[0] == '\0' || path_is(str_from(path)) ||
           field_error(err, field, "'%.60s' is not a path such as 'guest.name'", path);
}

static bool check_name_path(const Trigger *t, FieldError *err)
{
    return check_path(t->name_path, "name_path", err);
}

static bool check_locale_path(const Trigger *t, FieldError *err)
{
    return check_path(t->locale_path, "locale_path", err);
}

static bool check_anchor(const Trigger *t, FieldError *err)
{
    return trigger_anchor_is_event(t) || check_path(t->anchor, "anchor", err);
}

static bool check_channel(const Trigger *t, FieldError *err)
{
    return t->channel == 0 || channel_name((Channel)t->channel)[0] != '\0' ||
           field_error(err, "channel", "not a channel: " CHANNEL_NAMES);
}

static bool check_category(const Trigger *t, FieldError *err)
{
    return t->category == 0 || category_name((Category)t->category)[0] != '\0' ||
           field_error(err, "category", "not a category");
}

static bool check_priority(const Trigger *t, FieldError *err)
{
    return t->priority == 0 || priority_name((Priority)t->priority)[0] != '\0' ||
           field_error(err, "priority", "not one of critical, high, normal, low");
}

static bool check_obsoleted(const Trigger *t, FieldError *err)
{
    if (t->n_obsoleted_by > TRIGGER_OBSOLETED_MAX) {
        return field_error(
            err, "obsoleted_by", "%zu event types; at most %d", t->n_obsoleted_by,
            TRIGGER_OBSOLETED_MAX);
    }
    for (size_t i = 0; i < t->n_obsoleted_by; i++) {
        if (!trigger_is_event_type(str_from(t->obsoleted_by[i]))) {
            return field_error(
                err, "obsoleted_by", "'%.60s' is not an event type such as 'stay.cancelled'",
                t->obsoleted_by[i]);
        }
    }
    return true;
}

static bool check_subject_path(const Trigger *t, FieldError *err)
{
    if (t->n_obsoleted_by > 0 && t->subject_path[0] == '\0') {
        return field_error(
            err, "subject_path", "required with obsoleted_by: what both events are about");
    }
    return check_path(t->subject_path, "subject_path", err);
}

static bool check_key(const Trigger *t, FieldError *err)
{
    return id_is_key(str_from(t->key)) ||
           field_error(err, "key", "not a trigger's key: a-z, 0-9, '_', '-', at most 64");
}

static bool check_event_type(const Trigger *t, FieldError *err)
{
    return trigger_is_event_type(str_from(t->event_type)) ||
           field_error(
               err, "event_type",
               "not an event type such as 'stay.confirmed': A-Z a-z 0-9 '_' '-' and dots, at most "
               "%d bytes, not 'notify'",
               TRIGGER_TYPE_MAX);
}

static bool check_template(const Trigger *t, FieldError *err)
{
    return id_is_key(str_from(t->template_)) ||
           field_error(err, "template", "not a template's key: a-z, 0-9, '_', '-', at most 64");
}

static bool check_offset(const Trigger *t, FieldError *err)
{
    return (t->offset_s <= TRIGGER_OFFSET_MAX_S && t->offset_s >= -TRIGGER_OFFSET_MAX_S) ||
           field_error(err, "offset_s", "more than 366 days from the anchor");
}

static bool check_resolver(const Trigger *t, FieldError *err)
{
    Resolver resolver;
    return resolver_parse(str_from(t->resolver), &resolver, err);
}

// Each of a field of its own.
static bool (*const RULES[])(const Trigger *t, FieldError *err) = {
    check_key,          check_event_type, check_template,  check_offset,    check_resolver,
    check_channel,      check_category,   check_priority,  check_name_path, check_locale_path,
    check_subject_path, check_anchor,     check_obsoleted,
};
enum { RULE_COUNT = sizeof RULES / sizeof RULES[0] };

bool trigger_check(const Trigger *t, FieldError *err)
{
    for (size_t i = 0; i < RULE_COUNT; i++) {
        if (!RULES[i](t, err)) {
            return false;
        }
    }
    return true;
}

// ---- JSON ----

static char *take_text(ApiBody *body, const char *name, size_t max)
{
    Str text = STR_EMPTY;
    (void)api_read_text(body, name, max, &text);
    return arena_cstr(body->arena, text);
}

// A word of an enumeration; each of its values is the protocol's.
static int take_word_of(ApiBody *body, const char *name, bool (*from_name)(Str text, int *ret))
{
    Str text = STR_EMPTY;
    int value = 0;
    if (api_read_text(body, name, 40, &text) && text.len > 0 && !from_name(text, &value)) {
        (void)api_body_fail(body, name, "'%.*s' is not a %s", STR_ARG(text), name);
    }
    return value;
}

static bool channel_of(Str text, int *ret)
{
    Channel channel = CHANNEL_NONE;
    bool ok = channel_from_name(text, &channel);
    *ret = (int)channel;
    return ok;
}

static bool category_of(Str text, int *ret)
{
    Category category = CATEGORY_NONE;
    bool ok = category_from_name(text, &category);
    *ret = (int)category;
    return ok;
}

static bool priority_of(Str text, int *ret)
{
    Priority priority = PRIORITY_NONE;
    bool ok = priority_from_name(text, &priority);
    *ret = (int)priority;
    return ok;
}

static void take_obsoleted(ApiBody *body, Trigger *t)
{
    json_t *list = NULL;
    if (!api_read_array(body, "obsoleted_by", TRIGGER_OBSOLETED_MAX, &list) || list == NULL) {
        return;
    }
    size_t count = json_array_size(list);
    t->obsoleted_by = arena_array(body->arena, count + 1, sizeof *t->obsoleted_by);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_string(item)) {
            (void)api_body_fail(body, "obsoleted_by", "entry %zu is not a string", i);
            continue;
        }
        Str text = str_of(json_string_value(item), json_string_length(item));
        t->obsoleted_by[t->n_obsoleted_by++] = arena_cstr(body->arena, text);
    }
}

static bool take_identity(ApiBody *body)
{
    Str text = STR_EMPTY;
    bool per_trigger = api_read_text(body, "identity", 40, &text) && str_eq(text, STR("trigger"));
    if (text.len > 0 && !per_trigger && !str_eq(text, STR("event"))) {
        (void)api_body_fail(body, "identity", "neither 'event' nor 'trigger'");
    }
    return per_trigger;
}

static void take_fields(ApiBody *body, Trigger *t)
{
    bool enabled = true;
    bool reschedule = true;
    t->event_type = take_text(body, "event_type", 200);
    t->template_ = take_text(body, "template", 200);
    t->channel = (Stentor__V1__Channel)take_word_of(body, "channel", channel_of);
    t->category = (Stentor__V1__Category)take_word_of(body, "category", category_of);
    t->priority = (Stentor__V1__Priority)take_word_of(body, "priority", priority_of);
    t->resolver = take_text(body, "resolver", 400);
    t->name_path = take_text(body, "name_path", 400);
    t->locale_path = take_text(body, "locale_path", 400);
    (void)api_read_int(body, "offset_s", INT64_MIN, INT64_MAX, &t->offset_s);
    t->anchor = take_text(body, "anchor", 400);
    t->subject_path = take_text(body, "subject_path", 400);
    take_obsoleted(body, t);
    t->per_trigger = take_identity(body);
    (void)api_read_bool(body, "reschedule", &reschedule);
    t->keep_earlier = !reschedule;
    (void)api_read_bool(body, "enabled", &enabled);
    t->disabled = !enabled;
}

bool trigger_from_json(Str text, Str tenant, Str key, Arena *arena, Trigger *ret, Problem *problem)
{
    ApiBody body;
    stentor__v1__trigger__init(ret);
    ret->tenant = arena_cstr(arena, tenant);
    ret->key = arena_cstr(arena, key);
    bool ok = api_body_parse(&body, text, arena);
    if (ok) {
        take_fields(&body, ret);
        (void)api_body_end(&body);
        for (size_t i = 0; i < RULE_COUNT; i++) {
            FieldError wrong = {.field = ""};
            if (!RULES[i](ret, &wrong)) { // a field of another type has its fault already
                (void)api_body_fail(&body, wrong.field, "%s", wrong.text);
            }
        }
        ok = api_body_good(&body);
    }
    *problem = body.problem;
    api_body_free(&body);
    return ok;
}

static void set_text(json_t *object, const char *name, const char *value)
{
    if (value[0] != '\0') {
        (void)json_object_set_new(object, name, json_string(value));
    }
}

json_t *trigger_to_json(const Trigger *t)
{
    json_t *object = json_object();
    set_text(object, "key", t->key);
    set_text(object, "event_type", t->event_type);
    set_text(object, "template", t->template_);
    set_text(
        object, "channel", channel_name(t->channel == 0 ? CHANNEL_EMAIL : (Channel)t->channel));
    set_text(object, "category", category_name((Category)t->category));
    set_text(
        object, "priority",
        priority_name(t->priority == 0 ? PRIORITY_NORMAL : (Priority)t->priority));
    set_text(object, "resolver", t->resolver);
    set_text(object, "name_path", t->name_path);
    set_text(object, "locale_path", t->locale_path);
    (void)json_object_set_new(object, "offset_s", json_integer(t->offset_s));
    set_text(object, "anchor", t->anchor[0] == '\0' ? "event_produced_at" : t->anchor);
    set_text(object, "subject_path", t->subject_path);
    json_t *list = json_array();
    for (size_t i = 0; i < t->n_obsoleted_by; i++) {
        (void)json_array_append_new(list, json_string(t->obsoleted_by[i]));
    }
    (void)json_object_set_new(object, "obsoleted_by", list);
    set_text(object, "identity", t->per_trigger ? "trigger" : "event");
    (void)json_object_set_new(object, "reschedule", json_boolean(!t->keep_earlier));
    (void)json_object_set_new(object, "enabled", json_boolean(!t->disabled));
    char at[CLOCK_RFC3339_SIZE] = "";
    if (t->updated_at_us > 0) {
        clock_format(t->updated_at_us, at);
    }
    set_text(object, "updated_at", at);
    set_text(object, "updated_by", t->updated_by);
    return object;
}
