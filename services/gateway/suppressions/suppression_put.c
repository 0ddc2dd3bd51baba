// SPDX-License-Identifier: Apache-2.0
// What is asked with a precondition, and what seems to stand already, is read from the log first,
// compared, and replaced under just that sequence. A release is in the audit log before it is done:
// killed between the two, or refused because another entry came in between, the log has one that
// was not done; the caller got no answer, or the refusal.
#include "services/gateway/suppressions/suppression_put.h"

#include <string.h>

#include "common/api/config_read.h"
#include "common/base/clock.h"
#include "common/bus/events/suppression_event.h"
#include "common/codec/event.h"
#include "common/config/config_store.h"
#include "services/gateway/suppressions/suppression_note.h"

typedef Stentor__V1__Suppression Suppression;

// One suppression on its way into CONFIG; lives in the request's arena.
typedef struct Put {
    const SuppressionsApi *api;
    ApiCall *call;
    const Suppression *entry;
    Precondition needs;
    BusOut out;
    uint64_t replaces; // of a release
    int status;        // of the answer
    bool barred;       // by what another stored at the same moment
    bool lost;         // the same, and there was a precondition
} Put;

void suppression_answer(ApiCall *call, const Suppression *entry, int status, uint64_t sequence)
{
    Buf out;
    buf_init(&out, 64 * 1024);
    suppression_json(&out, entry);
    precondition_tag(call, sequence);
    http_respond(call->http, status, "application/json", buf_view(&out));
    buf_done(&out);
}

// ---- who may ----

// What cannot be read may be either of the first two.
bool suppressions_may_end(const ApiCall *call, SuppressionReason reason)
{
    bool guarded = reason == SUPPRESSION_COMPLAINT || reason == SUPPRESSION_COMPLIANCE ||
                   reason == SUPPRESSION_UNREADABLE;
    return !guarded || (call->scopes & SCOPE_BIT(SCOPE_SUPPRESSIONS_RELEASE)) != 0;
}

static bool may_put(const ApiCall *call, const Suppression *entry, SuppressionReason before)
{
    bool weaker = (SuppressionReason)entry->reason != before || entry->expires_at_us != 0;
    return !weaker || suppressions_may_end(call, before);
}

bool suppressions_may_replace(
    const SuppressionsApi *api, const ApiCall *call, const Suppression *entry)
{
    return may_put(
        call, entry,
        suppressions_of_entry(
            api->known, str_from(entry->tenant), (Channel)entry->channel, (Category)entry->category,
            entry->address_hash.data, call->http->received_at_us));
}

bool suppressions_is_known(const SuppressionsApi *api, const Suppression *entry)
{
    return suppressions_stands(
        api->known, str_from(entry->tenant), (Channel)entry->channel, (Category)entry->category,
        entry->address_hash.data, (SuppressionReason)entry->reason, entry->expires_at_us);
}

// ---- storing ----

static void answer_barred(const Put *put)
{
    if (put->status == 201) {
        (void)api_need_scope(put->call, SCOPE_SUPPRESSIONS_RELEASE);
        return;
    }
    Problem problem = {.status = 409, .slug = "suppression-changed"};
    problem.title = "Another call changed the suppression at this moment: read it again";
    api_answer_problem(put->call, &problem);
}

static void on_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)duplicate; // the same cause once more is a success
    Put *put = ctx;
    if (put->lost) {
        precondition_answer_failed(put->call, sequence);
    } else if (put->barred) {
        answer_barred(put);
    } else if (err != NULL) {
        api_answer_failure(put->call, err);
    } else {
        suppression_answer(put->call, put->entry, put->status, sequence);
    }
}

// Another call came first, and this caller may have no right to end its entry. What is released is
// just what was read.
static ConfigVerdict decide(void *ctx, uint64_t there)
{
    Put *put = ctx;
    put->lost = precondition_is_given(&put->needs);
    if (!put->lost && put->status == 201 &&
        !suppression_is_known(put->api->known, put->entry, there)) {
        return CONFIG_WAIT;
    }
    put->barred = put->status != 201 || !suppressions_may_replace(put->api, put->call, put->entry);
    return put->lost || put->barred ? CONFIG_LEAVE : CONFIG_PUT;
}

