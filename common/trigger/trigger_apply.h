// SPDX-License-Identifier: Apache-2.0
// What a trigger makes of an event: whom it concerns, when, under which ids, and what it cancels.
// Pure: time is an argument, recipients are looked up by the caller (recipient_lookup.h).
//
// Law: one (tenant, source event, template, recipient, channel) is one notification, and with the
// trigger's key when that says so (identity "trigger"). Its id and its idempotency key are derived
// from these, so neither a repeated event nor a second trigger that says the same makes a second
// one.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/domain/domain_event.h"
#include "common/trigger/named_resolvers.h"
#include "common/trigger/trigger.h"

enum {
    TRIGGER_LATE_S = 24 * 3600,   // what should have gone out longer ago than this does not go
    TRIGGER_CANCEL_KEY_MAX = 256, // as the clock takes it (services/digest-flusher/work.c)
};

typedef enum TargetKind {
    TARGET_ADDRESS,
    TARGET_RECIPIENT,
    TARGET_IDENTITY,
    TARGET_LABEL, // every recipient with it; trigger_choose puts these in its place
} TargetKind;

typedef struct Target {
    TargetKind kind;
    Identity identity; // of TARGET_IDENTITY
    Str value;         // the address, the rcp_ id, the tenant's own id of the recipient, the label
    Str path;          // where in the event it stood, for messages
    size_t rule;       // of the resolver: which of its rules led here
    Str recipient_id;  // filled by the look-up; empty: no such recipient (or an address)
    Str *members;      // of TARGET_LABEL: the same; at most one more than RESOLVER_LABEL_MAX
    size_t member_count;
} Target;

// One trigger's answer to one event. All in the arena that was given.
typedef struct TriggerPlan {
    Request draft;   // everything but whom it goes to
    Str resolver;    // as the trigger has it, for messages
    bool chooses;    // the first rule that finds a recipient counts (trigger_choose)
    bool unknown;    // of a plan that failed: no resolver has this name; it may come
    Target *targets; // none when late
    size_t count;
    bool per_trigger;       // the trigger's key counts for the identity
    bool late;              // it should have gone out too long ago: nothing is sent
    int64_t at_us;          // when it should go out; may have passed
    const char *bad_target; // entries of the array that are no rcp_ id: the first one; NULL: none
} TriggerPlan;

// ERROR_PERMANENT "trigger 'remind': ..." names the path. `resolvers` may be NULL: only those that
// are built in. After failure too *ret says whether it is `unknown`.
bool trigger_plan(
    const Stentor__V1__Trigger *trigger, const NamedResolvers *resolvers, const DomainEvent *event,
    int64_t now_us, Arena *arena, TriggerPlan *ret, Error *err);

typedef enum TriggerChoice {
    TRIGGER_CHOSEN,
    TRIGGER_NOT_FOUND, // none of its rules found a recipient; one may come
    TRIGGER_TOO_MANY,
} TriggerChoice;
// Once the targets are looked up: of a plan that chooses, those of the first rule that found
// a recipient stay. Else `err` names resolver and event.
TriggerChoice trigger_choose(TriggerPlan *plan, const DomainEvent *event, Arena *arena, Error *err);

// The request for one target, checked (request_check). ERROR_PERMANENT names the trigger and what
// is wrong.
bool trigger_request(
    const TriggerPlan *plan, const Target *target, int64_t now_us, Arena *arena, Request *ret,
    Error *err);
// Once it is frozen: fills request->given_id and the submission's idempotency key (scope
// "trigger").
void trigger_identify(
    const TriggerPlan *plan, const DomainEvent *event, Request *request, Arena *arena,
    Str *ret_key);

// The event on DEFERRED by which what waits of earlier events is superseded, of a plan that
// supersedes and is late or has no targets: no request could bring it
// (services/ingest/accept/events.h).
bool trigger_supersede(
    const TriggerPlan *plan, const DomainEvent *event, Str traceparent, Arena *arena, BusOut *ret,
    Error *err);
// The event on DEFERRED that cancels what the trigger made of earlier events about the same
// subject.
bool trigger_cancel(
    const Stentor__V1__Trigger *trigger, const DomainEvent *event, Str traceparent, Arena *arena,
    BusOut *ret, Error *err);
