// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/feedback/told.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/id.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/model/status.h"
#include "stentor/v1/dead.pb-c.h"
#include "stentor/v1/request.pb-c.h"
#include "stentor/v1/status.pb-c.h"

// Ranks, lowest first: ingest refused the command (if it is accepted after all, all else is newer);
// each failed attempt; the mail was taken; it ended otherwise, or came back. A later life of the
// mail (a person had it sent again) ranks above every earlier one, and what a vendor reports of the
// mail, which does not know of lives, above all.
enum {
    RANK_REFUSED = 1,
    RANK_RETRYING = 2, // plus the attempt's number
    ATTEMPT_MAX = 32767,
    RANK_SENT = 40000,
    RANK_FAILED = 40001,
    RANK_LIFE = 100000,
    LIVES_MAX = 300, // as the archiver's
    CAPACITY_FIRST = 256,
    REASON_MAX = 1000,
    REASON_BYTES = 64 * 1024, // of which so many are kept
};

#define TIME_MAX_US INT64_C(253402300800000000) // 10000-01-01

struct Told {
    ToldWord *words;
    size_t count;
    size_t capacity;
    uint32_t *slots; // position + 1; open addressing, never more than half full
    size_t mask;
    int index[TOLD_COUNT]; // statements of the last told_write; -1: not in it
};

const char *told_name(ToldMoment moment)
{
    switch (moment) {
    case TOLD_RETRYING:
        return "retrying";
    case TOLD_SENT:
        return "sent";
    case TOLD_FAILED:
        return "failed";
    case TOLD_COUNT:
        break;
    }
    return "";
}

// ---- the words of a flush ----

static size_t slot_of(const Told *told, Str id)
{
    size_t slot = (size_t)str_hash(id) & told->mask;
    while (told->slots[slot] != 0 &&
           !str_eq(told->words[told->slots[slot] - 1].notification_id, id)) {
        slot = (slot + 1) & told->mask;
    }
    return slot;
}

static void grow(Told *told)
{
    told->capacity = told->capacity > 0 ? 2 * told->capacity : CAPACITY_FIRST;
    told->words = xrealloc(told->words, told->capacity * sizeof(*told->words));
    free(told->slots);
    told->slots = xcalloc(2 * told->capacity, sizeof(*told->slots));
    told->mask = 2 * told->capacity - 1;
    for (size_t i = 0; i < told->count; i++) {
        told->slots[slot_of(told, told->words[i].notification_id)] = (uint32_t)(i + 1);
    }
}

static void put_word(Told *told, const ToldWord *word)
{
    if (told->count == told->capacity) {
        grow(told);
    }
    size_t slot = slot_of(told, word->notification_id);
    if (told->slots[slot] == 0) {
        told->words[told->count++] = *word;
        told->slots[slot] = (uint32_t)told->count;
        return;
    }
    ToldWord *known = &told->words[told->slots[slot] - 1];
    if (word->rank > known->rank) {
        *known = *word;
    }
}

Told *told_new(void)
{
    Told *told = xcalloc(1, sizeof(*told));
    grow(told);
    return told;
}

void told_free(Told *told)
{
    if (told == NULL) {
        return;
    }
    free(told->words);
    free(told->slots);
    free(told);
}

void told_clear(Told *told)
{
    told->count = 0;
    memset(told->slots, 0, (told->mask + 1) * sizeof(*told->slots));
}

const ToldWord *told_words(const Told *told, size_t *ret_count)
{
    *ret_count = told->count;
    return told->words;
}

// ---- STATUS ----

// A column takes no NUL, and a long reason helps nobody.
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

// "suppressed: opt_out", "rejected: 554 no": what it is, why, in whose words.
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

// Heard from a vendor, which knows no attempt and no life.
static bool is_callback(const Stentor__V1__NotificationStatus *event)
{
    Status status = (Status)event->status;
    bool failed_there =
        status == STATUS_FAILED && event->attempt != NULL && event->attempt->number == 0;
    return failed_there || status_is_heard_back(status);
}

