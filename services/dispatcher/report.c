// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/report.h"

#include <string.h>

#include "common/bus/events/status_event.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/events/meta.h"
#include "common/events/status.h"
#include "common/model/addresses/calling_prefix.h"
#include "common/vendor/vendor_api.h"
#include "services/dispatcher/vendor/smtp/smtp_reply.h"
#include "services/dispatcher/voice/calls.h"
#include "stentor/v1/deferred.pb-c.h"

// What a mail carries of its earlier attempts.
enum { CARRIED_MAX = 20, CARRIED_TEXT_MAX = 160 };

// "rejected", "retries_exhausted" ...
static const char *reason_code_of(const LedgerRow *row)
{
    if (row->state == LEDGER_DEFERRED) {
        return "retry";
    }
    if (row->state != LEDGER_FAILED) {
        return "";
    }
    if (row->vendor.len == 0) {
        return "undeliverable"; // the row has its own code
    }
    if (row->rung >= 0) {
        return "retries_exhausted";
    }
    const VendorApi *api = vendor_find(row->vendor);
    const VendorReason *said = api != NULL ? vendor_reason(api, row->reply) : NULL;
    if (said != NULL) {
        return said->reason_code;
    }
    int64_t code = 0;
    bool known = str_to_i64(row->code, &code) && code >= 200 && code <= 599;
    bool bad = row->reply_class.len > 0
                   ? str_eq(row->reply_class, STR("bad_address"))
                   : smtp_classify(known ? (int)code : 0, row->enhanced) == REPLY_BAD_ADDRESS;
    return bad ? "invalid_address" : "rejected";
}

static Outcome attempt_outcome(const LedgerRow *row)
{
    if (row->state == LEDGER_SENT) {
        return OUTCOME_ACCEPTED;
    }
    if (row->code.len == 0) {
        return OUTCOME_TIMEOUT;
    }
    bool terminal = row->state == LEDGER_FAILED && row->rung < 0;
    return terminal ? OUTCOME_REJECTED_TERMINAL : OUTCOME_REJECTED_RETRYABLE;
}

static Stentor__V1__Meta follow(const Job *job, const char *event_id)
{
    return meta_follow(job->rendered->meta, event_id, job->row.finished_at_us);
}

static Stentor__V1__Attempt *make_attempt(const LedgerKey *key, const LedgerRow *row, Arena *arena)
{
    Stentor__V1__Attempt *attempt = arena_alloc(arena, sizeof *attempt);
    stentor__v1__attempt__init(attempt);
    char id[ID_SIZE];
    attempt_id_derive(key->notification_id, key->attempt, key->created_at_us, id);
    attempt->attempt_id = arena_cstr(arena, str_from(id));
    attempt->number = (uint32_t)key->attempt;
    attempt->vendor = arena_cstr(arena, row->vendor);
    attempt->vendor_message_id = arena_cstr(arena, row->vendor_message_id);
    attempt->outcome = (Stentor__V1__Outcome)attempt_outcome(row);
    attempt->code = arena_cstr(arena, row->code);
    attempt->enhanced_code = arena_cstr(arena, row->enhanced);
    attempt->text = arena_cstr(arena, row->reply);
    attempt->started_at_us = row->claimed_at_us;
    attempt->finished_at_us = row->finished_at_us;
    attempt->was_unknown = row->unknown_count > 0;
    attempt->credential = arena_cstr(arena, row->credential);
    attempt->segments = row->segments;
    attempt->cost_micros = row->cost_micros;
    attempt->currency = arena_cstr(arena, row->currency);
    return attempt;
}

// The route that led to its vendor, and where it went; a job that only its row is known of does not
// say the latter.
static Stentor__V1__Attempt *make_own_attempt(const Job *job)
{
    Arena *arena = job->delivery->arena;
    Stentor__V1__Attempt *attempt = make_attempt(job->row_key, &job->row, arena);
    const char *route = job->route.routed ? job->route.name : job->rendered->route;
    attempt->route = arena_cstr(arena, str_from(route));
    attempt->calling_code = arena_cstr(arena, calling_prefix(job->mail.to));
    return attempt;
}

