// SPDX-License-Identifier: Apache-2.0
// The history fold: events in, rows in memory out. Pure: no database, no clock, no loop;
// history_sql.h writes the rows. Law: each column merges by a maximum or a minimum (the status by
// its rank, with the reason that came with it), so the rows are the same in whatever order events
// of different streams come, and however often. The database merges with what it has by the same
// rules. An absent value is the empty slice or time 0, and loses against any other.
//
// Resend generations: each resend by an operator starts one (NotificationStatus.resends), and a
// status of a later generation wins over any of an earlier one. What a vendor reports (delivered,
// opened, clicked, bounced, complained, or failed with an attempt of number 0) is about the mail
// and not about one generation, and comes after it was sent: it wins over whatever we published
// ourselves.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/model/enums.h"

enum {
    FOLD_FIELD_MAX = 4096,    // bytes of one text or blob; a longer one is PERMANENT
    FOLD_ATTEMPT_MAX = 32767, // the column is a smallint
    FOLD_RESENDS_MAX = 299,   // status_rank is a smallint; more is PERMANENT
    FOLD_RESEND_RANKS = 100,  // between the ranks of one resend generation and those of the next
    FOLD_CALLBACK_RESENDS = FOLD_RESENDS_MAX + 1,
    FOLD_RIPE_MAX = 500,       // held rows of one flush: a transaction names 4,096 tenants
    FOLD_AGE_MAX_MONTHS = 120, // of an id when its event was stored; an older one is PERMANENT
};

// clang-format off
typedef enum FoldText {
    FOLD_CHANNEL, FOLD_CATEGORY, FOLD_PRIORITY, FOLD_TEMPLATE, FOLD_TEMPLATE_VERSION, FOLD_LOCALE, FOLD_RECIPIENT,
    FOLD_CORRELATION, FOLD_SOURCE_EVENT, FOLD_SOURCE_TYPE, FOLD_BATCH,
    FOLD_DIGEST, FOLD_COPY_OF, FOLD_FROM_DOMAIN, FOLD_PROVIDER, FOLD_GATE_TRACE, FOLD_ADDRESS_HASH, FOLD_ADDRESS, FOLD_CHECKSUM,
    FOLD_TEXT_COUNT
} FoldText;

typedef enum FoldTime {
    FOLD_SCHEDULED_FOR, FOLD_EXPIRES, FOLD_QUEUED, FOLD_SCHEDULED, FOLD_RENDERED, FOLD_SENT, FOLD_DELIVERED,
    FOLD_OPENED, FOLD_CLICKED, FOLD_ENDED,
    FOLD_TIME_COUNT
} FoldTime;
// clang-format on

typedef struct AttemptRow AttemptRow;

// One notification. Slices point into the arena that was given to fold_event.
typedef struct HistoryRow {
    Str tenant;
    Str id;
    int64_t created_at_us; // the time in the id
    Status status;
    int32_t rank;    // status_rank of the status + FOLD_RESEND_RANKS * its resends
    Str reason_code; // of the status that won
    Str reason;
    Str text[FOLD_TEXT_COUNT];
    int64_t at_us[FOLD_TIME_COUNT];
    AttemptRow *attempts; // of this flush; chained by `next`
} HistoryRow;

// What an attempt costs and by what its price is found. Each merges by itself, the greater one
// stays; the amount with its currency. So a vendor's callback, which says no more of the attempt,
// adds to it whenever it comes.
typedef struct AttemptCost {
    uint32_t segments;
    int64_t micros; // as the vendor says, millionths of `currency`; 0: it does not
    Str currency;
    Str calling_code;   // "43"
    Str price_category; // "marketing", "free" ...
} AttemptCost;

// One attempt. Two rows of the same attempt: the greater one stays whole but for its cost, by the
// fields in their order from `outcome`.
struct AttemptRow {
    AttemptRow *next;
    const HistoryRow *row; // tenant, notification, created_at, channel
    int32_t number;
    Outcome outcome;
    bool was_unknown;
    int64_t finished_at_us;
    int64_t started_at_us;
    Str id; // "dat_..."
    Str vendor;
    Str vendor_message_id;
    Str code;
    Str enhanced_code;
    Str reply;
    int32_t retry_after_ms; // as the vendor asked; 0: it did not
    Str credential;         // its name; empty: the vendor has none
    Str route;              // empty: none led to it
    AttemptCost cost;
};

typedef struct Fold Fold;
typedef struct Hold Hold;

// Grows with the events between two fold_clear: their number is the projector's flush_max and one
// batch of its readers.
Fold *fold_new(void);
void fold_free(Fold *fold);

// Merges one event of REQUEST_<LANE> or STATUS. The arena must live until fold_clear.
// ERROR_PERMANENT names the field that cannot be stored; nothing of that event is in the rows then.
bool fold_event(Fold *fold, const BusMessage *message, Arena *arena, Error *err);

// From now on what a REQUEST alone has made is not among the rows: `hold` keeps it until a status
// joins it or it is ripe (hold.h). Borrowed; NULL: no row is held. `may_wait` chooses among them;
// NULL: all of them.
void fold_hold_back(Fold *fold, Hold *hold, bool (*may_wait)(const HistoryRow *request));
// What time it is (monotonic), for what is held from now on.
void fold_set_now(Fold *fold, int64_t now_us);
// How long until there are rows to write, in ms; 0: there are; -1: there is nothing, held neither.
int fold_wait_ms(const Fold *fold, int64_t now_us);
// Adds what is ripe to the rows, at most FOLD_RIPE_MAX between two fold_clear: a flush that is
// tried again does not grow.
void fold_ripen(Fold *fold, int64_t now_us);

HistoryRow *const *fold_rows(const Fold *fold, size_t *ret_count);
AttemptRow *const *fold_attempts(const Fold *fold, size_t *ret_count);
int64_t fold_oldest_us(const Fold *fold); // when the oldest event in the rows, or held, was stored
                                          // in its stream; 0: there is none
void fold_clear(Fold *fold);              // the rows are written; what is held stays
void fold_forget(Fold *fold);             // all of it will be read again, what is held too

// The column of archiver.notifications that each field is.
const char *fold_text_column(FoldText field);
const char *fold_time_column(FoldTime field);
