// SPDX-License-Identifier: Apache-2.0
// DigestPeople: preferences and unsubscriptions from PEOPLE, folded into digest_flusher.preferences
// and digest_flusher.unsubscribed_recipients. A recipient who no longer wants a digest has the open
// windows made due at once; the freeze decides their outcome (digest_flusher.digest_verdict).
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/db/db.h"

typedef struct DigestPeople DigestPeople;

DigestPeople *digest_people_new(void);
void digest_people_free(DigestPeople *people);
// One event; text lives in `arena` until digest_people_clear. ERROR_PERMANENT names what is wrong.
bool digest_people_fold(DigestPeople *people, const BusMessage *message, Arena *arena, Error *err);
// Writes everything folded since the last clear: removals, preferences, unsubscriptions.
void digest_people_write(const DigestPeople *people, DbTxn *txn);
// Behind it, in the live schema: open windows that are not wanted any more become due.
void digest_people_wake(const DigestPeople *people, DbTxn *txn);
void digest_people_clear(DigestPeople *people);
size_t digest_people_count(
    const DigestPeople *people); // preferences and recipients that would be written
