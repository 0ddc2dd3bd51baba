// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/suppressions/suppression_put.h"

#include "common/bus/events/suppression_event.h"
#include "common/config/config_store.h"

// One suppression on its way into CONFIG; lives in the request's arena.
typedef struct Put {
    const SuppressionsApi *api;
    ApiCall *call;
    const Stentor__V1__Suppression *entry;
    int status;  // of the answer
    bool barred; // by what another stored at the same moment
} Put;

void suppression_answer(ApiCall *call, const Stentor__V1__Suppression *entry, int status)
{
    Buf out;
    buf_init(&out, 64 * 1024);
    suppression_json(&out, entry);
    http_respond(call->http, status, "application/json", buf_view(&out));
    buf_done(&out);
}

// What cannot be read may be either of the first two.
bool suppressions_may_end(const ApiCall *call, SuppressionReason reason)
{
    bool guarded = reason == SUPPRESSION_COMPLAINT || reason == SUPPRESSION_COMPLIANCE ||
                   reason == SUPPRESSION_UNREADABLE;
    return !guarded || (call->scopes & SCOPE_BIT(SCOPE_SUPPRESSIONS_RELEASE)) != 0;
}

bool suppressions_may_replace(
    const SuppressionsApi *api, const ApiCall *call, const Stentor__V1__Suppression *entry)
{
    SuppressionReason before = suppressions_of_entry(
        api->known, str_from(entry->tenant), (Channel)entry->channel, (Category)entry->category,
        entry->address_hash.data, call->http->received_at_us);
    bool weaker = (SuppressionReason)entry->reason != before || entry->expires_at_us != 0;
    return !weaker || suppressions_may_end(call, before);
}

static void answer_barred(const Put *put)
{
    if (put->status == 201) {
        (void)api_need_scope(put->call, SCOPE_SUPPRESSIONS_RELEASE);
        return;
    }
    Problem problem = {.status = 409, .slug = "suppression-changed"};
    problem.title = "The suppression was changed by another at this moment: read it again";
    api_answer_problem(put->call, &problem);
}

static void on_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate; // the same cause once more is a success
    Put *put = ctx;
    if (put->barred) {
        answer_barred(put);
    } else if (err != NULL) {
        api_answer_failure(put->call, err);
    } else {
        suppression_answer(put->call, put->entry, put->status);
    }
}

// Another came first: what it says may be what this caller may not end.
static ConfigVerdict decide_new(void *ctx, uint64_t there)
{
    Put *put = ctx;
    if (!suppression_is_known(put->api->known, put->entry, there)) {
        return CONFIG_WAIT;
    }
    put->barred = !suppressions_may_replace(put->api, put->call, put->entry);
    return put->barred ? CONFIG_LEAVE : CONFIG_PUT;
}

// What is released is just what was read.
static ConfigVerdict decide_release(void *ctx, uint64_t there)
{
    Put *put = ctx;
    (void)there;
    put->barred = true;
    return CONFIG_LEAVE;
}

void suppression_put(
    const SuppressionsApi *api, ApiCall *call, const Stentor__V1__Suppression *entry,
    uint64_t replaces)
{
    bool releases = entry->released_at_us > 0;
    Put *put = arena_zalloc(call->http->arena, sizeof *put);
    *put = (Put){.api = api, .call = call, .entry = entry, .status = releases ? 200 : 201};
    ConfigStore store = {
        .replaces = replaces,
        .decide = releases ? decide_release : decide_new,
        .done = on_stored,
        .ctx = put,
    };
    Error err = {0};
    if (suppression_event(entry, call->http->arena, &store.out, &err)) {
        config_store(api->bus, &store, call->http->arena);
    } else {
        api_answer_failure(call, &err);
    }
}
