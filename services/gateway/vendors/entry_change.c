// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/vendors/entry_change.h"

#include "common/api/config_read.h"
#include "common/api/config_write.h"
#include "common/bus/topology/topology.h"

EntryChange *entry_change_new(ApiCall *call, size_t size, const char *kind, Str key)
{
    EntryChange *change = arena_zalloc(call->http->arena, size);
    change->call = call;
    change->kind = kind;
    change->key = arena_str(call->http->arena, key);
    return change;
}

// This process's next call must not meet what was before; the mirror brings it in a moment.
static void take(EntryChange *change, Str payload, uint64_t sequence)
{
    VendorsApi *vendors = change->call->ctx;
    BusMessage message = {.payload = payload, .sequence = sequence};
    vendors_api_changed(
        vendors, str_from(change->kind), str_from(change->call->tenant), change->key, &message);
}

static void on_stored(void *ctx, const Error *err, Str payload, uint64_t sequence)
{
    EntryChange *change = ctx;
    bool conflict = err != NULL && err->kind == ERROR_CONFLICT;
    if (conflict && precondition_is_given(&change->needs)) {
        precondition_answer_failed(change->call, sequence);
    } else if (conflict) {
        Problem problem = {.status = 409, .slug = "entry-changed"};
        problem.title = "Another call changed it at this moment; read it and try again";
        api_answer_problem(change->call, &problem);
    } else if (err != NULL) {
        api_answer_failure(change->call, err);
    } else {
        take(change, payload, sequence);
        change->sequence = sequence;
        if (payload.len > 0) {
            precondition_tag(change->call, sequence);
        }
        change->answer(change, payload);
    }
}

static void on_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    EntryChange *change = ctx;
    const VendorsApi *vendors = change->call->ctx;
    Arena *arena = change->call->http->arena;
    const ProtobufCMessage *message = NULL;
    uint64_t there = payload.len == 0 ? 0 : sequence;
    if (err != NULL) {
        api_answer_failure(change->call, err);
    } else if (!precondition_holds(&change->needs, there)) {
        precondition_answer_failed(change->call, there);
    } else if (!change->make(change, payload, &message)) {
        return;
    } else if (message != NULL && config_is_same(message, payload, arena)) {
        on_stored(change, NULL, payload, sequence);
    } else {
        config_write(
            &(ConfigWrite){
                .bus = vendors->bus,
                .arena = arena,
                .kind = change->kind,
                .tenant = str_from(change->call->tenant),
                .key = change->key,
                .message = message,
                .replaces = sequence,
            },
            on_stored, change);
    }
}

void entry_change_run(EntryChange *change)
{
    const VendorsApi *vendors = change->call->ctx;
    Arena *arena = change->call->http->arena;
    if (precondition_read(change->call, &change->needs)) {
        char *subject = arena_alloc(arena, SUBJECT_SIZE);
        subject_config(subject, change->kind, str_from(change->call->tenant), change->key);
        config_read(vendors->bus, subject, arena, on_read, change);
    }
}

void entry_fail(ApiBody *body, const Error *err)
{
    Str text = str_from(err->text);
    Str field;
    if (str_split(&text, ':', &field)) {
        (void)api_body_fail(body, arena_cstr(body->arena, field), "%s", str_trim(text).ptr);
    }
}
