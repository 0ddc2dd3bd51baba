// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/intake/event_intake.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/bus/jetstream/serve.h"
#include "common/bus/topology/topology.h"
#include "common/domain/domain_event.h"
#include "services/ingest/intake/intake_event.h"

enum {
    IN_HAND_MAX = 4096,
    IN_HAND_BYTES_MAX = 32 * 1024 * 1024,
    TENANT_SHARE = 2048, // of IN_HAND_MAX: one tenant's flood leaves room for the others
    SHARES = 1024,
};

#define BUSY                                                                                       \
    "{\"error\":{\"code\":503,\"description\":\"too many events wait to be stored; publish it "    \
    "again\"},\"stream\":\"EVENTS\",\"seq\":0}"

struct EventIntake {
    Serve *serve;
    EventIntakeOptions options;
    Arena *scratch;          // of one message
    uint16_t shares[SHARES]; // in flight, by tenant; two may have one
};

// An event on its way into EVENTS.
typedef struct Flight {
    EventIntake *intake;
    Asked *asked;
    uint16_t *share;
} Flight;

static void answer_refusal(EventIntake *intake, Asked *asked, const IntakeRefusal *refusal)
{
    IntakeMetric metric = refusal->code == 400 ? INTAKE_REFUSED : INTAKE_UNAVAILABLE;
    metric_add(intake->options.metrics->intake[metric], 1);
    asked_answer(asked, intake_error(refusal, intake->scratch));
}

// Killed between the storing and the answer: the application publishes it again, perhaps to another
// replica, and by its id it is the same event (crash matrix: intake.stored).
static void finish(Flight *flight, const Error *err, uint64_t sequence, bool duplicate)
{
    EventIntake *intake = flight->intake;
    (*flight->share)--;
    arena_reset(intake->scratch);
    if (err == NULL) {
        CRASH_POINT("intake.stored");
        metric_add(intake->options.metrics->intake[duplicate ? INTAKE_REPEATED : INTAKE_STORED], 1);
        asked_answer(flight->asked, intake_ack(sequence, duplicate, intake->scratch));
    } else {
        IntakeRefusal refusal = {.code = err->kind == ERROR_PERMANENT ? 400 : 503};
        (void)snprintf(refusal.text, sizeof refusal.text, "not stored: %.200s", err->text);
        answer_refusal(intake, flight->asked, &refusal);
    }
    free(flight);
}

static void on_event_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    finish(ctx, err, sequence, duplicate);
}

static bool read(
    EventIntake *intake, const Asked *asked, Str *ret_tenant, BusOut *ret, IntakeRefusal *why)
{
    BusHeader *headers;
    IntakeMessage message = {.subject = asked->subject, .payload = asked->payload};
    if (!asked_headers(
            asked, intake->scratch, INTAKE_HEADERS_MAX, &headers, &message.header_count)) {
        *why = (IntakeRefusal){400, "the event has more than 64 headers"};
        return false;
    }
    message.headers = headers;
    return intake_read(&message, intake->scratch, ret_tenant, ret, why);
}

static bool seal_event(EventIntake *intake, Str tenant, BusOut *out, IntakeRefusal *why)
{
    Str of = STR_EMPTY, type = STR_EMPTY;
    Error err = {0};
    (void)domain_subject(str_from(out->subject), &of, &type);
    if (intake->options.keys == NULL || event_is_plain(type, out->payload) ||
        catalog_tenant(intake->options.catalog, tenant)->events_in_clear ||
        event_seal_out(intake->options.keys, clock_mono_us(), out, intake->scratch, &err)) {
        return true;
    }
    why->code = err.kind == ERROR_PERMANENT ? 400 : 503;
    (void)snprintf(why->text, sizeof why->text, "%s", err.text);
    return false;
}

static void take(EventIntake *intake, Asked *asked)
{
    Str tenant;
    BusOut out;
    IntakeRefusal refusal;
    arena_reset(intake->scratch);
    if (!read(intake, asked, &tenant, &out, &refusal) ||
        !seal_event(intake, tenant, &out, &refusal)) {
        answer_refusal(intake, asked, &refusal);
        return;
    }
    uint32_t hash = 2166136261U; // FNV-1a
    for (size_t i = 0; i < tenant.len; i++) {
        hash = (hash ^ (unsigned char)tenant.ptr[i]) * 16777619U;
    }
    uint16_t *share = &intake->shares[hash % SHARES];
    if (*share >= TENANT_SHARE) {
        refusal = (IntakeRefusal){
            503, "too many events of the tenant wait to be stored; publish it again"};
        answer_refusal(intake, asked, &refusal);
        return;
    }
    Flight *flight = xmalloc(sizeof *flight);
    *flight = (Flight){intake, asked, share};
    (*share)++;
    bus_publish(intake->options.bus, &out, on_event_acked, flight);
}

static void on_serve_asked(void *ctx, Asked *asked)
{
    take(ctx, asked);
}

EventIntake *event_intake_new(const EventIntakeOptions *settings)
{
    static const ServeOptions served = {
        .subject = SUBJECT_INTAKE,
        .queue = QUEUE_INTAKE,
        .in_hand_max = IN_HAND_MAX,
        .bytes_max = IN_HAND_BYTES_MAX,
        .busy = BUSY,
    };
    EventIntake *intake = xcalloc(1, sizeof *intake);
    intake->options = *settings;
    intake->scratch = arena_new(0);
    intake->serve = serve_new(intake->options.bus, &served, on_serve_asked, intake);
    return intake;
}

void event_intake_stop(EventIntake *intake, void (*on_stopped)(void *ctx), void *ctx)
{
    serve_stop(intake->serve, on_stopped, ctx);
}

void event_intake_free(EventIntake *intake)
{
    serve_free(intake->serve);
    arena_free(intake->scratch);
    free(intake);
}