static void status_id(const LedgerKey *key, Status status, Arena *arena, char out[EVENT_ID_SIZE])
{
    const char *discriminator = arena_printf(arena, "%s/%d", status_name(status), key->attempt);
    event_id_derive("status", key->notification_id, str_from(discriminator), out);
}

static bool emit_status(Job *job, Status status, Error *err)
{
    Arena *arena = job->delivery->arena;
    const LedgerRow *row = &job->row;
    char event_id[EVENT_ID_SIZE];
    status_id(job->row_key, status, arena, event_id);
    bool own = row->vendor.len == 0;
    Stentor__V1__Meta meta = follow(job, event_id);
    StatusSpec spec = {
        .meta = &meta,
        .status = status,
        .reason_code = own ? arena_cstr(arena, row->code) : reason_code_of(row),
        .reason = status == STATUS_SENT ? "" : arena_cstr(arena, row->reply),
    };
    Stentor__V1__NotificationStatus event = status_of_rendered(&spec, job->rendered);
    event.attempt = own ? NULL : make_own_attempt(job);
    if (status == STATUS_SENT) {
        event.from_domain = arena_cstr(arena, job->from_domain);
        event.provider = arena_cstr(arena, job->provider);
    }
    BusOut out;
    if (!status_event(&event, job->delivery->message.traceparent, arena, &out, err)) {
        return false;
    }
    delivery_emit(job->delivery, &out);
    return true;
}

// ---- the attempts so far ----

static char *cut_text(const char *text, Arena *arena)
{
    size_t end = 0;
    while (end < CARRIED_TEXT_MAX && text[end] != '\0') {
        end++;
    }
    while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80) {
        end--; // where a character begins
    }
    return arena_cstr(arena, str_of(text, end));
}

// Earlier attempts and this one, oldest first; their replies are cut, so that 20 of them stay
// small.
static void carry_attempts(Job *job, Stentor__V1__Rendered *next)
{
    Arena *arena = job->delivery->arena;
    const Stentor__V1__Rendered *rendered = job->rendered;
    size_t kept = rendered->n_attempts < CARRIED_MAX - 1 ? rendered->n_attempts : CARRIED_MAX - 1;
    Stentor__V1__Attempt **attempts = arena_array(arena, kept + 1, sizeof *attempts);
    for (size_t i = 0; i < kept; i++) {
        attempts[i] = rendered->attempts[rendered->n_attempts - kept + i];
    }
    attempts[kept] = make_own_attempt(job);
    for (size_t i = 0; i <= kept; i++) {
        attempts[i]->text = cut_text(attempts[i]->text, arena);
    }
    next->attempts = attempts;
    next->n_attempts = kept + 1;
}

// A mail near the size limit goes on without its oldest attempts rather than not at all.
static bool pack_deferred(
    Stentor__V1__Deferred *event, Stentor__V1__Rendered *next, Arena *arena, Str *ret, Error *err)
{
    while (next->n_attempts > 0 &&
           protobuf_c_message_get_packed_size(&event->base) > EVENT_BYTES_MAX) {
        next->attempts++;
        next->n_attempts--;
    }
    return event_pack(&event->base, arena, ret, err);
}

static Str pack_attempt(Job *job)
{
    Arena *arena = job->delivery->arena;
    Str packed = STR_EMPTY;
    const Stentor__V1__Attempt *attempt = make_own_attempt(job);
    return event_pack(&attempt->base, arena, &packed, NULL) ? packed : STR_EMPTY;
}

