// SPDX-License-Identifier: Apache-2.0
// Tracked links: GET /v1/click/<token> redirects to the URL that is sealed in the token, and
// GET /v1/open/<token>.gif is a pixel. Each becomes a status (clicked, opened) of its notification,
// at most one for each link and minute, and the same on SETTLE, because it proves that the mail
// arrived. Law: a recipient is never held up: the event is stored first, but after LINK_WAIT_MS, or
// while NATS is away, the answer goes out all the same and the event is counted as late or lost.
// Only a token that we sealed leads anywhere.
#pragma once

#include <uv.h>

#include "common/bus/jetstream/bus.h"
#include "common/codec/mail_link.h"
#include "common/config/link_revocations.h"
#include "common/http/server.h"
#include "common/service/metrics.h"
#include "services/webhook-receiver/link_machine.h"

enum {
    LINK_VISITS_MAX = 4096, // whose events are on their way; beyond it answered and counted as lost
    LINK_WAIT_MS = 1000,
};

typedef struct LinkVisiting LinkVisiting; // one whose event is on its way

typedef struct LinkEndpoint {
    Bus *bus;
    MailLinkKey key;
    const LinkRevocations *revoked;
    int64_t soon_us; // link_visit_is_machine
    bool (*ready)(void *ctx);
    void *ready_ctx;
    Metric *clicked, *opened, *machine, *refused, *late, *lost;
    LinkBursts bursts;
    uv_timer_t timer;                     // of the first that waits
    LinkVisiting *waiting, *last_waiting; // not answered yet, the oldest first
    size_t on_the_way;
} LinkEndpoint;

// Fill the fields above before it: it registers the metrics and begins the timer.
void link_endpoint_init(
    LinkEndpoint *endpoint, const MasterKey *master, Metrics *metrics, uv_loop_t *loop);
// When no request is with it any more.
void link_endpoint_close(LinkEndpoint *endpoint, uv_close_cb on_closed);

bool link_is_path(Str path);
// After the headers: checks method and token. false: answered.
bool link_admit(LinkEndpoint *endpoint, HttpRequest *request);
void link_handle(LinkEndpoint *endpoint, HttpRequest *request);

// The event of a visit, and the same for the dispatcher; everything lives in `arena`.
bool link_events(
    const MailLink *link, bool machine, int64_t at_us, Arena *arena, BusOut *ret_status,
    BusOut *ret_settle, Error *err);
// The URL as a header holds it: bytes beyond ASCII are percent-encoded.
Str link_location(Str url, Arena *arena);
