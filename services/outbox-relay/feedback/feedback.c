// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/feedback/feedback.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/id.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/domain/domain_event.h"
#include "common/model/retention/retention.h"
#include "common/model/status.h"
#include "stentor/v1/dead.pb-c.h"
#include "stentor/v1/request.pb-c.h"
#include "stentor/v1/status.pb-c.h"

// Ranks, lowest first: ingest rejected the command (if it accepts a later copy, every status of
// that ranks higher); each failed attempt; the mail was sent; it failed or bounced. A resend by an
// operator ranks above everything before it. A vendor's callback does not know of resends and ranks
// highest.
enum {
    RANK_REFUSED = 1,
    RANK_RETRYING = 2, // plus the attempt's number
    ATTEMPT_MAX = 32767,
    RANK_SENT = 40000,
    RANK_FAILED = 40001,
    RANK_RESEND = 100000,
    RESENDS_MAX = 300, // as in the archiver
    CAPACITY_FIRST = 256,
    REASON_MAX = 1000,
    REASON_BYTES = 64 * 1024, // of these so many are kept
};

#define TIME_MAX_US INT64_C(253402300800000000) // 10000-01-01

struct Feedback {
    FeedbackEntry *entries;
    size_t count;
    size_t capacity;
    uint32_t *slots; // position + 1; open addressing, never more than half full
    size_t mask;
    int index[FEEDBACK_COUNT]; // statements of the last feedback_write; -1: not in it
};

const char *feedback_name(FeedbackMoment moment)
{
    switch (moment) {
    case FEEDBACK_RETRYING:
        return "retrying";
    case FEEDBACK_SENT:
        return "sent";
    case FEEDBACK_FAILED:
        return "failed";
    case FEEDBACK_COUNT:
        break;
    }
    return "";
}

// ---- the entries of a flush ----

static size_t slot_of(const Feedback *feedback, Str id)
{
    size_t slot = (size_t)str_hash(id) & feedback->mask;
    while (feedback->slots[slot] != 0 &&
           !str_eq(feedback->entries[feedback->slots[slot] - 1].notification_id, id)) {
        slot = (slot + 1) & feedback->mask;
    }
    return slot;
}

static void grow(Feedback *feedback)
{
    feedback->capacity = feedback->capacity > 0 ? 2 * feedback->capacity : CAPACITY_FIRST;
    feedback->entries =
        xrealloc(feedback->entries, feedback->capacity * sizeof(*feedback->entries));
    free(feedback->slots);
    feedback->slots = xcalloc(2 * feedback->capacity, sizeof(*feedback->slots));
    feedback->mask = 2 * feedback->capacity - 1;
    for (size_t i = 0; i < feedback->count; i++) {
        feedback->slots[slot_of(feedback, feedback->entries[i].notification_id)] =
            (uint32_t)(i + 1);
    }
}

static void put_entry(Feedback *feedback, const FeedbackEntry *entry)
{
    if (feedback->count == feedback->capacity) {
        grow(feedback);
    }
    size_t slot = slot_of(feedback, entry->notification_id);
    if (feedback->slots[slot] == 0) {
        feedback->entries[feedback->count++] = *entry;
        feedback->slots[slot] = (uint32_t)feedback->count;
        return;
    }
    FeedbackEntry *known = &feedback->entries[feedback->slots[slot] - 1];
    if (entry->rank > known->rank) {
        *known = *entry;
    }
}

Feedback *feedback_new(void)
{
    Feedback *feedback = xcalloc(1, sizeof(*feedback));
    grow(feedback);
    return feedback;
}

void feedback_free(Feedback *feedback)
{
    if (feedback == NULL) {
        return;
    }
    free(feedback->entries);
    free(feedback->slots);
    free(feedback);
}

void feedback_clear(Feedback *feedback)
{
    feedback->count = 0;
    memset(feedback->slots, 0, (feedback->mask + 1) * sizeof(*feedback->slots));
}

const FeedbackEntry *feedback_entries(const Feedback *feedback, size_t *ret_count)
{
    *ret_count = feedback->count;
    return feedback->entries;
}

// ---- STATUS ----

// A column cannot store NUL; a longer reason adds nothing.
static Str clean_reason(Str reason)
{
    if (reason.len <= REASON_MAX) {
        return reason;
    }
    size_t end = 0;
    for (size_t step = 1; step > 0; end += step) {
        step = str_utf8_step(str_slice(reason, end, reason.len));
        if (end + step > REASON_MAX) {
            break;
        }
    }
    return str_slice(reason, 0, end);
}

