// SPDX-License-Identifier: Apache-2.0
#include "common/api/config_write.h"

#include "common/base/id.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"

typedef struct Writing {
    Str payload;
    ConfigWritten done;
    void *ctx;
} Writing;

static void on_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)duplicate;
    const Writing *writing = ctx;
    writing->done(writing->ctx, err, writing->payload, sequence);
}

bool config_is_same(const ProtobufCMessage *message, Str stands, Arena *arena)
{
    Str payload = STR_EMPTY;
    return stands.len > 0 && event_pack(message, arena, &payload, NULL) && str_eq(payload, stands);
}

void config_write(const ConfigWrite *write, ConfigWritten done, void *ctx)
{
    Error err = {0};
    Writing *writing = arena_zalloc(write->arena, sizeof *writing);
    char made[SUBJECT_SIZE];
    char *event_id = arena_alloc(write->arena, EVENT_ID_SIZE);
    uint8_t random[16]; // each put is a fact of its own
    *writing = (Writing){.payload = STR_EMPTY, .done = done, .ctx = ctx};
    if (write->message != NULL &&
        !event_pack(write->message, write->arena, &writing->payload, &err)) {
        done(ctx, &err, STR_EMPTY, 0);
        return;
    }
    if (write->subject == NULL) {
        subject_config(made, write->kind, write->tenant, write->key);
    }
    random_bytes(random, sizeof random);
    base64url_encode(random, sizeof random, event_id);
    const BusHeader expected = bus_replaces(write->replaces, write->arena);
    BusOut out = {
        .subject = write->subject != NULL ? write->subject : made,
        .event_id = str_from(event_id),
        .payload = writing->payload,
        .headers = &expected,
        .header_count = 1};
    bus_publish(write->bus, &out, on_stored, writing);
}
