// SPDX-License-Identifier: Apache-2.0
// links: stentor_bus
// Any bytes as JetStream's answer to "get this message": a message with a time, none, or an error
// with its reason; never half of one.
#include <stdlib.h>

#include "common/base/arena.h"
#include "common/bus/jetstream/get_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    BusMessage message = {0};
    bool found = false;
    Error err = {0};
    if (!get_message_reply(str_of(data, size), "DEAD", arena, &message, &found, &err)) {
        bool said = err.kind == ERROR_TRANSIENT || err.kind == ERROR_PERMANENT;
        if (!said || err.text[0] == '\0' || found || message.stream != NULL) {
            abort(); // it failed, and something was written
        }
    } else if (message.stream == NULL || (!found && message.payload.len > 0)) {
        abort();
    }
    arena_free(arena);
    return 0;
}