static void add_part(Buf *out, const char *part)
{
    if (part[0] != '\0') {
        buf_printf(out, "%s%s", out->len > 0 ? ": " : "", part);
    }
}

// "suppressed: opt_out", "rejected: 554 no": status, reason code, text of the vendor.
static Str reason_of(const Stentor__V1__NotificationStatus *event, Arena *arena)
{
    Buf out;
    buf_init(&out, REASON_BYTES);
    Status status = (Status)event->status;
    bool named = status == STATUS_SUPPRESSED || status == STATUS_BOUNCED;
    add_part(&out, named ? status_name(status) : "");
    add_part(&out, event->reason_code);
    add_part(&out, event->reason);
    Str reason = clean_reason(arena_str(arena, buf_view(&out)));
    buf_done(&out);
    return reason;
}

// From a vendor's callback, which knows neither attempt nor resend.
static bool is_callback(const Stentor__V1__NotificationStatus *event)
{
    Status status = (Status)event->status;
    bool failed_there =
        status == STATUS_FAILED && event->attempt != NULL && event->attempt->number == 0;
    return failed_there || status_is_from_vendor(status);
}

// false: the status has no moment.
static bool read_moment(const Stentor__V1__NotificationStatus *event, FeedbackEntry *entry)
{
    uint32_t attempt = event->attempt != NULL ? event->attempt->number : 0;
    int32_t number = (int32_t)(attempt < ATTEMPT_MAX ? attempt : ATTEMPT_MAX);
    switch ((Status)event->status) {
    case STATUS_SENDING: // an attempt that failed for now
        if (number == 0) {
            return false;
        }
        entry->moment = FEEDBACK_RETRYING;
        entry->rank = RANK_RETRYING + number;
        entry->attempts = number;
        return true;
    case STATUS_SENT:
    case STATUS_DELIVERED:
    case STATUS_OPENED:
    case STATUS_CLICKED:
    case STATUS_COMPLAINED: // it was delivered, and the recipient complained
    case STATUS_SUPERSEDED: // it went out in a digest
        entry->moment = FEEDBACK_SENT;
        entry->rank = RANK_SENT;
        entry->attempts = number > 0 ? number - 1 : 0;
        return true;
    case STATUS_SUPPRESSED:
    case STATUS_FAILED:
    case STATUS_BOUNCED:
        entry->moment = FEEDBACK_FAILED;
        entry->rank = RANK_FAILED;
        entry->attempts = number;
        return true;
    case STATUS_NONE:
    case STATUS_QUEUED:
    case STATUS_SCHEDULED:
    case STATUS_RENDERING:
    case STATUS_COUNT:
        break;
    }
    return false;
}

static void fold_status(Feedback *feedback, const BusMessage *message, Arena *arena)
{
    const Stentor__V1__NotificationStatus *event =
        (const Stentor__V1__NotificationStatus *)event_unpack(
            &stentor__v1__notification_status__descriptor, message->payload, arena, NULL);
    FeedbackEntry entry = {0};
    if (event == NULL || event->meta == NULL || !read_moment(event, &entry) ||
        !id_parse(str_from(event->meta->notification_id), "ntf_", NULL)) {
        return;
    }
    char *id = arena_cstr(arena, str_from(event->meta->notification_id));
    retention_id_set_code(id, RETENTION_CODE_ANY); // as the relay noted it
    entry.notification_id = str_from(id);
    uint32_t resends = event->resends < RESENDS_MAX ? event->resends : RESENDS_MAX - 1;
    entry.rank += RANK_RESEND * (is_callback(event) ? RESENDS_MAX : (int32_t)resends);
    entry.reason = entry.moment == FEEDBACK_SENT ? STR_EMPTY : reason_of(event, arena);
    int64_t at_us = event->meta->occurred_at_us;
    entry.at_us = at_us > 0 && at_us < TIME_MAX_US ? at_us : message->stored_at_us;
    put_entry(feedback, &entry);
}

// ---- dead letters of ingest ----

static bool is_command_dead_letter(const Stentor__V1__DeadLetter *letter)
{
    return letter->meta != NULL && strcmp(letter->stage, "ingest") == 0 &&
           strcmp(letter->stream, "EVENTS") == 0 &&
           str_ends(str_from(letter->subject), STR(".notify")) &&
           letter->meta->causation_id[0] != '\0';
}

