// SPDX-License-Identifier: Apache-2.0
#include "common/api/config_change.h"

#include "common/api/config_read.h"
#include "common/api/config_write.h"
#include "common/bus/topology/topology.h"

ConfigChange *config_change_new(ApiCall *call, size_t size, Bus *bus, const char *kind, Str key)
{
    ConfigChange *change = arena_zalloc(call->http->arena, size);
    change->call = call;
    change->bus = bus;
    change->kind = kind;
    change->key = arena_str(call->http->arena, key);
    change->stands = STR_EMPTY;
    return change;
}

static void answer_conflict(ConfigChange *change, uint64_t there)
{
    if (change->conflict_slug == NULL || precondition_is_given(&change->needs)) {
        precondition_answer_failed(change->call, there);
        return;
    }
    Problem problem = {
        .status = 409, .slug = change->conflict_slug, .title = change->conflict_title};
    api_answer_problem(change->call, &problem);
}

static void on_written(void *ctx, const Error *err, Str payload, uint64_t sequence)
{
    ConfigChange *change = ctx;
    if (err != NULL && err->kind == ERROR_CONFLICT) {
        answer_conflict(change, sequence);
    } else if (err != NULL) {
        api_answer_failure(change->call, err);
    } else if (change->take == NULL || change->take(change, payload, sequence)) {
        if (payload.len > 0) {
            precondition_tag(change->call, sequence);
        }
        change->answer(change, payload);
    }
}

void config_change_write(ConfigChange *change, const ProtobufCMessage *message)
{
    Arena *arena = change->call->http->arena;
    if (message != NULL && config_is_same(message, change->stands, arena)) {
        on_written(change, NULL, change->stands, change->replaces);
        return;
    }
    config_write(
        &(ConfigWrite){
            .bus = change->bus,
            .arena = arena,
            .kind = change->kind,
            .tenant = str_from(change->call->tenant),
            .key = change->key,
            .message = message,
            .replaces = change->replaces,
        },
        on_written, change);
}

static void on_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    ConfigChange *change = ctx;
    const ProtobufCMessage *message = NULL;
    uint64_t there = payload.len == 0 ? 0 : sequence;
    change->stands = payload;
    change->replaces = sequence;
    if (err != NULL) {
        api_answer_failure(change->call, err);
    } else if (!precondition_holds(&change->needs, there)) {
        precondition_answer_failed(change->call, there);
    } else if (change->make(change, payload, &message)) {
        config_change_write(change, message);
    }
}

void config_change_run(ConfigChange *change)
{
    Arena *arena = change->call->http->arena;
    if (precondition_read(change->call, &change->needs)) {
        char *subject = arena_alloc(arena, SUBJECT_SIZE);
        subject_config(subject, change->kind, str_from(change->call->tenant), change->key);
        config_read(change->bus, subject, arena, on_read, change);
    }
}

// ---- removing ----

static bool make_nothing(ConfigChange *change, Str there, const ProtobufCMessage **ret)
{
    *ret = NULL;
    if (there.len == 0) {
        change->missing(change->call);
    }
    return there.len > 0;
}

void config_change_answer_removed(ConfigChange *change, Str payload)
{
    (void)payload;
    http_respond(change->call->http, 204, "application/json", STR_EMPTY);
}

void config_change_remove(ConfigChange *change, void (*missing)(ApiCall *call))
{
    change->make = make_nothing;
    change->missing = missing;
    change->answer = config_change_answer_removed;
    config_change_run(change);
}
