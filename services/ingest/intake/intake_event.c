// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/intake/intake_event.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/base/buf.h"
#include "common/base/id.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/domain/domain_event.h"
#include "common/domain/event_seal.h"

static bool refuse(IntakeRefusal *ret, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool refuse(IntakeRefusal *ret, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(ret->text, sizeof ret->text, format, args);
    va_end(args);
    ret->code = 400;
    return false;
}

static bool begins(Str name, Str prefix)
{
    return name.len >= prefix.len && str_eq_nocase(str_slice(name, 0, prefix.len), prefix);
}

// Headers that only the server, a replay or a service of ours may set.
static bool is_reserved(Str name)
{
    return begins(name, STR("Nats-")) || begins(name, STR("ce-stentor")) ||
           (begins(name, STR("Stentor-")) && !str_eq(name, STR("Stentor-Type")));
}

// An ack of a conditional publish would claim that the condition held.
static bool is_condition(const BusHeader *header)
{
    Str name = str_from(header->name);
    bool its_stream =
        str_eq_nocase(name, STR("Nats-Expected-Stream")) && str_eq(header->value, STR("EVENTS"));
    return !its_stream && (begins(name, STR("Nats-Expected-")) || begins(name, STR("Nats-Rollup")));
}

static bool take_headers(
    const IntakeMessage *message, BusHeader *headers, BusOut *ret, Str *ret_id,
    IntakeRefusal *ret_refusal)
{
    *ret_id = STR_EMPTY;
    for (size_t i = 0; i < message->header_count; i++) {
        const BusHeader *header = &message->headers[i];
        Str name = str_from(header->name);
        if (is_condition(header)) {
            return refuse(
                ret_refusal, "an application's event cannot carry header '%.60s': leave it out",
                header->name);
        }
        if (str_eq(name, STR("Nats-Msg-Id"))) {
            *ret_id = header->value;
        } else if (!is_reserved(name)) {
            headers[ret->header_count++] = *header;
        }
    }
    return true;
}

static bool check_place(
    const IntakeMessage *message, Str *ret_tenant, Str *ret_type, IntakeRefusal *ret_refusal)
{
    Str rest = message->subject, in = STR_EMPTY;
    if (!str_split(&rest, '.', &in) || !domain_subject(rest, ret_tenant, ret_type)) {
        return refuse(
            ret_refusal,
            "the subject must be evt.<tenant>.<type>, with a tenant of 1 to 32 of a-z 0-9 _ -");
    }
    if (!event_type_fits(*ret_type)) {
        return refuse(
            ret_refusal,
            "the event's type must be 1 to 96 of A-Z a-z 0-9 _ - in tokens joined by dots");
    }
    if (event_is_sealed(message->payload)) {
        return refuse(
            ret_refusal, "the payload begins as a sealed event of Stentor does (0xff 'SE1'): "
                         "publish the event itself");
    }
    return message->payload.len <= EVENT_BYTES_MAX ||
           refuse(
               ret_refusal, "the payload has %zu bytes; at most %d", message->payload.len,
               EVENT_BYTES_MAX);
}

bool intake_read(
    const IntakeMessage *message, Arena *arena, Str *ret_tenant, BusOut *ret,
    IntakeRefusal *ret_refusal)
{
    Str tenant, type, id;
    if (!check_place(message, &tenant, &type, ret_refusal)) {
        return false;
    }
    BusOut out = {.payload = message->payload, .once = true};
    BusHeader *headers = arena_array(arena, message->header_count + 1, sizeof *headers);
    if (!take_headers(message, headers, &out, &id, ret_refusal)) {
        return false;
    }
    if (id.len == 0) {
        // A repeat of ours must be the same event as its first try, whatever its publisher gave it.
        uint8_t random[16];
        char *made = arena_alloc(arena, EVENT_ID_SIZE);
        random_bytes(random, sizeof random);
        base64url_encode(random, sizeof random, made);
        id = str_from(made);
        headers[out.header_count++] = (BusHeader){DOMAIN_MADE_ID_HEADER, STR("1")};
    }
    char *subject = arena_alloc(arena, SUBJECT_SIZE);
    subject_event(subject, tenant, type);
    out.subject = subject;
    out.headers = headers;
    out.event_id = domain_full_id(tenant, type, id, arena);
    *ret = out;
    *ret_tenant = tenant;
    return true;
}

Str intake_ack(uint64_t sequence, bool duplicate, Arena *arena)
{
    return str_from(arena_printf(
        arena, "{\"stream\":\"EVENTS\",\"seq\":%" PRIu64 "%s}", sequence,
        duplicate ? ",\"duplicate\":true" : ""));
}

Str intake_error(const IntakeRefusal *refusal, Arena *arena)
{
    Buf out;
    buf_init(&out, 4096);
    buf_printf(&out, "{\"error\":{\"code\":%d,\"description\":", refusal->code);
    buf_json(&out, str_from(refusal->text));
    buf_cstr(&out, "},\"stream\":\"EVENTS\",\"seq\":0}");
    Str text = arena_str(arena, buf_view(&out));
    buf_done(&out);
    return text;
}
