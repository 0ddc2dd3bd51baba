// SPDX-License-Identifier: Apache-2.0
#include "common/audit/audit_repair.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/audit/audit_pg.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/bus/events/frames.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/db/db.h"
#include "stentor/v1/deferred.pb-c.h"
#include "stentor/v1/request.pb-c.h"
#include "stentor/v1/status.pb-c.h"

enum {
    BATCH_ROWS = 256,
    BATCH_BYTES = 8 * 1024 * 1024, // of events in one answer; a larger row comes alone
    IN_AIR_MAX = 4096,
    IN_AIR_BYTES = 16 * 1024 * 1024,
    EXPIRY_MARGIN_S = 60
};

typedef struct Repair {
    Audit *audit;
    char run[ID_SIZE];
    size_t in_flight;
    size_t sent_bytes; // since the last await
    bool waiting;
    Error failure; // of the first publish that failed
    uint64_t repaired;
    Buf ids; // of the next answer: "{1,2,3}"
    size_t id_count;
    int64_t bytes;
} Repair;

AuditRemedy audit_remedy_of(const Audit *audit, const AuditEntry *entry)
{
    AuditVerdict verdict = audit_verdict(audit, entry);
    bool in_order = verdict.missing == 0 && verdict.state != AUDIT_OPEN;
    AuditRemedy remedy = in_order ? REMEDY_NONE : audit_remedy(entry, verdict.missing);
    // What the ledger may have dropped it cannot refuse to send again.
    bool refusable = audit_entry_created_us(entry) >= audit->ages.ledger_us;
    return remedy == REMEDY_DRIVE && !refusable ? REMEDY_OPERATOR : remedy;
}

// ---- publishing ----

static void on_bus_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate;
    Repair *repair = ctx;
    if (err != NULL && repair->failure.kind == ERROR_NONE) {
        repair->failure = *err;
    }
    repair->in_flight--;
    if (repair->waiting && repair->in_flight == 0) {
        session_finish(repair->audit->session, NULL);
    }
}

static bool await(Repair *repair, Error *err)
{
    bool ok = true;
    repair->waiting = true;
    while (ok && repair->in_flight > 0) { // the bus gives each publish up by its own deadline
        ok = session_run(repair->audit->session, 0, err);
    }
    repair->waiting = false;
    repair->sent_bytes = 0;
    if (ok && repair->failure.kind != ERROR_NONE) {
        *err = repair->failure;
        return error_wrap(err, "publishing again");
    }
    return ok;
}

static bool publish(Repair *repair, const Frame *frame, int64_t accept_id, size_t n, Error *err)
{
    char discriminator[64];
    char message_id[EVENT_ID_SIZE];
    snprintf(discriminator, sizeof discriminator, "accept_log/%" PRId64 "/%zu", accept_id, n);
    // Not the event's own id: the server may remember that one, and would drop it.
    event_id_derive("replay", str_from(repair->run), str_from(discriminator), message_id);
    BusOut out = frame->out;
    out.event_id = str_from(message_id);
    repair->in_flight++;
    repair->sent_bytes += out.payload.len;
    bus_publish(repair->audit->session->bus, &out, on_bus_acked, repair);
    bool room = repair->in_flight < IN_AIR_MAX && repair->sent_bytes < IN_AIR_BYTES;
    return room || await(repair, err);
}

// ---- what a frame is about ----

typedef struct Subject {
    const Stentor__V1__Meta *meta;
    int64_t expires_at_us; // 0: never, or a status
} Subject;

static bool read_request(const Stentor__V1__NotificationRequest *request, Subject *ret)
{
    if (request == NULL || request->meta == NULL) {
        return false;
    }
    *ret = (Subject){request->meta, request->expires_at_us};
    return true;
}

static bool read_subject(const Frame *frame, Arena *arena, Subject *ret, Error *err)
{
    Str payload = frame->out.payload;
    if (frame->kind == FRAME_REQUEST) {
        return read_request(
            (const void *)event_unpack(
                &stentor__v1__notification_request__descriptor, payload, arena, err),
            ret);
    }
    if (frame->kind == FRAME_DEFERRED) {
        const Stentor__V1__Deferred *event =
            (const void *)event_unpack(&stentor__v1__deferred__descriptor, payload, arena, err);
        return event != NULL && event->work_case == STENTOR__V1__DEFERRED__WORK_REQUEST &&
               read_request(event->request, ret);
    }
    const Stentor__V1__NotificationStatus *event = (const void *)event_unpack(
        &stentor__v1__notification_status__descriptor, payload, arena, err);
    *ret = (Subject){event != NULL ? event->meta : NULL, 0};
    return ret->meta != NULL;
}

// What has its end, or may have been sent, and has expired since would be called failed by the
// renderer.
static bool is_too_late(const Audit *audit, const AuditEntry *entry, const Subject *subject)
{
    AuditState state = audit_verdict(audit, entry).state;
    int64_t soon_us = clock_now_us() + EXPIRY_MARGIN_S * INT64_C(1000000);
    bool ended = state == AUDIT_SENT || state == AUDIT_FAILED || state == AUDIT_SUPPRESSED ||
                 state == AUDIT_OPEN;
    return ended && subject->expires_at_us > 0 && subject->expires_at_us <= soon_us;
}

