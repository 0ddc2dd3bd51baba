// SPDX-License-Identifier: Apache-2.0
#include "common/trigger/trigger_apply.h"

#include <string.h>

#include "common/base/id.h"
#include "common/bus/events/cancel_event.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/model/retention/retention.h"
#include "common/names/member.h"
#include "common/request/consent.h"
#include "common/trigger/trigger_path.h"

#define SECOND_US INT64_C(1000000)

typedef Stentor__V1__Trigger Trigger;

typedef struct Planning {
    const Trigger *trigger;
    const DomainEvent *event;
    Arena *arena;
    TriggerPlan *plan;
    Error *err;
    const NamedResolvers *resolvers;
    size_t rule; // of the resolver, that is being read
    size_t room; // for targets
} Planning;

// ---- when ----

// A trigger that sends at once is late when its event was old already when it came into the stream
// (of a command of the saga: when that came which it follows from): then it was filled with
// old events. However long we were away ourselves, it still goes. One that waits for a date is late
// by the clock: last week's reminder is of no use. What an operator resends on purpose is never
// late.
static void check_time(Planning *p, int64_t now_us)
{
    const Trigger *t = p->trigger;
    bool at_once = trigger_anchor_is_event(t) && t->offset_s <= 0;
    int64_t seen_us = at_once ? p->event->seen_at_us : now_us;
    TriggerPlan *plan = p->plan;
    plan->late = p->event->only.len == 0 && plan->at_us < seen_us - TRIGGER_LATE_S * SECOND_US;
    plan->draft.scheduled_for_us = plan->at_us > now_us ? plan->at_us : 0;
}

static bool find_time(Planning *p, int64_t now_us)
{
    const Trigger *t = p->trigger;
    int64_t anchor_us = p->event->produced_at_us;
    if (!trigger_anchor_is_event(t) &&
        !path_time(p->event->data, str_from(t->anchor), p->event->zone, &anchor_us, p->err)) {
        return error_wrap(p->err, "anchor");
    }
    p->plan->at_us = anchor_us + t->offset_s * SECOND_US;
    check_time(p, now_us);
    return true;
}

// ---- to whom ----

static Target *add_target(Planning *p, TargetKind kind, const Resolver *resolver, Str value)
{
    TriggerPlan *plan = p->plan;
    if (plan->count == p->room) {
        p->room = p->room == 0 ? 8 : 2 * p->room;
        Target *grown = arena_array(p->arena, p->room, sizeof *grown);
        for (size_t i = 0; i < plan->count; i++) {
            grown[i] = plan->targets[i];
        }
        plan->targets = grown;
    }
    Target *target = &plan->targets[plan->count++];
    *target = (Target){
        .kind = kind,
        .identity = resolver->identity,
        .value = value,
        .path = resolver->path,
        .rule = p->rule,
    };
    return target;
}

static bool add_recipients(Planning *p, const Resolver *resolver, Error *err)
{
    const json_t *list = path_find(p->event->data, resolver->path);
    size_t size = json_array_size(list);
    if (!json_is_array(list) || size > TRIGGER_RECIPIENTS_MAX) {
        return error_set(
            err, ERROR_PERMANENT,
            "what is at path '" STR_FMT "' is not an array of at most %d recipients' ids",
            STR_ARG(resolver->path), TRIGGER_RECIPIENTS_MAX);
    }
    TriggerPlan *plan = p->plan;
    for (size_t i = 0; i < size; i++) {
        const json_t *item = json_array_get(list, i);
        Str id = str_of(json_string_value(item), json_string_length(item));
        if (json_is_string(item) && id_parse(id, "rcp_", NULL)) {
            (void)add_target(p, TARGET_RECIPIENT, resolver, arena_str(p->arena, id));
        } else if (plan->bad_target == NULL) {
            plan->bad_target = arena_printf(
                p->arena,
                "trigger '%s': entry %zu of path '" STR_FMT
                "' is not a recipient's id ('rcp_' and a ULID)",
                p->trigger->key, i, STR_ARG(resolver->path));
        }
    }
    return true;
}

