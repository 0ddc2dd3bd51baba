// SPDX-License-Identifier: Apache-2.0
#include "common/api/config_read.h"

#include "common/base/arena.h"
#include "common/bus/jetstream/get_message.h"

typedef struct ConfigRead {
    Arena *arena;
    ConfigReadDone done;
    void *ctx;
} ConfigRead;

static void on_message_read(void *ctx, Str reply, const Error *err)
{
    ConfigRead *read = ctx;
    BusMessage message = {0};
    bool found = false;
    Error unreadable = {0};
    if (err == NULL &&
        !get_message_reply(reply, "CONFIG", read->arena, &message, &found, &unreadable)) {
        err = &unreadable;
    }
    read->done(read->ctx, message.payload, message.sequence, err);
}

void config_read(Bus *bus, const char *subject, Arena *arena, ConfigReadDone done, void *ctx)
{
    ConfigRead *read = arena_alloc(arena, sizeof *read);
    *read = (ConfigRead){arena, done, ctx};
    MessageQuery query = {.stream = "CONFIG", .last_of = subject};
    get_message(bus, &query, on_message_read, read);
}
