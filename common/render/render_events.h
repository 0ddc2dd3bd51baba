// SPDX-License-Identifier: Apache-2.0
// What the renderer sends out, made from the request that caused it: a Rendered, or a status
// `failed`. Pure: the time and the key are arguments. Ids are derived from the notification, so a
// second rendering after a crash has the same and counts once.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/codec/body.h"
#include "common/codec/seal.h"
#include "common/model/enums.h"
#include "common/render/content.h"
#include "common/render/senders.h"
#include "common/render/template_cache.h"
#include "stentor/v1/request.pb-c.h"

typedef Stentor__V1__NotificationRequest Request;

// One request on its way. What is made of it lives in `arena`.
typedef struct Job {
    const Request *request;
    DataKey *key; // the recipient's
    Priority lane;
    Str traceparent;
    int64_t now_us;
    Arena *arena;
    const char *unsubscribe_url; // NULL or empty: none
    const char *preferences_url; // the same
} Job;

// PERMANENT when a field that every request has is missing or malformed, or it came on another
// tenant's subject.
bool render_request_check(const Request *request, Str subject, Error *err);
TemplateName template_name_of(const Request *request); // of the version that it was frozen to
// The text that `sealed` holds; both sealed fields of a request are under one key.
bool job_variables(const Job *job, Str *ret_json, Error *err);

// A digest's variables: {count, first, list: [{notification_id, template, accepted_at, ...the
// item's own}], more} laid over `variables`. `more` are those that are not in the list. PERMANENT
// when an item cannot be opened; one whose variables are no JSON object has none.
bool digest_variables(const Job *job, json_t *variables, Error *err);

// Room that later stages need for what they add to a rendered event.
enum { RENDERED_ROOM = 4 * 1024 };

// PERMANENT when it is too large to travel.
bool rendered_event(
    const Job *job, const CompiledVersion *version, const CompiledLocale *locale, Draft *draft,
    const Sender *sender, BusOut *ret_out, Error *err);
bool failed_event(const Job *job, const RenderFailure *failure, BusOut *ret_out, Error *err);