static bool add_one(Planning *p, const Resolver *resolver, Error *err)
{
    TargetKind kind = resolver->kind == RESOLVER_ADDRESS     ? TARGET_ADDRESS
                      : resolver->kind == RESOLVER_RECIPIENT ? TARGET_RECIPIENT
                                                             : TARGET_IDENTITY;
    Str value = STR_EMPTY;
    if (!path_text(p->event->data, resolver->path, p->arena, &value, err)) {
        return false;
    }
    if (kind == TARGET_RECIPIENT && !id_parse(value, "rcp_", NULL)) {
        return error_set(
            err, ERROR_PERMANENT,
            "what is at path '" STR_FMT "' is not a recipient's id ('rcp_' and a ULID)",
            STR_ARG(resolver->path));
    }
    (void)add_target(p, kind, resolver, value);
    return true;
}

static bool add_rule(Planning *p, Str text, Error *err)
{
    Resolver resolver;
    FieldError wrong = {.field = ""};
    if (!resolver_parse(arena_str(p->arena, text), &resolver, &wrong)) {
        return error_set(err, ERROR_PERMANENT, "field '%s': %s", wrong.field, wrong.text);
    }
    if (resolver.kind == RESOLVER_LABEL) {
        p->plan->chooses = true;
        (void)add_target(p, TARGET_LABEL, &resolver, resolver.path);
        return true;
    }
    return resolver.kind == RESOLVER_RECIPIENTS ? add_recipients(p, &resolver, err)
                                                : add_one(p, &resolver, err);
}

// "primary_guest_id, guest.id": where the event has nothing that names a recipient.
static const char *paths_of(Planning *p, const NamedRules *named)
{
    const char *text = "";
    for (size_t i = 0; i < named->count; i++) {
        Resolver resolver;
        if (resolver_parse(str_from(named->rules[i]), &resolver, NULL)) {
            text = arena_printf(
                p->arena, "%s%s" STR_FMT, text, i > 0 ? ", " : "", STR_ARG(resolver.path));
        }
    }
    return text;
}

// What the event does not have, and what is no id there, is passed over: the next rule may find it.
static bool add_named(Planning *p, Str name)
{
    NamedRules named;
    if (!named_resolvers_find(p->resolvers, p->event->tenant, name, &named)) {
        p->plan->unknown = true;
        return error_set(
            p->err, ERROR_PERMANENT, "there is no resolver '" STR_FMT "'", STR_ARG(name));
    }
    p->plan->chooses = true;
    for (p->rule = 0; p->rule < named.count; p->rule++) {
        Error passed = {0};
        (void)add_rule(p, str_from(named.rules[p->rule]), &passed);
    }
    if (p->plan->count > 0) {
        return true;
    }
    return error_set(
        p->err, ERROR_PERMANENT,
        "resolver '" STR_FMT "' found no recipient: event '" STR_FMT "' has none of %s",
        STR_ARG(name), STR_ARG(p->event->identity), paths_of(p, &named));
}

static bool add_targets(Planning *p)
{
    Str text = arena_str(p->arena, str_from(p->trigger->resolver));
    p->plan->resolver = text;
    return resolver_is_name(text) ? add_named(p, text) : add_rule(p, text, p->err);
}

// ---- who it is ----

static bool is_found(const Target *target)
{
    return target->kind == TARGET_ADDRESS || target->recipient_id.len > 0 ||
           target->member_count > 0;
}

// The members of a label as targets; every other one as it is.
static size_t put_in_place(const Target *target, Target *ret)
{
    if (target->kind != TARGET_LABEL) {
        *ret = *target;
        return 1;
    }
    for (size_t i = 0; i < target->member_count; i++) {
        ret[i] = *target;
        ret[i].kind = TARGET_RECIPIENT;
        ret[i].value = target->members[i];
        ret[i].recipient_id = target->members[i];
    }
    return target->member_count;
}

