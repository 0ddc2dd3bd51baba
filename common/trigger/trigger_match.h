// SPDX-License-Identifier: Apache-2.0
// TriggerMatch: every tenant's triggers in memory (cfg.trigger.<tenant>.<key>), found by event
// type. Law: a tenant's own trigger takes the place of the platform's of the same key, also when it
// is disabled (then nothing happens) or waits for another event type.
#pragma once

#include "common/base/error.h"
#include "common/trigger/trigger.h"

typedef struct TriggerMatch TriggerMatch;

TriggerMatch *trigger_match_new(void);
void trigger_match_free(TriggerMatch *map);

// An entry of CONFIG and its sequence there; an empty payload removes it. ERROR_PERMANENT when it
// is not a trigger that keeps the rules, or names another tenant or key than its subject: the
// entry before it stays.
bool trigger_match_changed(
    TriggerMatch *map, Str tenant, Str key, Str payload, uint64_t sequence, Error *err);

// Its entry cannot be read: what is known of it stays, and when nothing is known it counts as one
// that is disabled, so that the platform's does not take its place.
void trigger_match_unreadable(TriggerMatch *map, Str tenant, Str key);

typedef enum TriggerUse {
    TRIGGER_MAKES,   // its event_type is this one
    TRIGGER_CANCELS, // its obsoleted_by names this one
} TriggerUse;

// The enabled triggers in force for the tenant, in the order of their keys; *ret_count of them in
// `arena`. Valid until the map changes.
const Stentor__V1__Trigger **trigger_match_find(
    const TriggerMatch *map, Str tenant, Str event_type, TriggerUse use, Arena *arena,
    size_t *ret_count);
// By key: the tenant's own, else the platform's, also disabled ones; NULL: neither.
const Stentor__V1__Trigger *trigger_match_get(const TriggerMatch *map, Str tenant, Str key);
// The tenant's own entry; NULL: none.
const Stentor__V1__Trigger *trigger_match_own(const TriggerMatch *map, Str tenant, Str key);
// Of the tenant's own entry; 0: none.
uint64_t trigger_match_sequence(const TriggerMatch *map, Str tenant, Str key);
// Everything that `tenant` has itself, in the order of their keys.
const Stentor__V1__Trigger **trigger_match_list(
    const TriggerMatch *map, Str tenant, Arena *arena, size_t *ret_count);
// One in force for `trigger`'s tenant that collides with it (trigger.h); NULL: none.
const Stentor__V1__Trigger *trigger_match_collision(
    const TriggerMatch *map, const Stentor__V1__Trigger *trigger, Arena *arena);
size_t trigger_match_count(const TriggerMatch *map);
