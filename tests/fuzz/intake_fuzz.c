// SPDX-License-Identifier: Apache-2.0
// links: svc_ingest
// Any subject, header and payload of an application: refused with a reason, or an event whose id
// begins with its own tenant and type, and is the publisher's behind that. Input: subject, header's
// name, its value, payload, each but the last ended by a line feed.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/domain/domain_event.h"
#include "services/ingest/intake/intake_event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const IntakeMessage *message, Str tenant, const BusOut *out, Arena *arena)
{
    Str whose, type;
    assert(domain_subject(str_from(out->subject), &whose, &type) && str_eq(whose, tenant));
    assert(str_ends(message->subject, str_from(out->subject)));
    Str prefix =
        str_from(arena_printf(arena, STR_FMT "/" STR_FMT "/", STR_ARG(tenant), STR_ARG(type)));
    assert(str_starts(out->event_id, prefix) && out->event_id.len > prefix.len);
    Str id = message->headers[0].value;
    if (strcmp(message->headers[0].name, "Nats-Msg-Id") == 0 && id.len > 0) {
        Str own = domain_own_id(tenant, type, out->event_id);
        assert(str_eq(own, domain_identity(domain_own_id(tenant, type, id), arena)));
    }
    for (size_t i = 0; i < out->header_count; i++) {
        assert(strncmp(out->headers[i].name, "Nats-", 5) != 0);
        assert(strcmp(out->headers[i].name, BUS_REPLAY_HEADER) != 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Str rest = str_of((const char *)data, size), subject = STR_EMPTY, name = STR_EMPTY,
        value = STR_EMPTY, tenant;
    Arena *arena = arena_new(0);
    (void)str_split(&rest, '\n', &subject);
    (void)str_split(&rest, '\n', &name);
    (void)str_split(&rest, '\n', &value);
    BusHeader header = {arena_cstr(arena, name), value};
    IntakeMessage message = {
        .subject = subject, .payload = rest, .headers = &header, .header_count = 1};
    BusOut out;
    IntakeRefusal refusal = {0};
    if (intake_read(&message, arena, &tenant, &out, &refusal)) {
        check(&message, tenant, &out, arena);
    } else {
        assert(refusal.code == 400 && refusal.text[0] != '\0');
        assert(intake_error(&refusal, arena).len > 0);
    }
    arena_free(arena);
    return 0;
}