static TriggerChoice keep_rule(TriggerPlan *plan, size_t rule, Arena *arena)
{
    size_t most = 0;
    for (size_t i = 0; i < plan->count; i++) {
        most += 1 + plan->targets[i].member_count;
    }
    Target *kept = arena_array(arena, most, sizeof *kept);
    size_t count = 0;
    for (size_t i = 0; i < plan->count; i++) {
        if (plan->targets[i].rule == rule) {
            count += put_in_place(&plan->targets[i], &kept[count]);
        }
    }
    plan->targets = kept;
    plan->count = count;
    return TRIGGER_CHOSEN;
}

TriggerChoice trigger_choose(TriggerPlan *plan, const DomainEvent *event, Arena *arena, Error *err)
{
    const Target *first = NULL;
    if (!plan->chooses || plan->late) {
        return TRIGGER_CHOSEN;
    }
    for (size_t i = 0; first == NULL && i < plan->count; i++) {
        first = is_found(&plan->targets[i]) ? &plan->targets[i] : NULL;
    }
    if (first == NULL) {
        const Target *named = &plan->targets[0];
        (void)error_set(
            err, ERROR_PERMANENT,
            "trigger '" STR_FMT "': resolver '" STR_FMT "' found no recipient for event '" STR_FMT
            "': tenant '" STR_FMT "' has none with %s '" STR_FMT "'",
            STR_ARG(plan->draft.trigger_key), STR_ARG(plan->resolver), STR_ARG(event->identity),
            STR_ARG(event->tenant),
            named->kind == TARGET_LABEL      ? "label"
            : named->kind == TARGET_IDENTITY ? identity_name(named->identity)
                                             : "id",
            STR_ARG(str_slice(named->value, 0, 64)));
        return TRIGGER_NOT_FOUND;
    }
    if (first->member_count > RESOLVER_LABEL_MAX) {
        (void)error_set(
            err, ERROR_PERMANENT,
            "trigger '" STR_FMT "': resolver '" STR_FMT
            "' found more than %d recipients for event '" STR_FMT "', by label '" STR_FMT
            "'; a batch with a recipient_query reaches them",
            STR_ARG(plan->draft.trigger_key), STR_ARG(plan->resolver), RESOLVER_LABEL_MAX,
            STR_ARG(event->identity), STR_ARG(first->value));
        return TRIGGER_TOO_MANY;
    }
    return keep_rule(plan, first->rule, arena);
}

// ---- the rest ----

// A name or a locale is optional: an event without it, or with something else there, still goes.
static Str optional_text(Planning *p, const char *path)
{
    Str text = STR_EMPTY;
    if (path[0] != '\0') {
        (void)path_text(p->event->data, str_from(path), p->arena, &text, NULL);
    }
    return text;
}

// The event's own time, which two events about one subject are ordered by. A clock that is ahead
// must not supersede what comes in the next hours: then the stream's counts.
static int64_t order_of(const DomainEvent *event)
{
    return event->produced_at_us < event->id_at_us ? event->produced_at_us : event->id_at_us;
}

// Of an event that says where and when its address consented: {"consent": {"source", "given_at"}}.
// What reads otherwise is the event's own business and no word on consent.
static void read_consent(Planning *p, int64_t now_us)
{
    Request *draft = &p->plan->draft;
    Str source = optional_text(p, "consent.source");
    int64_t at_us = 0;
    FieldError wrong = {.field = ""};
    if (source.len > 0 &&
        path_time(p->event->data, STR("consent.given_at"), p->event->zone, &at_us, NULL) &&
        consent_check(source, at_us, now_us, &wrong)) {
        draft->consent_source = source;
        draft->consent_at_us = at_us;
    }
}

// What the event's data names so, in either spelling: an order's events and the mails that they
// cause share it. A value that a request cannot have is no reason to refuse the notification.
static Str correlation_of(Planning *p)
{
    const json_t *value = member_value(p->event->data, "correlation_id");
    Str text = str_of(json_string_value(value), json_string_length(value));
    bool fits = text.len > 0 && text.len <= REQUEST_ID_MAX && !str_has_control(text) &&
                str_find(text, '@') < 0; // an address is not written in clear
    return fits ? arena_str(p->arena, text) : STR_EMPTY;
}