// It came with what it makes way for (services/ingest/accept/events.c), and was lost with it: else
// the notification of the date before goes out next to the one that is driven. Stored a second time
// it stops nothing more.
static bool is_cancellation(const Frame *frame, Arena *arena)
{
    if (frame->kind != FRAME_DEFERRED) {
        return false;
    }
    const Stentor__V1__Deferred *event = (const void *)event_unpack(
        &stentor__v1__deferred__descriptor, frame->out.payload, arena, NULL);
    return event != NULL && event->work_case == STENTOR__V1__DEFERRED__WORK_CANCEL;
}

static bool repair_frame(
    Repair *repair, const Frame *frame, int64_t accept_id, size_t n, Arena *arena, Error *err)
{
    Audit *audit = repair->audit;
    Subject subject;
    AuditEntry *entry = NULL;
    if (is_cancellation(frame, arena)) {
        return publish(repair, frame, accept_id, n, err);
    }
    if (read_subject(frame, arena, &subject, err)) {
        entry = audit_find(
            audit->table, str_from(subject.meta->notification_id), str_from(subject.meta->tenant));
    }
    if (entry == NULL || audit_remedy_of(audit, entry) != REMEDY_DRIVE) {
        return true;
    }
    if (frame->kind == FRAME_STATUS) {
        bool known = (entry->seen & (SEEN_S_QUEUED | SEEN_S_SCHEDULED)) != 0;
        return known || publish(repair, frame, accept_id, n, err);
    }
    if (is_too_late(audit, entry, &subject)) {
        return true;
    }
    repair->repaired += (entry->seen & SEEN_REPAIRED) == 0;
    entry->seen |= SEEN_REPAIRED;
    return publish(repair, frame, accept_id, n, err);
}

// ---- rows of the accept log ----

static bool repair_row(Repair *repair, const PGresult *res, int row, Error *err)
{
    Arena *arena = arena_new(0);
    Frame *frames = NULL;
    size_t count = 0;
    int64_t accept_id = db_get_int(res, row, 0);
    bool ok = frames_unpack(db_get_text(res, row, 1), arena, &frames, &count, err) ||
              error_wrap(err, "accept row %" PRId64, accept_id);
    for (size_t i = 0; ok && i < count; i++) {
        ok = repair_frame(repair, &frames[i], accept_id, i, arena, err);
    }
    arena_free(arena);
    return ok;
}

static bool repair_batch(Repair *repair, Error *err)
{
    if (repair->id_count == 0) {
        return true;
    }
    buf_char(&repair->ids, '}');
    PGresult *res = audit_accept_events(repair->audit, buf_c(&repair->ids), err);
    bool ok = res != NULL;
    for (int row = 0; ok && row < PQntuples(res); row++) {
        ok = repair_row(repair, res, row, err);
    }
    PQclear(res);
    buf_clear(&repair->ids);
    repair->id_count = 0;
    repair->bytes = 0;
    return ok;
}

static bool needs_repair(const Repair *repair, const AcceptPage *page, int row)
{
    Str id;
    for (size_t at = 0; accept_page_next(page, row, &at, &id);) {
        const AuditEntry *entry =
            audit_find(repair->audit->table, id, accept_page_tenant(page, row));
        if (entry != NULL && audit_remedy_of(repair->audit, entry) == REMEDY_DRIVE) {
            return true;
        }
    }
    return false;
}

static bool repair_page(Repair *repair, const AcceptPage *page, Error *err)
{
    bool ok = true;
    for (int row = 0; ok && row < page->rows; row++) {
        if (!needs_repair(repair, page, row)) {
            continue;
        }
        int64_t bytes = accept_page_bytes(page, row);
        if (repair->id_count == BATCH_ROWS || repair->bytes + bytes > BATCH_BYTES) {
            ok = repair_batch(repair, err);
        }
        const char *before = repair->id_count == 0 ? "{" : ",";
        buf_printf(&repair->ids, "%s%" PRId64, before, accept_page_id(page, row));
        repair->id_count++;
        repair->bytes += bytes;
    }
    return ok && repair_batch(repair, err);
}

bool audit_repair(Audit *audit, uint64_t *ret_count, Error *err)
{
    Repair repair = {.audit = audit};
    id_new("run_", clock_now_us(), repair.run);
    buf_init(&repair.ids, BATCH_ROWS * 32);
    bool ok = true;
    int64_t after = -1;
    AcceptPage page = {.rows = 1};
    while (ok && page.rows > 0) {
        ok = audit_accept_page(audit, after, &page, err);
        if (ok && page.rows > 0) {
            ok = repair_page(&repair, &page, err);
            after = accept_page_id(&page, page.rows - 1);
        }
        PQclear(page.res);
    }
    Error late = {0};
    bool stored = await(&repair, &late); // also after a failure: nothing may outlive this frame
    if (ok && !stored) {
        *err = late;
    }
    buf_done(&repair.ids);
    *ret_count = repair.repaired;
    return ok && stored;
}
