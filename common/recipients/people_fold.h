// SPDX-License-Identifier: Apache-2.0
// PeopleFold: events of PEOPLE gathered in memory until they are written (people_sql.h). Pure. Law:
// the events come in the order of the stream, and of two about the same part the later stands; a
// removal takes away what was said before it.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/bus/jetstream/bus.h"
#include "stentor/v1/people.pb-c.h"

enum {
    PEOPLE_EVENT_MAX = 128 * 1024, // bytes
    // What a projector of PEOPLE folds into one flush (projector.h), so that it fits one
    // transaction: events of PEOPLE_EVENT_MAX bytes, or records with all their addresses.
    PEOPLE_FLUSH_MAX = 256,
    PEOPLE_FLUSH_BYTES = 7 * 1024 * 1024,
    PEOPLE_ADDRESSES_MAX = 100,
    PEOPLE_LABELS_MAX = 64,
};

typedef struct PreferenceFold {
    struct PreferenceFold *next;
    const Stentor__V1__Preference *said;
    uint64_t sequence;
    int64_t stored_at_us;
} PreferenceFold;

typedef struct ConsentFold {
    struct ConsentFold *next;
    const Stentor__V1__Consent *said;
    uint64_t sequence;
    int64_t given_at_us;
} ConsentFold;

// What one flush knows of one recipient.
typedef struct PersonFold {
    Str tenant;
    Str id;
    uint64_t removed_sequence;            // 0: not removed
    const Stentor__V1__Recipient *record; // NULL: nothing said of it
    uint64_t record_sequence;
    int64_t record_at_us;
    uint64_t unsubscribed_sequence; // 0: nothing said
    int64_t unsubscribed_at_us;     // 0: not (any more)
    PreferenceFold *preferences;    // one for each category and channel
    ConsentFold *consents;
} PersonFold;

typedef struct PeopleFold PeopleFold;

PeopleFold *people_fold_new(void);
void people_fold_free(PeopleFold *fold);
void people_fold_clear(PeopleFold *fold);

// `arena` lives until people_fold_clear. ERROR_PERMANENT: not an event of its subject's tenant, or
// it holds what no table takes (an unknown category, a hash of another length, a time of no year).
bool people_fold_event(PeopleFold *fold, const BusMessage *message, Arena *arena, Error *err);
PersonFold *const *people_fold_rows(const PeopleFold *fold, size_t *ret_count);
uint64_t people_fold_first(const PeopleFold *fold); // lowest sequence; 0: nothing folded