static void draft_request(Planning *p)
{
    const Trigger *t = p->trigger;
    p->plan->draft = (Request){
        .to_name = optional_text(p, t->name_path),
        .channel = (Channel)t->channel,
        .category = (Category)t->category,
        .priority = (Priority)t->priority,
        .template_key = arena_str(p->arena, str_from(t->template_)),
        .locale = optional_text(p, t->locale_path),
        .variables = p->event->variables,
        .correlation_id = correlation_of(p),
        .source_event_id = event_id_in_clear(p->event->identity, p->arena),
        .source_event_type = p->event->type,
        .trigger_key = arena_str(p->arena, str_from(t->key)),
        .source_event_at_us = order_of(p->event),
    };
    p->plan->per_trigger = t->per_trigger;
}

// "<trigger key>/<subject>": under which what it made can be cancelled. ERROR_PERMANENT names the
// path.
static bool trigger_cancel_key(
    const Trigger *trigger, const DomainEvent *event, Arena *arena, Str *ret, Error *err)
{
    Str subject = STR_EMPTY;
    if (!path_text(event->data, str_from(trigger->subject_path), arena, &subject, err)) {
        return error_wrap(err, "subject_path");
    }
    size_t room = TRIGGER_CANCEL_KEY_MAX - strlen(trigger->key) - 1;
    if (subject.len > room) {
        return error_set(
            err, ERROR_PERMANENT, "subject_path: %zu bytes at path '%.128s'; at most %zu",
            subject.len, trigger->subject_path, room);
    }
    *ret = str_from(arena_printf(arena, "%s/" STR_FMT, trigger->key, STR_ARG(subject)));
    return true;
}

static bool fill_key(Planning *p, Error *err)
{
    const Trigger *t = p->trigger;
    Request *draft = &p->plan->draft;
    bool supersedes = trigger_reschedules(t);
    if (!supersedes && t->n_obsoleted_by == 0) {
        return true;
    }
    if (!trigger_cancel_key(t, p->event, p->arena, &draft->cancel_key, err)) {
        return false;
    }
    draft->supersedes = supersedes;
    return true;
}

// A date that was moved into the past makes nothing, and what waits of the date before is wrong as
// well; without a subject there is nothing to find it by.
static bool fill_plan(Planning *p, int64_t now_us)
{
    draft_request(p);
    read_consent(p, now_us);
    if (!find_time(p, now_us)) {
        return false;
    }
    if (p->plan->late) {
        Error ignored = {0};
        (void)fill_key(p, &ignored);
        return true;
    }
    return add_targets(p) && fill_key(p, p->err);
}

bool trigger_plan(
    const Trigger *trigger, const NamedResolvers *resolvers, const DomainEvent *event,
    int64_t now_us, Arena *arena, TriggerPlan *ret, Error *err)
{
    *ret = (TriggerPlan){0};
    Planning p = {trigger, event, arena, ret, err, .resolvers = resolvers};
    return fill_plan(&p, now_us) || error_wrap(err, "trigger '%s'", trigger->key);
}

bool trigger_request(
    const TriggerPlan *plan, const Target *target, int64_t now_us, Arena *arena, Request *ret,
    Error *err)
{
    FieldError wrong = {.field = ""};
    Request request = plan->draft;
    if (target->kind == TARGET_ADDRESS) {
        request.to = target->value;
    } else {
        request.recipient_id = target->recipient_id;
    }
    if (!request_check(&request, now_us, arena, &wrong)) {
        return error_set(
            err, ERROR_PERMANENT, "trigger '" STR_FMT "', recipient at path '" STR_FMT "': %s: %s",
            STR_ARG(plan->draft.trigger_key), STR_ARG(target->path), wrong.field, wrong.text);
    }
    *ret = request;
    return true;
}

// ---- identity ----

// An address is one recipient however it is spelled: in lower case, as its hash has it.
static Str recipient_of(const Request *request, Arena *arena)
{
    if (request->recipient_id.len > 0) {
        return request->recipient_id;
    }
    char *text = arena_cstr(arena, request->to);
    for (char *c = text; *c != '\0'; c++) {
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    }
    return str_from(text);
}

