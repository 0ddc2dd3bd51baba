// SPDX-License-Identifier: Apache-2.0
// Reader: the ordered, unacknowledged read under projectors and the copies of CONFIG. An own
// ephemeral consumer (AckNone, memory) from a sequence on; a gap, a lost consumer or a reconnect
// makes a new one from the last sequence + 1. A log that lost its tail (a power cut, a restored
// copy) is noticed by the time of the last message read, and read again from that time: the
// sequences may then come once more, with other messages.
#pragma once

#include "common/bus/jetstream/bus.h"

typedef struct Reader Reader;

typedef struct ReaderOptions {
    const char *stream;
    const char *filter;        // NULL: the whole stream
    uint64_t start_sequence;   // the first wanted; 0 or 1: from the beginning
    int64_t start_time_us;     // the first stored at or after this; 0: start_sequence counts
    int64_t last_stored_at_us; // when message start_sequence - 1 was stored: it must be that one
                               // still; 0: not known, start_sequence is taken as it is
    bool last_per_subject; // only the last of each subject, then what is new; the others count not
    bool only_new;         // from now on (tail); start_sequence is ignored
    bool reads_once;       // a read that would have to begin again fails instead
    int64_t expect_created_us; // the stream's creation time that the stored sequence belongs to; 0:
                               // not known yet. The server may report another one for the same
                               // stream (stream_check.h)
    size_t batch_max;          // 0: 512
    size_t batch_bytes;        // a batch ends with the message that reaches them; 0: any
    const char *remedy; // for a log that is not what was read: a whole command, "stentor rebuild
                        // history"; lives as long as the reader; NULL: none
} ReaderOptions;

typedef struct ReaderHandlers {
    // Messages in order of their sequence, in an arena that lives during the call.
    void (*on_messages)(void *ctx, const BusMessage *messages, size_t count);
    // Once, when everything that was in the stream at the start has been handed over (at once for
    // an empty stream).
    void (*on_caught_up)(void *ctx);
    // The read cannot go on: CONFIG when it is another stream since, or the sequence is past
    // its age, or the stream ends before it and the time of the last read is unknown; PERMANENT
    // when there is no such stream. Transient trouble is not reported: the reader tries again.
    void (*on_failed)(void *ctx, const Error *err);
} ReaderHandlers;

// Borrows the bus; stream and filter are copied. Never fails: what cannot be read is reported
// through on_failed.
Reader *reader_new(
    Bus *bus, const ReaderOptions *options, const ReaderHandlers *handlers, void *ctx);
void reader_pause(
    Reader *reader, bool paused); // while paused at most batch_max more messages arrive
int64_t reader_stream_created_us(
    const Reader *reader);                 // before the first message or on_caught_up: as expected
uint64_t reader_lag(const Reader *reader); // messages known to wait
uint64_t reader_tails_lost(
    const Reader *reader); // how often the log had lost what was read already
// No handler is called any more; on_freed comes from the loop.
void reader_free(Reader *reader, void (*on_freed)(void *ctx), void *ctx);

// What a projector reads with: reader_new() and its like, or others that hand over the same
// messages in the same way (eventlog's, which begin in object storage).
typedef struct ReaderKind {
    void *(*open)(
        void *ctx, Bus *bus, const ReaderOptions *options, const ReaderHandlers *handlers,
        void *handlers_ctx);
    void (*pause)(void *reader, bool paused);
    int64_t (*stream_created_us)(const void *reader);
    uint64_t (*lag)(const void *reader);
    uint64_t (*tails_lost)(const void *reader);
    bool (*reads_stream)(const void *reader); // false: still from elsewhere
    void (*free)(void *reader, void (*on_freed)(void *ctx), void *ctx);
} ReaderKind;

extern const ReaderKind stream_readers; // of a stream alone; no context