// false: the status says nothing that a row wants to know.
static bool read_moment(const Stentor__V1__NotificationStatus *event, ToldWord *word)
{
    uint32_t attempt = event->attempt != NULL ? event->attempt->number : 0;
    int32_t number = (int32_t)(attempt < ATTEMPT_MAX ? attempt : ATTEMPT_MAX);
    switch ((Status)event->status) {
    case STATUS_SENDING: // an attempt that failed for now
        if (number == 0) {
            return false;
        }
        word->moment = TOLD_RETRYING;
        word->rank = RANK_RETRYING + number;
        word->attempts = number;
        return true;
    case STATUS_SENT:
    case STATUS_DELIVERED:
    case STATUS_OPENED:
    case STATUS_CLICKED:
    case STATUS_COMPLAINED: // it was delivered, to somebody who did not want it
    case STATUS_SUPERSEDED: // it went out in a digest
        word->moment = TOLD_SENT;
        word->rank = RANK_SENT;
        word->attempts = number > 0 ? number - 1 : 0;
        return true;
    case STATUS_SUPPRESSED:
    case STATUS_FAILED:
    case STATUS_BOUNCED:
        word->moment = TOLD_FAILED;
        word->rank = RANK_FAILED;
        word->attempts = number;
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

static void fold_status(Told *told, const BusMessage *message, Arena *arena)
{
    const Stentor__V1__NotificationStatus *event =
        (const Stentor__V1__NotificationStatus *)event_unpack(
            &stentor__v1__notification_status__descriptor, message->payload, arena, NULL);
    ToldWord word = {0};
    if (event == NULL || event->meta == NULL || !read_moment(event, &word) ||
        !id_parse(str_from(event->meta->notification_id), "ntf_", NULL)) {
        return;
    }
    word.notification_id = str_from(event->meta->notification_id);
    uint32_t life = event->resends < LIVES_MAX ? event->resends : LIVES_MAX - 1;
    word.rank += RANK_LIFE * (is_callback(event) ? LIVES_MAX : (int32_t)life);
    word.reason = word.moment == TOLD_SENT ? STR_EMPTY : reason_of(event, arena);
    int64_t at_us = event->meta->occurred_at_us;
    word.at_us = at_us > 0 && at_us < TIME_MAX_US ? at_us : message->stored_at_us;
    put_word(told, &word);
}

// ---- dead letters of ingest ----

static bool is_command_letter(const Stentor__V1__DeadLetter *letter)
{
    return letter->meta != NULL && strcmp(letter->stage, "ingest") == 0 &&
           strcmp(letter->stream, "EVENTS") == 0 &&
           str_ends(str_from(letter->subject), STR(".notify")) &&
           letter->meta->causation_id[0] != '\0';
}

// A command that ingest refuses has no notification and so no status; its id is the one that it
// would have had.
static void fold_command(
    Told *told, const Stentor__V1__DeadLetter *letter, Arena *arena, int64_t at_us)
{
    const Stentor__V1__NotifyCommand *command = (const Stentor__V1__NotifyCommand *)event_unpack(
        &stentor__v1__notify_command__descriptor, pb_bytes(letter->payload), arena, NULL);
    if (command == NULL || command->produced_at_us == 0) {
        return; // not one of a relay's
    }
    char *id = arena_alloc(arena, ID_SIZE);
    notify_id_derive(
        str_from(letter->meta->tenant), str_from(letter->meta->causation_id),
        command->produced_at_us, id);
    const ToldWord word = {
        .notification_id = str_from(id),
        .moment = TOLD_FAILED,
        .rank = RANK_REFUSED,
        .reason = clean_reason(str_from(letter->reason)),
        .at_us = at_us,
    };
    put_word(told, &word);
}

void told_fold(Told *told, const BusMessage *message, Arena *arena)
{
    if (str_eq(str_from(message->stream), STR("DEAD"))) {
        const Stentor__V1__DeadLetter *letter = (const Stentor__V1__DeadLetter *)event_unpack(
            &stentor__v1__dead_letter__descriptor, message->payload, arena, NULL);
        if (letter != NULL && is_command_letter(letter)) {
            fold_command(told, letter, arena, message->stored_at_us);
        }
    } else {
        fold_status(told, message, arena);
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

static void push_word(const Columns *c, const ToldWord *word)
{
    db_push_text(c->ids, word->notification_id);
    db_push_text(c->states, str_from(told_name(word->moment)));
    db_push_int(c->ranks, word->rank);
    db_push_int(c->attempts, word->attempts);
    if (word->reason.len > 0) {
        db_push_text(c->reasons, word->reason);
    } else {
        db_push_null(c->reasons);
    }
    db_push_time(c->times, word->at_us);
}

static void write_moment(Told *told, ToldMoment moment, const DbStatement *statement, DbTxn *txn)
{
    told->index[moment] = -1;
    Columns columns = {0};
    for (size_t i = 0; i < told->count; i++) {
        if (told->words[i].moment != moment) {
            continue;
        }
        if (columns.ids == NULL) {
            columns = add_columns(db_txn_add(txn, statement, &told->index[moment]));
        }
        push_word(&columns, &told->words[i]);
    }
}

void told_write(Told *told, const RelaySql *sql, bool aside, DbTxn *txn)
{
    if (told->count > 0) {
        db_txn_add(txn, &sql->plan, NULL);
    }
    for (int moment = 0; moment < TOLD_COUNT; moment++) {
        write_moment(told, (ToldMoment)moment, aside ? &sql->told_aside : &sql->told, txn);
    }
}

void told_counts(const Told *told, DbTxn *txn, size_t ret_counts[TOLD_COUNT])
{
    for (int moment = 0; moment < TOLD_COUNT; moment++) {
        bool in_it = told->count > 0 && told->index[moment] >= 0;
        ret_counts[moment] =
            in_it ? (size_t)db_get_int(db_txn_result(txn, told->index[moment]), 0, 0) : 0;
    }
}