void trigger_identify(
    const TriggerPlan *plan, const DomainEvent *event, Request *request, Arena *arena, Str *ret_key)
{
    // The identity comes last: it is the only part that may hold a '|'. A key has no ':', and a
    // tenant neither, so no tenant's cause is read as another's.
    char *cause = arena_printf(
        arena, "trigger%s" STR_FMT "|" STR_FMT "|" STR_FMT "|" STR_FMT "|%s|" STR_FMT "|" STR_FMT,
        plan->per_trigger ? ":" : "", STR_ARG(plan->per_trigger ? request->trigger_key : STR_EMPTY),
        STR_ARG(event->tenant), STR_ARG(event->type), STR_ARG(request->template_key),
        channel_name(request->channel), STR_ARG(recipient_of(request, arena)),
        STR_ARG(event->identity));
    uint8_t hash[SHA256_LEN];
    sha256(str_from(cause), hash);
    char *id = arena_alloc(arena, ID_SIZE);
    id_derived("ntf_", event->id_at_us, hash, id);
    retention_id_set_code(id, retention_class_code(request->retention));
    request->given_id = id;
    char *key = arena_alloc(arena, EVENT_ID_SIZE);
    base64url_encode(hash, 16, key);
    *ret_key = str_from(key);
}

// ---- obsolescence ----

static CancelEvent cancel_of(const DomainEvent *event, Str traceparent)
{
    return (CancelEvent){
        .tenant = event->tenant,
        .causation_id = event->identity,
        .at_us = event->id_at_us,
        .traceparent = traceparent,
    };
}

bool trigger_supersede(
    const TriggerPlan *plan, const DomainEvent *event, Str traceparent, Arena *arena, BusOut *ret,
    Error *err)
{
    const Request *draft = &plan->draft;
    char *event_id = arena_alloc(arena, EVENT_ID_SIZE);
    char *place = arena_printf(
        arena, STR_FMT "|" STR_FMT, STR_ARG(event->tenant), STR_ARG(draft->cancel_key));
    event_id_derive("supersede", event->identity, str_from(place), event_id);
    CancelEvent cancel = cancel_of(event, traceparent);
    cancel.cancel_key = draft->cancel_key;
    cancel.event_id = str_from(event_id);
    cancel.before_us = draft->source_event_at_us;
    cancel.newer_event_id = event->identity;
    cancel.reason =
        arena_printf(arena, STR_FMT " " STR_FMT, STR_ARG(event->type), STR_ARG(event->identity));
    return cancel_event(&cancel, arena, ret, err);
}

bool trigger_cancel(
    const Trigger *trigger, const DomainEvent *event, Str traceparent, Arena *arena, BusOut *ret,
    Error *err)
{
    Str cancel_key = STR_EMPTY;
    if (!trigger_cancel_key(trigger, event, arena, &cancel_key, err)) {
        return error_wrap(err, "trigger '%s', obsoleted_by", trigger->key);
    }
    char *event_id = arena_alloc(arena, EVENT_ID_SIZE);
    char *place = arena_printf(
        arena, STR_FMT "|" STR_FMT "|" STR_FMT, STR_ARG(event->tenant), STR_ARG(event->type),
        STR_ARG(cancel_key));
    event_id_derive("cancel", event->identity, str_from(place), event_id);
    CancelEvent cancel = cancel_of(event, traceparent);
    cancel.cancel_key = cancel_key;
    cancel.event_id = str_from(event_id);
    // The scheduler compares it with the time in a notification's id, in milliseconds. An event
    // that cancels what earlier ones made and makes it again must not cancel its own: hence the
    // cut.
    cancel.before_us = event->id_at_us / 1000 * 1000;
    cancel.reason =
        arena_printf(arena, STR_FMT " " STR_FMT, STR_ARG(event->type), STR_ARG(event->identity));
    return cancel_event(&cancel, arena, ret, err);
}
