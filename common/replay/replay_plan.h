// SPDX-License-Identifier: Apache-2.0
// What a replay is to do, and what it does with each message. Pure: no I/O; the time is an
// argument.
#pragma once

#include "common/bus/consume/reader.h"
#include "common/bus/jetstream/bus.h"
#include "common/bus/topology/topology.h"
#include "common/domain/event_seal.h"

enum {
    REPLAY_RUN_MAX = 64,
    REPLAY_RATE_MAX = 1000000,
    // ingest forgets an event's id after 24 h; a copy may be an hour on its way to it.
    REPLAY_EVENT_HOURS = 23,
};

typedef struct ReplayPlan {
    const StreamSpec *stream;
    const char *service; // "dispatcher"; NULL: none
    const char *subject; // "replay.x"; NULL: none. Both NULL: a dry run
    const char *run;     // its id: the same run makes the same copies
    uint64_t from_sequence;
    int64_t from_time_us;
    bool last_per_subject;
    uint64_t to_sequence; // 0: the stream's end
    int64_t to_time_us;   // 0: the same
    const char *filter;   // --subject; NULL: none
    const char *tenant;   // NULL: all of them
    int64_t rate;         // messages a second; 0: as fast as they are taken
    // NULL: the stream alone. Else the log from object storage on; end_at_us tells a message that
    // is behind the end from one of a former stream of the same name.
    const ReaderKind *readers;
    void *readers_ctx;
    int64_t
        ledger_since_us; // attempts that ended before it may be gone from the ledger; 0: none is
    bool dry_run;
    bool accept_again; // EVENTS: also what ingest has forgotten
    // What a program at `subject` gets of EVENTS is opened with them; NULL: it gets sealed ones as
    // they are, as a service does.
    EventKeys *event_keys;
} ReplayPlan;

bool replay_says_tenant(const StreamSpec *stream); // its subjects do
// The subjects that the server is asked for; NULL: the whole stream. In `arena`.
const char *replay_filter(const ReplayPlan *plan, Arena *arena);

typedef enum ReplayVerdict {
    REPLAY_TAKE,
    REPLAY_OTHER_TENANT,
    REPLAY_COPY,      // made by a replay: its original comes too
    REPLAY_EXPIRED,   // work that would only be reported as failed
    REPLAY_OLD,       // an event whose id ingest has forgotten: it would be a new notification
    REPLAY_FORGOTTEN, // a request whose attempts the ledger may have forgotten: it would be sent
                      // again
    REPLAY_VERDICT_COUNT,
} ReplayVerdict;

// Is it behind what was asked for? Then nothing after it is wanted either.
bool replay_is_past(const ReplayPlan *plan, const BusMessage *message);
// `scratch` is for unpacking.
ReplayVerdict replay_classify(
    const ReplayPlan *plan, const BusMessage *message, int64_t now_us, Arena *scratch);
// The id of the message's copy. EVENTS keep theirs, because ingest knows a command by it.
enum { REPLAY_ID_SIZE = 96 };
Str replay_event_id(const ReplayPlan *plan, const BusMessage *message, char space[REPLAY_ID_SIZE]);

// The command that goes on from `next` to `end`, in `arena`.
const char *replay_continue(const ReplayPlan *plan, uint64_t next, uint64_t end, Arena *arena);
