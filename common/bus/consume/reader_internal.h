// SPDX-License-Identifier: Apache-2.0
// What reader.c (reading) and reader_begin.c (how a read starts) share.
#pragma once

#include "common/bus/consume/reader.h"
#include "common/bus/consume/reader_state.h"
#include "common/bus/jetstream/bus_internal.h"
#include "common/bus/topology/topology.h"

typedef struct Held {
    natsMsg *message;
    AckSubject ack;
} Held;

struct Reader {
    Bus *bus;
    ReaderOptions options;
    const StreamSpec *spec; // NULL: a stream that is not in the topology
    char *stream;
    char *filter;
    ReaderHandlers handlers;
    void *ctx;
    Endpoint endpoint;
    ReaderState state;       // written by reader_move() alone
    ReaderProgress progress; // written by reader_move_progress() alone
    int64_t retry_at_ms;
    uint64_t next;      // the first sequence not handed over yet
    int64_t last_at_us; // when message next - 1 was stored; 0: not known
    uint64_t tails_lost;
    unsigned names_taken;   // tries in a row that met another reader's consumer
    uint64_t next_consumer; // the consumer sequence that must come next
    uint64_t end;           // the stream's last sequence at the start
    int64_t created_us;     // that of the stream that next belongs to; 0: not known
    int64_t doubted_us;     // what the server reports instead, while CHECK decides; 0: no doubt
    uint64_t lag;
    // A fact about the stream, and an option of the caller: each true or false in most states.
    bool last_per_subject; // it keeps no more: what was read may be gone rightly
    bool paused;
    size_t asked;
    int64_t heard_ms;
    int64_t asked_ns; // for its consumer, in uv_hrtime()
    Held *held;       // batch_max: pulls never ask for more than is free here
    BusMessage *messages;
    size_t held_count;
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

// The only writer of the state. false: refused, and the read begins again, which skips nothing and
// hands nothing over twice.
bool reader_move(Reader *r, ReaderState next);
// at_end: what was in the stream at the start has come.
void reader_note_progress(Reader *r, bool at_end);

enum { READER_RETRY_MS = 500 };

// ---- reader_begin.c ----

// Of a reader that waits: STREAM.INFO and what follows from it.
void reader_ask_stream(Reader *r);
void reader_drop_consumer(Reader *r);
void reader_restart(Reader *r, int64_t after_ms);
// The messages up to next - 1 are not those that were read.
void reader_lose_tail(Reader *r);
// It is the same stream, of another creation time.
void reader_take_over(Reader *r, int64_t created_us);
// The last message read does not show that the stream is the same.
void reader_settle_doubt(Reader *r, bool gone);
