// SPDX-License-Identifier: Apache-2.0
// The links in mails: POST /v1/opt-out/<token> takes a recipient off a category (RFC 8058, one
// click, sent by the mail program), GET shows a page with a button, because link scanners follow
// every link. 200 only after JetStream has both facts: the preference of a known recipient, then
// the suppression. Law: only a token that we signed and
// that is not revoked has an effect, and no Postgres is needed.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/codec/opt_out.h"
#include "common/config/link_revocations.h"
#include "common/http/server.h"
#include "common/model/suppressions.h"
#include "common/service/metrics.h"

enum {
    OPT_OUTS_MAX = 256,          // waiting for JetStream's acks; beyond it 503
    OPT_OUT_BODY_MAX = 4 * 1024, // "List-Unsubscribe=One-Click", in a form of either kind
};

typedef struct OptOutEndpoint {
    Bus *bus;
    OptOutKey key;
    const Suppressions *known;
    const LinkRevocations *revoked;
    bool (*ready)(void *ctx);
    void *ready_ctx;
    Metric *taken;
    Metric *refused;
    size_t waiting;
} OptOutEndpoint;

bool opt_out_is_path(Str path);
// After the headers: checks method and link. false: answered.
bool opt_out_admit(OptOutEndpoint *endpoint, HttpRequest *request);
void opt_out_handle(OptOutEndpoint *endpoint, HttpRequest *request); // an admitted one, whole

// Is this what RFC 8058 posts, in either of its encodings? Our own page's form posts the same.
bool opt_out_is_one_click(Str body);

// The event that sets a known recipient's preference off for the category on the channel, in
// `arena`.
bool opt_out_preference(const OptOut *what, int64_t at_us, Arena *arena, BusOut *ret, Error *err);