static void store(Put *put, uint64_t replaces)
{
    ConfigStore store = {
        .out = put->out, .replaces = replaces, .decide = decide, .done = on_stored, .ctx = put};
    config_store(put->api->bus, &store, put->call->http->arena);
}

// NULL: answered.
static Put *begin(
    const SuppressionsApi *api, ApiCall *call, const Suppression *entry, const Precondition *needs)
{
    Error err = {0};
    Put *put = arena_zalloc(call->http->arena, sizeof *put);
    *put = (Put){.api = api, .call = call, .entry = entry, .needs = *needs};
    put->status = entry->released_at_us > 0 ? 200 : 201;
    if (suppression_event(entry, call->http->arena, &put->out, &err)) {
        return put;
    }
    api_answer_failure(call, &err);
    return NULL;
}

static void on_release_noted(void *ctx, const Error *err, const AuditHead *head)
{
    (void)head;
    Put *put = ctx;
    if (err != NULL) {
        api_answer_failure(put->call, err);
    } else {
        store(put, put->replaces);
    }
}

void suppression_release(
    const SuppressionsApi *api, ApiCall *call, const Suppression *entry, const Precondition *needs,
    uint64_t replaces)
{
    Put *put = begin(api, call, entry, needs);
    if (put != NULL) {
        put->replaces = replaces;
        suppression_note_release(api->audit, entry, on_release_noted, put);
    }
}

// ---- adding ----

// But for its id, who made it and when.
static bool says_the_same(const Suppression *there, const Suppression *entry)
{
    return there->reason == entry->reason && there->expires_at_us == entry->expires_at_us &&
           strcmp(there->note, entry->note) == 0 &&
           (entry->masked_address[0] == '\0' ||
            strcmp(there->masked_address, entry->masked_address) == 0);
}

static void on_entry_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    Put *put = ctx;
    Error own = {0};
    int64_t now_us = put->call->http->received_at_us;
    const Suppression *there =
        err != NULL || payload.len == 0
            ? NULL
            : (const Suppression *)event_unpack(
                  &stentor__v1__suppression__descriptor, payload, put->call->http->arena, &own);
    if (err != NULL || own.kind != ERROR_NONE) {
        api_answer_failure(put->call, err != NULL ? err : &own);
        return;
    }
    there = there != NULL && there->released_at_us == 0 ? there : NULL; // a released one is gone
    bool over = there == NULL || (there->expires_at_us != 0 && there->expires_at_us <= now_us);
    SuppressionReason before = over ? SUPPRESSION_NONE : (SuppressionReason)there->reason;
    if (!precondition_holds(&put->needs, there == NULL ? 0 : sequence)) {
        precondition_answer_failed(put->call, there == NULL ? 0 : sequence);
    } else if (there != NULL && says_the_same(there, put->entry)) {
        suppression_answer(put->call, there, 200, sequence);
    } else if (
        may_put(put->call, put->entry, before) ||
        api_need_scope(put->call, SCOPE_SUPPRESSIONS_RELEASE)) {
        store(put, sequence);
    }
}

void suppression_add(
    const SuppressionsApi *api, ApiCall *call, const Suppression *entry, const Precondition *needs)
{
    bool known = suppressions_is_known(api, entry);
    if (!known && !suppressions_may_replace(api, call, entry)) {
        (void)api_need_scope(call, SCOPE_SUPPRESSIONS_RELEASE);
        return;
    }
    Put *put = begin(api, call, entry, needs);
    if (put == NULL) {
        return;
    }
    if (known || precondition_is_given(needs)) {
        config_read(api->bus, put->out.subject, call->http->arena, on_entry_read, put);
    } else {
        store(put, suppression_known_sequence(api->known, entry));
    }
}
