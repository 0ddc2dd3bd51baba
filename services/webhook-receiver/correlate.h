// SPDX-License-Identifier: Apache-2.0
// Correlation: a worker on INBOUND turns stored callbacks into STATUS events of their notifications
// and sends the same events to the dispatcher on SETTLE: each proves that the vendor had the mail,
// which settles a send whose outcome is unknown. A bounce, a complaint and an unsubscription also
// make a suppression of the signing tenant. Law: a status event's id is derived from the vendor's
// event, so a callback that comes twice, or is read twice, has the effect of one. STATUS recognises
// a repeat for two minutes; what is older than CORRELATE_LATE_S, or names no notification, is
// published by the dispatcher instead, which remembers events for a week and finds mails by the
// vendor's id.
#pragma once

#include "common/bus/consume/worker.h"
#include "common/codec/seal.h"
#include "common/model/suppressions.h"
#include "common/service/metrics.h"
#include "common/trace/tracer.h"
#include "common/vendor/vendor_callback.h"
#include "services/webhook-receiver/definitions.h"
#include "services/webhook-receiver/inbound_keys.h"
#include "stentor/v1/config.pb-c.h"
#include "stentor/v1/status.pb-c.h"

// Half of the least window of duplicates: the clocks of vendors differ from ours.
enum { CORRELATE_LATE_S = 60 };

typedef struct Correlator Correlator;

// Borrows all. `known`: existing suppressions and releases; they must have been read before the
// start, or an old event would suppress an address that was released since.
Correlator *correlator_new(
    Bus *bus, MasterKey *master, const Suppressions *known, const InboundKeys *inbound,
    Definitions *definitions, Metrics *metrics, Tracer *tracer);
void correlator_start(Correlator *correlator);
void correlator_stop(Correlator *correlator, void (*on_stopped)(void *ctx), void *ctx);
void correlator_free(Correlator *correlator, void (*on_freed)(void *ctx), void *ctx);

// Where an event came from: the callback that carried it.
typedef struct CallbackOrigin {
    Str tenant;
    Str vendor; // of the attempt that it is about
    Channel channel;
    bool is_mail;        // a bounce or a complaint that came by mail
    Str event_id;        // of the InboundCallback
    size_t index;        // of the event in it
    Str notification_id; // that its URL was given for; empty: it is of all of a vendor's account
    int32_t attempt;     // of it
    int64_t received_at_us;
} CallbackOrigin;

// What the URL says of an event that names nothing itself.
void correlate_name(CallbackEvent *event, const CallbackOrigin *origin);

// Is it the dispatcher that publishes it? STATUS may have forgotten an earlier copy of it by now
// (of an event without a time of its own it is not known: it may be a copy that was captured days
// ago), it names no notification, or it is a call that was not answered, after which another may
// follow.
bool correlate_is_late(const CallbackEvent *event, const CallbackOrigin *origin, int64_t now_us);

// The STATUS event of one vendor event. Pure; all of it lives in `arena`.
Stentor__V1__NotificationStatus *correlate_status(
    const CallbackEvent *event, const CallbackOrigin *origin, Arena *arena);

// The same event for the dispatcher, on ntf.settle.<tenant> under its own id and with the attempt
// that the vendor names. late: it is not published yet.
bool correlate_settle(
    const CallbackEvent *event, const CallbackOrigin *origin, bool late, Arena *arena, BusOut *ret,
    Error *err);

// The suppression that follows from the event. false: none, or it is known, or the address was
// released since.
bool correlate_suppression(
    const CallbackEvent *event, const CallbackOrigin *origin, Str hash_key,
    const Suppressions *known, Arena *arena, Stentor__V1__Suppression **ret);
