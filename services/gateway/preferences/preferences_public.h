// SPDX-License-Identifier: Apache-2.0
// /v1/preferences/<token>, without a key: the token of a mail's unsubscribe link opens its
// recipient's choices. GET shows them, POST changes them, as a page or, with Accept or Content-Type
// application/json, for a page of the tenant's own. Law: a look changes nothing; 200 only once
// PEOPLE and CONFIG have all that changes; only opt-outs are ended here, never a bounce, a
// complaint or what an operator suppressed. Without Postgres it answers 503: the one-click link
// works then.
#pragma once

#include "common/codec/opt_out.h"
#include "common/config/link_revocations.h"
#include "common/service/metrics.h"
#include "services/gateway/preferences/preference_change.h"

typedef struct PreferencesPublic {
    PreferenceParts parts;
    const LinkRevocations *revoked;
    OptOutKey key;
    const char *(*unready)(void *ctx); // NULL: requests are taken
    void *unready_ctx;
    Metric *shown, *stored, *refused;
} PreferencesPublic;

// Fill the fields above before it.
void preferences_public_init(
    PreferencesPublic *preferences, const MasterKey *master, Metrics *metrics);

bool preferences_is_path(Str path);
bool preferences_public_admit(PreferencesPublic *preferences, HttpRequest *http);
void preferences_public_handle(PreferencesPublic *preferences, HttpRequest *http);