// The command is sealed for ingest; in a letter of an earlier release it is in clear.
static int64_t command_time(const Stentor__V1__DeadLetter *letter, Arena *arena)
{
    if (letter->produced_at_us != 0) {
        return letter->produced_at_us;
    }
    const Stentor__V1__NotifyCommand *command = (const Stentor__V1__NotifyCommand *)event_unpack(
        &stentor__v1__notify_command__descriptor, pb_bytes(letter->payload), arena, NULL);
    return command != NULL ? command->produced_at_us : 0;
}

// A command that ingest rejects has no notification and so no status; its id is derived as ingest
// would have derived it.
static void fold_command(
    Feedback *feedback, const Stentor__V1__DeadLetter *letter, Arena *arena, int64_t at_us)
{
    int64_t produced_at_us = command_time(letter, arena);
    if (produced_at_us == 0) {
        return; // not from a relay
    }
    char *id = arena_alloc(arena, ID_SIZE);
    Str tenant = str_from(letter->meta->tenant);
    Str own = domain_own_id(tenant, STR("notify"), str_from(letter->meta->causation_id));
    notify_id_derive(tenant, own, produced_at_us, RETENTION_CODE_ANY, id);
    const FeedbackEntry entry = {
        .notification_id = str_from(id),
        .moment = FEEDBACK_FAILED,
        .rank = RANK_REFUSED,
        .reason = clean_reason(str_from(letter->reason)),
        .at_us = at_us,
    };
    put_entry(feedback, &entry);
}

void feedback_fold(Feedback *feedback, const BusMessage *message, Arena *arena)
{
    if (str_eq(str_from(message->stream), STR("DEAD"))) {
        const Stentor__V1__DeadLetter *letter = (const Stentor__V1__DeadLetter *)event_unpack(
            &stentor__v1__dead_letter__descriptor, message->payload, arena, NULL);
        if (letter != NULL && is_command_dead_letter(letter)) {
            fold_command(feedback, letter, arena, message->stored_at_us);
        }
    } else {
        fold_status(feedback, message, arena);
    }
}

// ---- writing ----

typedef struct Columns {
    DbArray *ids, *states, *ranks, *attempts, *reasons, *times;
} Columns;

static Columns add_columns(DbParams *p)
{
    return (Columns){
        .ids = db_array(p, DB_TEXT),
        .states = db_array(p, DB_TEXT),
        .ranks = db_array(p, DB_I32),
        .attempts = db_array(p, DB_I32),
        .reasons = db_array(p, DB_TEXT),
        .times = db_array(p, DB_TIME),
    };
}

static void push_entry(const Columns *c, const FeedbackEntry *entry)
{
    db_push_text(c->ids, entry->notification_id);
    db_push_text(c->states, str_from(feedback_name(entry->moment)));
    db_push_int(c->ranks, entry->rank);
    db_push_int(c->attempts, entry->attempts);
    if (entry->reason.len > 0) {
        db_push_text(c->reasons, entry->reason);
    } else {
        db_push_null(c->reasons);
    }
    db_push_time(c->times, entry->at_us);
}

static void write_moment(
    Feedback *feedback, FeedbackMoment moment, const DbStatement *statement, DbTxn *txn)
{
    feedback->index[moment] = -1;
    Columns columns = {0};
    for (size_t i = 0; i < feedback->count; i++) {
        if (feedback->entries[i].moment != moment) {
            continue;
        }
        if (columns.ids == NULL) {
            columns = add_columns(db_txn_add(txn, statement, &feedback->index[moment]));
        }
        push_entry(&columns, &feedback->entries[i]);
    }
}

void feedback_write(Feedback *feedback, const RelaySql *sql, bool aside, DbTxn *txn)
{
    if (feedback->count > 0) {
        db_txn_add(txn, &sql->plan, NULL);
    }
    for (int moment = 0; moment < FEEDBACK_COUNT; moment++) {
        write_moment(
            feedback, (FeedbackMoment)moment, aside ? &sql->feedback_aside : &sql->feedback, txn);
    }
}

void feedback_counts(const Feedback *feedback, DbTxn *txn, size_t ret_counts[FEEDBACK_COUNT])
{
    for (int moment = 0; moment < FEEDBACK_COUNT; moment++) {
        bool in_it = feedback->count > 0 && feedback->index[moment] >= 0;
        ret_counts[moment] =
            in_it ? (size_t)db_get_int(db_txn_result(txn, feedback->index[moment]), 0, 0) : 0;
    }
}
