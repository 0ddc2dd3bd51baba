// SPDX-License-Identifier: Apache-2.0
#include "common/audit/audit_events.h"

#include "common/codec/event.h"
#include "common/model/enums.h"
#include "stentor/v1/dead.pb-c.h"
#include "stentor/v1/deferred.pb-c.h"
#include "stentor/v1/feed.pb-c.h"
#include "stentor/v1/rendered.pb-c.h"
#include "stentor/v1/request.pb-c.h"
#include "stentor/v1/status.pb-c.h"

typedef struct Seeing {
    AuditTable *table;
    const BusMessage *message;
    const AuditMarks *marks;
    Arena *scratch;
} Seeing;

// ---- what they share ----

static const void *unpack(const Seeing *seeing, const ProtobufCMessageDescriptor *type, Str payload)
{
    return event_unpack(type, payload, seeing->scratch, NULL);
}

static AuditEntry *entry_of(const Seeing *seeing, const Stentor__V1__Meta *meta)
{
    if (meta == NULL) {
        return NULL;
    }
    AuditEntry *entry =
        audit_entry(seeing->table, str_from(meta->notification_id), str_from(meta->tenant));
    int64_t at_us = seeing->message->stored_at_us;
    if (entry != NULL && at_us > entry->moved_us) {
        entry->moved_us = at_us;
    }
    return entry;
}

static bool is_waiting(const Seeing *seeing)
{
    return seeing->message->sequence > seeing->marks->floor;
}

static void note_position(const Seeing *seeing, AuditEntry *entry)
{
    if (seeing->message->sequence > seeing->marks->position) {
        entry->seen |= SEEN_HISTORY_WAITING;
    }
}

static void note_resends(AuditEntry *entry, uint32_t resends)
{
    uint8_t count = resends > UINT8_MAX ? UINT8_MAX : (uint8_t)resends;
    entry->resends = count > entry->resends ? count : entry->resends;
}

// ---- one stream each ----

static void see_request(const Seeing *seeing)
{
    const Stentor__V1__NotificationRequest *event =
        unpack(seeing, &stentor__v1__notification_request__descriptor, seeing->message->payload);
    AuditEntry *entry = event != NULL ? entry_of(seeing, event->meta) : NULL;
    if (entry != NULL) {
        entry->seen |= SEEN_REQUEST | (is_waiting(seeing) ? SEEN_REQUEST_WAITING : 0);
        entry->seen |= event->digest_window_id[0] != '\0' ? SEEN_DIGEST : 0;
        note_position(seeing, entry);
    }
}

static void see_deferred(const Seeing *seeing)
{
    const Stentor__V1__Deferred *event =
        unpack(seeing, &stentor__v1__deferred__descriptor, seeing->message->payload);
    AuditEntry *entry = event != NULL ? entry_of(seeing, event->meta) : NULL;
    if (entry == NULL) {
        return;
    }
    bool retry = event->work_case == STENTOR__V1__DEFERRED__WORK_RENDERED;
    entry->deferred |= retry ? audit_attempt_bit(event->rendered->attempt) : 1;
    entry->seen |= is_waiting(seeing) ? SEEN_DEFERRED_WAITING : 0;
    // The clock moves it then; a time ahead is a wait.
    bool due = event->due_at_us <= seeing->marks->now_us;
    entry->moved_us =
        due && event->due_at_us > entry->moved_us ? event->due_at_us : entry->moved_us;
}

static uint64_t call_bit(int channel)
{
    return channel == STENTOR__V1__CHANNEL__CHANNEL_VOICE ? SEEN_CALL : 0;
}

static void see_rendered(const Seeing *seeing)
{
    const Stentor__V1__Rendered *event =
        unpack(seeing, &stentor__v1__rendered__descriptor, seeing->message->payload);
    AuditEntry *entry = event != NULL ? entry_of(seeing, event->meta) : NULL;
    if (entry != NULL) {
        entry->rendered |= audit_attempt_bit(event->attempt);
        entry->seen |= is_waiting(seeing) ? SEEN_RENDERED_WAITING : 0;
        entry->seen |= call_bit((int)event->channel);
        note_resends(entry, event->resends);
    }
}

static uint64_t bits_of_status(const Stentor__V1__NotificationStatus *event)
{
    switch ((Status)event->status) {
    case STATUS_QUEUED:
        return SEEN_S_QUEUED;
    case STATUS_SCHEDULED:
        return SEEN_S_SCHEDULED;
    case STATUS_SENT:
        return SEEN_S_SENT;
    case STATUS_DELIVERED:
        return SEEN_S_DELIVERED;
    case STATUS_OPENED:
        return SEEN_S_OPENED;
    case STATUS_CLICKED:
        return SEEN_S_CLICKED;
    case STATUS_SUPPRESSED:
    case STATUS_SUPERSEDED:
        // After rendering the dispatcher decides, and its ledger has it too.
        return SEEN_S_ENDED | SEEN_S_SUPPRESSED |
               (event->rendered_at_us > 0 ? SEEN_S_FAILED_LATE : 0);
    case STATUS_FAILED:
        // An attempt of number 0: a vendor's callback about a mail that was sent.
        if (event->attempt != NULL && event->attempt->number == 0) {
            return SEEN_S_ENDED;
        }
        return SEEN_S_ENDED |
               (event->rendered_at_us > 0 ? SEEN_S_FAILED_LATE : SEEN_S_FAILED_EARLY);
    case STATUS_BOUNCED:
    case STATUS_COMPLAINED:
        return SEEN_S_ENDED;
    case STATUS_NONE:
    case STATUS_RENDERING:
    case STATUS_SENDING:
    case STATUS_COUNT:
        break;
    }
    return 0;
}