static void avoid(Stentor__V1__Rendered *next, const char *vendor, Arena *arena)
{
    if (vendor[0] == '\0') {
        return;
    }
    char **vendors = arena_array(arena, next->n_avoid_vendors + 1, sizeof *vendors);
    size_t count = 0;
    for (size_t i = 0; i < next->n_avoid_vendors; i++) {
        if (strcmp(next->avoid_vendors[i], vendor) != 0) {
            vendors[count++] = next->avoid_vendors[i];
        }
    }
    vendors[count++] = arena_cstr(arena, str_from(vendor));
    next->avoid_vendors = vendors;
    next->n_avoid_vendors = count;
}

// What the next attempt has to know of the vendors that were tried. Of the row alone, so that a
// redelivery says the same.
static void carry_route(const Job *job, Stentor__V1__Rendered *next)
{
    Arena *arena = job->delivery->arena;
    const LedgerRow *row = &job->row;
    const char *vendor = arena_cstr(arena, row->vendor);
    if (str_eq(row->next_step, STR("fallback"))) {
        avoid(next, vendor, arena);
    } else if (str_eq(row->next_step, STR("asked"))) {
        next->unknown_asked++;
        next->unknown_unclear = next->unknown_unclear || str_eq(row->code, STR("unclear"));
    } else if (str_eq(row->next_step, STR("absent"))) {
        next->unknown_vendor = arena_cstr(arena, STR_EMPTY);
        next->unknown_at_us = 0;
    } else if (str_eq(row->next_step, STR("settle"))) {
        bool same = str_eq(str_from(next->unknown_key), row->vendor_key) && next->unknown_at_us > 0;
        if (strcmp(next->unknown_vendor, vendor) != 0) {
            avoid(next, next->unknown_vendor, arena); // failed over from there
        }
        next->unknown_at_us = same ? next->unknown_at_us : row->claimed_at_us;
        next->unknown_asked = same ? next->unknown_asked : 0;
        next->unknown_unclear = same && next->unknown_unclear;
        next->unknown_vendor = (char *)(uintptr_t)vendor;
        next->unknown_credential = arena_cstr(arena, row->credential);
        next->unknown_key = arena_cstr(arena, row->vendor_key);
    }
    if (job->route.routed) {
        next->route = arena_cstr(arena, str_from(job->route.name));
    }
}

// The next attempt, whole: digest-flusher only waits and passes it on.
static bool emit_deferred(Job *job, Error *err)
{
    Arena *arena = job->delivery->arena;
    Stentor__V1__Rendered next = *job->rendered;
    next.attempt = job->rendered->attempt + 1;
    next.rung = (uint32_t)(job->row.rung < 0 ? 0 : job->row.rung);
    carry_attempts(job, &next);
    carry_route(job, &next);
    if (job->row.state == LEDGER_SENT) {
        calls_follow(job, &next);
    }
    char event_id[EVENT_ID_SIZE];
    char rendered_id[EVENT_ID_SIZE];
    const char *number = arena_printf(arena, "%u", next.attempt);
    event_id_derive("rendered", job->key->notification_id, str_from(number), rendered_id);
    Stentor__V1__Meta next_meta = follow(job, rendered_id);
    meta_keep_trace(&next_meta, job->delivery->message.traceparent, arena);
    next.meta = &next_meta;
    event_id_derive(
        "deferred", job->key->notification_id, str_from(arena_printf(arena, "retry/%s", number)),
        event_id);
    Stentor__V1__Deferred event;
    stentor__v1__deferred__init(&event);
    Stentor__V1__Meta meta = follow(job, event_id);
    event.meta = &meta;
    event.reason = pb_borrow("retry");
    event.due_at_us = job->row.due_at_us;
    event.work_case = STENTOR__V1__DEFERRED__WORK_RENDERED;
    event.rendered = &next;
    event.last_error = arena_cstr(arena, job->row.reply);
    Str payload;
    if (!pack_deferred(&event, &next, arena, &payload, err)) {
        return false;
    }
    char subject[SUBJECT_SIZE];
    subject_deferred(subject, "retry", job->key->tenant);
    BusOut out = {
        .subject = subject,
        .event_id = str_from(event_id),
        .payload = payload,
        .traceparent = job->delivery->message.traceparent,
    };
    delivery_emit(job->delivery, &out);
    return true;
}

