// SPDX-License-Identifier: Apache-2.0
#include "common/api/config_read.h"

#include "common/base/arena.h"
#include "common/bus/jetstream/get_message.h"
#include "common/config/config_entry.h"

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
    ConfigName name;
    bool ok = err == NULL &&
              get_message_reply(reply, "CONFIG", read->arena, &message, &found, &unreadable) &&
              (!found || config_entry_check(&message, &name, read->arena, &unreadable));
    if (!ok && err == NULL) {
        err = &unreadable; // what is no entry is not "none": the caller would decide on nothing
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
