// SPDX-License-Identifier: Apache-2.0
// Correlation: a worker on INBOUND turns stored callbacks into STATUS events of their notifications
// and sends the same events to the dispatcher on SETTLE: each proves that the vendor had the mail,
// which settles a send whose outcome is unknown. A bounce, a complaint and an unsubscription also
// make a suppression of the signing tenant. Law: a status event's id is derived from the vendor's
// event id, so a callback that comes twice, or is read twice, has the effect of one.
#pragma once

#include "common/bus/consume/worker.h"
#include "common/codec/seal.h"
#include "common/model/suppressions.h"
#include "common/service/metrics.h"
#include "services/webhook-receiver/sendgrid_events.h"
#include "stentor/v1/config.pb-c.h"
#include "stentor/v1/status.pb-c.h"

typedef struct Correlator Correlator;

// Borrows all. `known`: existing suppressions and releases; they must have been read before the
// start, or an old event would suppress an address that was released since.
Correlator *correlator_new(
    Bus *bus, MasterKey *master, const Suppressions *known, Metrics *metrics);
void correlator_start(Correlator *correlator);
void correlator_stop(Correlator *correlator, void (*on_stopped)(void *ctx), void *ctx);
void correlator_free(Correlator *correlator, void (*on_freed)(void *ctx), void *ctx);

// Where an event came from: the callback that carried it.
typedef struct CallbackOrigin {
    Str tenant;
    Str vendor;   // of the attempt that it is about
    bool is_mail; // a bounce or a complaint that came by mail
    Str event_id; // of the InboundCallback
    size_t index; // of the event in it
    int64_t received_at_us;
} CallbackOrigin;

// The STATUS event of one vendor event that has a notification id. Pure; all of it lives in
// `arena`.
Stentor__V1__NotificationStatus *correlate_status(
    const SendgridEvent *event, const CallbackOrigin *origin, Arena *arena);

// The same event for the dispatcher: the status's payload on ntf.settle.<tenant>, under its own id.
void correlate_settle(
    const BusOut *status, const CallbackOrigin *origin, const SendgridEvent *event, Arena *arena,
    BusOut *ret);

// The suppression that follows from the event. false: none, or it is known, or the address was
// released since.
bool correlate_suppression(
    const SendgridEvent *event, const CallbackOrigin *origin, Str hash_key,
    const Suppressions *known, Arena *arena, Stentor__V1__Suppression **ret);
