// SPDX-License-Identifier: Apache-2.0
// links: stentor_bus
// Any bytes as a poison message's payload: what is said of its notification is well-formed, and
// what is left behind can be packed.
#include <stdlib.h>
#include <string.h>

#include "common/bus/consume/guard/quarantine.h"
#include "common/codec/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *stream, const char *subject, Str payload)
{
    BusMessage message = {
        .subject = str_from(subject),
        .payload = payload,
        .event_id = payload,
        .stream = stream,
        .sequence = 7,
        .stored_at_us = 1,
        .delivered = 6,
    };
    Arena *arena = arena_new(0);
    Quarantine left;
    PoisonWork work;
    bool known = poison_work(stream, payload, STR("acme"), &work);
    if (known && (!id_parse(str_from(work.notification_id), "ntf_", NULL) ||
                  channel_name(work.channel)[0] == '\0')) {
        abort();
    }
    if (!quarantine_pack(&message, "stage", 5, 1, arena, &left) || left.has_end != known) {
        abort();
    }
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Str payload = str_of(data, size);
    if (size <= EVENT_BYTES_MAX) {
        check("REQUEST_HIGH", "ntf.request.high.acme", payload);
        check("RENDERED_LOW", "ntf.rendered.low.acme", payload);
        check("DEFERRED", "ntf.deferred.retry.acme", payload);
        check("EVENTS", "evt.acme.notify", payload);
    }
    return 0;
}
