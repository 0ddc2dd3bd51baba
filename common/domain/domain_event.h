// SPDX-License-Identifier: Apache-2.0
// DomainEvent: a message of EVENTS read as a domain event, whatever it was written in: a plain
// JSON object, a CloudEvent (structured, or binary mode with ce-* headers), MassTransit's envelope,
// or a protobuf message. Pure. (stentor.v1.DomainEvent of deferred.proto is such an event on its way to the clock.)
//
// Its identity is the Nats-Msg-Id (without "<tenant>/<type>/" before it, when these are its own),
// else the CloudEvent's source and id ("/shop c-1"; by its id alone one without a source, and an
// envelope by its messageId), else stream and sequence. It was produced at the CloudEvent's time or
// the envelope's sentTime, else at the data's `produced_at` or `occurred_at` (RFC 3339), else when
// the stream stored it. Its type is the subject's, not the CloudEvent's or the envelope's, by its
// plain name (common/names/event_type.h); members of the data are sought in any of their spellings
// (common/names/member.h).
#pragma once

#include <jansson.h>

#include "common/bus/jetstream/bus.h"
#include "common/model/zone.h"

enum {
    DOMAIN_IDENTITY_MAX = 128,
    DOMAIN_DATA_MAX = 64 * 1024, // bytes of packed JSON
};

// RFC 3339: when the stream stored the event that this one follows from. However long a service of
// ours was away between the two, what it then says is as fresh as that one was.
#define DOMAIN_SEEN_HEADER "ce-stentorseen"

// Next to a Nats-Msg-Id that ingest gave to an application's event without one: a CloudEvent's own
// id counts.
#define DOMAIN_MADE_ID_HEADER "Stentor-Made-Id"

// What is known of the message besides its payload. Empty: not given.
typedef struct DomainInput {
    Str tenant; // of the subject
    Str type;   // as it is written there
    Str payload;
    Str message_id;  // Nats-Msg-Id
    bool id_is_made; // DOMAIN_MADE_ID_HEADER
    const char *stream;
    uint64_t sequence;
    int64_t stored_at_us;
    bool replayed;
    Str content_type;
    Str message_type; // Stentor-Type: "stentor.v1.PlaceOrder"
    Str ce_version;   // ce-specversion: binary mode
    Str ce_id, ce_source, ce_type, ce_time;
    Str ce_seen; // DOMAIN_SEEN_HEADER
    Zone *zone;  // the tenant's, for times without one; NULL: UTC
} DomainInput;

typedef struct DomainEvent {
    Str tenant, type; // the plain type
    Str identity;     // printable, at most DOMAIN_IDENTITY_MAX bytes
    int64_t produced_at_us;
    int64_t stored_at_us;
    int64_t seen_at_us; // when the stream stored it, or what it follows from; never later
    int64_t id_at_us;   // the time in the ids that are derived from it
    Str only;           // not empty: a dead letter that was sent again, for this reader alone
    Zone *zone;         // the input's
    json_t *data;       // an object, owned
    Str variables;      // the same, packed
} DomainEvent;

// Whose event it is and of which type: "evt.<tenant>.<type>". false: not such a subject.
bool domain_subject(Str subject, Str *ret_tenant, Str *ret_type);
// What a message of that subject says besides its payload; valid as long as the message.
DomainInput domain_input(const BusMessage *message, Str tenant, Str type, Zone *zone);

// Slices live in `arena` or in the input. ERROR_PERMANENT says what is wrong and where. Free it
// after success.
bool domain_event_read(const DomainInput *input, Arena *arena, DomainEvent *ret, Error *err);
void domain_event_free(DomainEvent *event); // the JSON

// The event again, as a structured CloudEvent for one reader (a trigger, by its key; or a name that
// no trigger can have): what a dead letter keeps, so that sending it again needs no headers, makes
// the same ids however late it is, and does nothing for the others.
Str domain_event_letter(const DomainEvent *event, Str only, Arena *arena);
// The id of a message as a key: itself when it is short and printable, else its hash in hex.
Str domain_identity(Str id, Arena *arena);
// Of a Nats-Msg-Id on evt.<tenant>.<type> what its publisher chose: an id, and the same behind
// "<tenant>/<type>/", are one.
Str domain_own_id(Str tenant, Str type, Str id);
// With that before it: what no other tenant's and no other type's event has. As a key, like
// domain_identity.
Str domain_full_id(Str tenant, Str type, Str id, Arena *arena);
