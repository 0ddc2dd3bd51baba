// SPDX-License-Identifier: Apache-2.0
// A status as an event of a live stream: who may see it and who asked for it, by its subject alone,
// so that a status that none wants is never read; then its JSON, that of a webhook. Pure.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/model/enums.h"

enum { LIVE_TEXT_MAX = 128 };

// What a client asked for. A mask of 0 and an empty text fit all.
typedef struct LiveFilter {
    uint32_t channels, statuses;   // bits
    char template_[LIVE_TEXT_MAX]; // its key
    char notification_id[LIVE_TEXT_MAX];
} LiveFilter;

// Names of channels or statuses, separated by commas, as bits. false: *ret_wrong is none of them.
bool live_channels(Str names, uint32_t *ret, Str *ret_wrong);
bool live_statuses(Str names, uint32_t *ret, Str *ret_wrong);

// <two tokens>.<tenant>.<channel>.<status>: of STATUS, and as it is republished.
typedef struct LivePlace {
    Str tenant;
    Channel channel;
    Status status;
} LivePlace;

bool live_place(Str subject, LivePlace *ret); // false: no such subject
bool live_fits_place(const LiveFilter *filter, const LivePlace *place);
// What STATUS is read by for the filter: one channel or status by its token.
void live_subject(Str tenant, const LiveFilter *filter, char *out, size_t size);

typedef struct LiveEvent {
    uint64_t sequence; // of STATUS
    LivePlace place;
    Str template_, notification_id;
    Str text; // as the client gets it
} LiveEvent;

// The subject decides whose it is. Slices live in the arena or in the message. ERROR_PERMANENT:
// it cannot be read, or is about another tenant than its subject's.
bool live_event_read(
    const BusMessage *message, uint64_t sequence, Arena *arena, LiveEvent *ret, Error *err);
bool live_fits(const LiveFilter *filter, const LiveEvent *event);
