// SPDX-License-Identifier: Apache-2.0
// Entries: one for each publish that awaits its ack (publish.c has their states).
#pragma once

#include "common/bus/jetstream/bus_internal.h"

enum {
    WINDOW_DEFAULT = 4096,
    DEADLINE_DEFAULT_MS = 10000,
    PENDING_BYTES_MAX = 64 * 1024 * 1024,
    AIR_BYTES_MAX = 8 * 1024 * 1024, // half of what the link keeps unwritten
    BLOCK = 256,
    BLOCKS_MAX =
        2 * BUS_PENDING_MAX / BLOCK, // refusals that wait for their callback need entries too
    // So many that can wait are in flight at once while others come too: what the server has
    // still to store when one that cannot wait arrives.
    SLACK_WINDOW = 512,
    SLACK_COMPANY_MS = 10000, // so long after one that cannot wait
    RESEND_MS = 2000,         // unanswered so long: lost. Doubles with each try
    REFUSAL_LOG_MS = 10000,
    ORPHAN_MS = 5000,
    REST_MIN_MS = 250, // after a refusal; doubles up to
    REST_MAX_MS = 2000,
    HEADER_VALUE_MAX = 1024,
    INDEX_BITS = 18,
    TOKEN_SIZE = 24,
    PORTS_MAX = 32, // kinds of streams, and one for all others
    PORT_PART_MAX = 24,
};

typedef enum EntryState {
    ENTRY_FREE,
    ENTRY_QUEUED,
    ENTRY_SENT,
    ENTRY_RESTING,
    ENTRY_REFUSED
} EntryState;

typedef struct Entry {
    natsMsg *message;
    BusAcked on_acked;
    void *ctx;
    int64_t born_ms;
    int64_t due_ms; // SENT: taken for lost; RESTING: try again
    struct Entry *older, *newer;
    struct Entry *next; // in the queue, in the free list, or among the refused
    uint32_t index;
    uint32_t generation;
    uint32_t bytes;
    uint16_t tries;
    uint8_t state;
    uint8_t refusal; // ErrorKind of REFUSED
    uint8_t port;    // where its ack comes
    bool once;
    bool slack;
} Entry;

typedef struct EntryQueue {
    Entry *first, *last;
    size_t count;
} EntryQueue;

struct Publisher {
    uv_loop_t *loop;
    Link *link;
    size_t window;
    int deadline_ms;
    Entry *blocks[BLOCKS_MAX];
    uint32_t block_count;
    Entry *free;
    Entry *oldest, *newest; // all live entries by age: also by deadline
    EntryQueue queue;       // QUEUED
    EntryQueue slack_queue; // the same of those that can wait
    size_t slack_in_flight;
    int64_t company_until_ms; // until then what can wait has the smaller window
    EntryQueue refused;       // to be reported in the next turn
    size_t pending, pending_bytes;
    size_t in_flight, in_flight_bytes;
    uint64_t acked, duplicates; // since the start
    struct {
        char part[PORT_PART_MAX]; // of the subject
        char name[LINK_PORT_SIZE];
    } ports[PORTS_MAX];
    uint8_t port_count;
    Buf scratch;          // header values as C strings
    char last_error[160]; // the last refusal, for the text of a missed deadline
    uint64_t logged_ms;   // when a refusal was last logged; 0: never
    uint64_t orphan_ms;   // when no stream took a publish; 0: never
    char orphan[200];     // which
};

void entry_enqueue(Publisher *p, Entry *e);
void entry_refuse(Publisher *p, Entry *e, ErrorKind kind);
Entry *entry_acquire(Publisher *p, BusAcked on_acked, void *ctx);
// The one end of every entry: it is gone before the callback, which may publish again.
void entry_finish(Publisher *p, Entry *e, const Error *err, uint64_t sequence, bool duplicate);
Entry *entry_pop(EntryQueue *queue);
void entry_leave_air(Publisher *p, Entry *e);