bool report_is_barred(const LedgerRow *row)
{
    SuppressionReason reason = SUPPRESSION_NONE;
    return row->vendor.len == 0 && !str_eq(row->code, STR("invalid_address")) &&
           (str_eq(row->code, STR("tenant_suspended")) ||
            str_eq(row->code, str_from(suppression_reason_name(SUPPRESSION_UNREADABLE))) ||
            suppression_reason_from_name(row->code, &reason));
}

// A failure is an operator's to look at, and to send again. Not what a policy decided: a barred
// mail has a letter only when an operator has sent it again, for it had one before. No
// operator can mend an expired one or bring back an erased recipient. A function of the row, so
// that the same letter follows from it when the process died before it was stored.
static bool has_letter(const Job *job)
{
    const LedgerRow *row = &job->row;
    if (row->vendor.len > 0 || row->rung >= 0) {
        return true;
    }
    return str_eq(row->code, STR("invalid_address")) ||
           (report_is_barred(row) && job->rendered->resends > 0);
}

static bool report_failed(Job *job, Error *ret_verdict, Error *err)
{
    const LedgerRow *row = &job->row;
    if (has_letter(job)) {
        Str code = row->vendor.len == 0 ? row->code : str_from(reason_code_of(row));
        error_set(
            ret_verdict, ERROR_PERMANENT, STR_FMT ": " STR_FMT, STR_ARG(code), STR_ARG(row->reply));
        job->delivery->last_attempt = row->vendor.len == 0 ? STR_EMPTY : pack_attempt(job);
        job->delivery->reason_code = code;
    }
    return emit_status(job, report_is_barred(row) ? STATUS_SUPPRESSED : STATUS_FAILED, err);
}

bool report(Job *job, Error *ret_verdict, Error *err)
{
    error_clear(ret_verdict);
    switch (job->row.state) {
    case LEDGER_SENT:
        return emit_status(job, STATUS_SENT, err) &&
               (!calls_are_planned(job) || emit_deferred(job, err));
    case LEDGER_FAILED:
        return report_failed(job, ret_verdict, err);
    case LEDGER_DEFERRED:
        // The attempt is published too ("sending", with its reply), so history shows why a mail is
        // late.
        return emit_status(job, STATUS_SENDING, err) && emit_deferred(job, err);
    case LEDGER_PARKED:
        job->delivery->last_attempt = pack_attempt(job);
        error_set(
            ret_verdict, ERROR_PERMANENT,
            "unknown_outcome: this mail may have been sent, and no answer says whether; parked, as "
            "STENTOR_DISPATCHER_UNKNOWN or its route says (HINT: stentor dlq resend or stentor dlq "
            "drop)");
        return true;
    case LEDGER_NONE:
    case LEDGER_CLAIMED:
        break;
    }
    return error_set(
        err, ERROR_PERMANENT, "a row in state '%s' has no outcome",
        ledger_state_name(job->row.state));
}

bool report_settled(
    Delivery *delivery, const Stentor__V1__NotificationStatus *proof, const LedgerKey *key,
    const LedgerRow *row, Error *err)
{
    Arena *arena = delivery->arena;
    char event_id[EVENT_ID_SIZE];
    status_id(key, STATUS_SENT, arena, event_id);
    Stentor__V1__Meta meta = meta_follow(proof->meta, event_id, row->finished_at_us);
    StatusSpec spec = {.meta = &meta, .status = STATUS_SENT};
    Stentor__V1__NotificationStatus event = status_make(&spec, (Channel)proof->channel);
    event.resends = proof->resends;
    event.attempt = make_attempt(key, row, arena);
    BusOut out;
    if (!status_event(&event, delivery->message.traceparent, arena, &out, err)) {
        return false;
    }
    delivery_emit(delivery, &out);
    return true;
}