// Two attempts of one resend generation that a vendor took.
static void note_sent(AuditEntry *entry, uint32_t number, uint32_t resends)
{
    uint8_t attempt = number > UINT8_MAX ? UINT8_MAX : (uint8_t)number;
    uint8_t generation = resends > UINT8_MAX ? UINT8_MAX : (uint8_t)resends;
    if (entry->sent_attempt != 0 && entry->sent_attempt != attempt &&
        entry->sent_resends == generation) {
        entry->seen |= SEEN_S_TWICE;
    }
    entry->sent_attempt = attempt;
    entry->sent_resends = generation;
}

static void see_status(const Seeing *seeing)
{
    const Stentor__V1__NotificationStatus *event =
        unpack(seeing, &stentor__v1__notification_status__descriptor, seeing->message->payload);
    AuditEntry *entry = event != NULL ? entry_of(seeing, event->meta) : NULL;
    if (entry == NULL) {
        return;
    }
    entry->seen |= bits_of_status(event) | call_bit((int)event->channel);
    note_position(seeing, entry);
    note_resends(entry, event->resends);
    // A vendor's callback does not know its attempt (number 0).
    uint32_t number = event->attempt != NULL ? event->attempt->number : 0;
    entry->reported |= audit_attempt_bit(number);
    if (number > 0 && event->status == STENTOR__V1__STATUS__STATUS_SENT) {
        note_sent(entry, number, event->resends);
    }
}

// ---- dead letters ----

static const Stentor__V1__Meta *meta_inside(
    const Seeing *seeing, const Stentor__V1__DeadLetter *letter)
{
    Str payload = pb_bytes(letter->payload);
    Str stream = str_from(letter->stream);
    if (str_starts(stream, STR("RENDERED_"))) {
        const Stentor__V1__Rendered *event =
            unpack(seeing, &stentor__v1__rendered__descriptor, payload);
        return event != NULL ? event->meta : NULL;
    }
    if (str_starts(stream, STR("REQUEST_"))) {
        const Stentor__V1__NotificationRequest *event =
            unpack(seeing, &stentor__v1__notification_request__descriptor, payload);
        return event != NULL ? event->meta : NULL;
    }
    if (str_eq(stream, STR("DEFERRED"))) {
        const Stentor__V1__Deferred *event =
            unpack(seeing, &stentor__v1__deferred__descriptor, payload);
        return event != NULL ? event->meta : NULL;
    }
    if (str_eq(stream, STR("STATUS"))) {
        const Stentor__V1__NotificationStatus *event =
            unpack(seeing, &stentor__v1__notification_status__descriptor, payload);
        return event != NULL ? event->meta : NULL;
    }
    return NULL;
}

static void see_item(const Seeing *seeing)
{
    const Stentor__V1__FeedEvent *event =
        unpack(seeing, &stentor__v1__feed_event__descriptor, seeing->message->payload);
    bool item = event != NULL && event->part_case == STENTOR__V1__FEED_EVENT__PART_ITEM;
    AuditEntry *entry = item ? entry_of(seeing, event->meta) : NULL;
    if (entry != NULL) {
        entry->seen |= SEEN_ITEM;
    }
}

static uint64_t bits_of_letter(const Stentor__V1__DeadLetter *letter)
{
    Str stream = str_from(letter->stream);
    if (str_eq(str_from(letter->stage), STR("archiver"))) {
        return SEEN_DEAD_HISTORY;
    }
    if (str_starts(stream, STR("RENDERED_"))) {
        // An unknown outcome has its row in the ledger; what could not be read has none.
        bool unknown = str_starts(str_from(letter->reason), STR("unknown_outcome"));
        return unknown ? SEEN_DEAD_UNKNOWN : SEEN_DEAD_RENDERED;
    }
    bool early = str_starts(stream, STR("REQUEST_")) || str_eq(stream, STR("DEFERRED"));
    return early ? SEEN_DEAD_EARLY : 0;
}

// A dead letter never makes an entry: its payload may be anything.
static void see_dead(const Seeing *seeing)
{
    const Stentor__V1__DeadLetter *letter =
        unpack(seeing, &stentor__v1__dead_letter__descriptor, seeing->message->payload);
    const Stentor__V1__Meta *meta = letter != NULL ? meta_inside(seeing, letter) : NULL;
    if (meta == NULL) {
        return;
    }
    AuditEntry *entry =
        audit_find(seeing->table, str_from(meta->notification_id), str_from(meta->tenant));
    if (entry != NULL) {
        entry->seen |= bits_of_letter(letter);
        int64_t at_us = seeing->message->stored_at_us;
        entry->moved_us = at_us > entry->moved_us ? at_us : entry->moved_us;
    }
}

void audit_event(
    AuditTable *table, const BusMessage *message, const AuditMarks *marks, Arena *scratch)
{
    Seeing seeing = {table, message, marks, scratch};
    Str stream = str_from(message->stream);
    if (str_starts(stream, STR("REQUEST_"))) {
        see_request(&seeing);
    } else if (str_starts(stream, STR("RENDERED_"))) {
        see_rendered(&seeing);
    } else if (str_eq(stream, STR("STATUS"))) {
        see_status(&seeing);
    } else if (str_eq(stream, STR("DEFERRED"))) {
        see_deferred(&seeing);
    } else if (str_eq(stream, STR("FEED"))) {
        see_item(&seeing);
    } else if (str_eq(stream, STR("DEAD"))) {
        see_dead(&seeing);
    }
}
