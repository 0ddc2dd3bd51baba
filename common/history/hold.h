// SPDX-License-Identifier: Apache-2.0
// Hold: rows that a REQUEST alone has made, kept in memory until a status of the same notification
// comes or their time is up. A mail is then one row that is written once. Pure: time is an
// argument.
//
// Law: nothing is lost by holding. The stored position of a stream stays before its oldest held
// row (hold_before), so whatever dies with the process is read and folded again. And nothing is
// scanned: each stream has a list in the order of its sequences, which is the order of ripeness as
// well, because all rows wait equally long.
//
// How long they wait follows from how long mails take: twice the mean time from accept to the
// status that ends the waiting, within span_min_us and HOLD_MAX_US. Mails that take longer than
// HOLD_MAX_US (scheduled ones, an outage) count for nothing: to hold them would save nothing.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/history/fold.h"

enum {
    HOLD_MAX_US = 5 * 1000 * 1000,
    HOLD_STREAMS_MAX = 8, // rows of further ones are not held
};

typedef struct Hold Hold;

// bytes_max: of all held rows; what comes then is written at once.
Hold *hold_new(size_t bytes_max, int64_t span_min_us);
void hold_free(Hold *hold); // NULL-safe

// Of each message of each stream, in order, before the next call: what stands before the next one.
void hold_pass(Hold *hold, const BusMessage *message);
// Keeps a copy of the row that this message has made. false: full, or the row is not one to wait
// for; the caller writes it.
bool hold_put(Hold *hold, const HistoryRow *row, const BusMessage *message, int64_t now_us);
// What a fold has taken out; begins as zero.
typedef struct HoldTaken {
    struct Held *last;
} HoldTaken;
// Takes the row of a notification out; NULL: none is held. It lives until hold_settle of `taken`.
HistoryRow *hold_take(Hold *hold, Str tenant, Str id, HoldTaken *taken);
// Takes out the next row whose time is up; NULL: none is. It lives until hold_settle of `taken`.
HistoryRow *hold_ripe(Hold *hold, int64_t now_us, HoldTaken *taken);
void hold_settle(HoldTaken *taken); // it is written: frees it
void hold_forget(Hold *hold);       // what is held will be read again: frees it
void hold_release(Hold *hold);      // from now on nothing waits: the process stops
// A status came so long after its notification was accepted.
void hold_learn(Hold *hold, int64_t took_us);

// How long from now until a row is ripe, at least 0; -1: none is held.
int64_t hold_wait_us(const Hold *hold, int64_t now_us);
size_t hold_count(const Hold *hold);
size_t hold_bytes(const Hold *hold);
int64_t hold_oldest_us(const Hold *hold); // when its event was stored; 0: none is held
int64_t hold_span_us(const Hold *hold);   // how long rows wait at present

// The message before the oldest held one of the stream. false: none of it is held.
typedef struct HoldPlace {
    uint64_t sequence; // 0: nothing of the stream was folded before it since the start or a drop
    int64_t stored_at_us;
} HoldPlace;
bool hold_before(const Hold *hold, const char *stream, HoldPlace *ret);
