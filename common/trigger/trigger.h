// SPDX-License-Identifier: Apache-2.0
// Trigger: what a domain event leads to, as the map holds it and the API takes it. The entry itself
// is stentor.v1.Trigger (config.proto); here are its rules. Pure.
#pragma once

#include <jansson.h>

#include "common/request/request.h"
#include "common/trigger/resolver.h"
#include "stentor/v1/config.pb-c.h"

enum {
    TRIGGER_TYPE_MAX = 100,                 // bytes of an event type
    TRIGGER_OBSOLETED_MAX = 16,             // event types in obsoleted_by
    TRIGGER_RECIPIENTS_MAX = 1000,          // that one event may reach through "recipients:<path>"
    TRIGGER_OFFSET_MAX_S = 366 * 24 * 3600, // either way
};

#define TRIGGER_PLATFORM STR("platform")

// "stay.confirmed", "PlaceOrder": tokens of A-Z a-z 0-9 '_' '-', joined by dots; not "notify".
bool trigger_is_event_type(Str text);
// "event_produced_at" or empty: the event's own time; else a path.
bool trigger_anchor_is_event(const Stentor__V1__Trigger *trigger);
// A newer event about the same subject supersedes what waits of an earlier one: of a trigger that
// has a subject and waits for a time, unless it says otherwise.
bool trigger_reschedules(const Stentor__V1__Trigger *trigger);
// Of one event both would make the same notification, so one of the two would never go out: the
// same event type, template, channel and resolver, and neither counts by its key. Two whose
// resolvers differ may still meet at one recipient, who then gets one.
bool trigger_collides(const Stentor__V1__Trigger *a, const Stentor__V1__Trigger *b);

// All rules that need no other entry: a resolver's name need not be known. Field names are those of
// the API.
bool trigger_check(const Stentor__V1__Trigger *trigger, FieldError *err);

// The API's object: taken from JSON (every unknown field, wrong type or bad value is a problem) ...
bool trigger_from_json(
    Str body, Str tenant, Str key, Arena *arena, Stentor__V1__Trigger *ret, Problem *problem);
// ... and as JSON, a new reference.
json_t *trigger_to_json(const Stentor__V1__Trigger *trigger);
