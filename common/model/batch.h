// SPDX-License-Identifier: Apache-2.0
// What a batch can be and what may be done with it. Pure. Pause is a flag next to the status: a
// paused batch stays scheduled or running, and goes on exactly where it stopped.
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"

typedef enum BatchStatus {
    BATCH_NONE = 0,
    BATCH_DRAFT, // the only one in which members can be added
    BATCH_SCHEDULED,
    BATCH_RUNNING,
    BATCH_COMPLETED, // every member was accepted; what becomes of each is its own status
    BATCH_CANCELLED,
    BATCH_FAILED, // its template is gone, or what was stored cannot be read
    BATCH_STATUS_COUNT
} BatchStatus;

typedef enum BatchCommand {
    BATCH_DO_SCHEDULE, // with a time; again: with another time
    BATCH_DO_START,
    BATCH_DO_PAUSE,
    BATCH_DO_RESUME,
    BATCH_DO_CANCEL,
    BATCH_COMMAND_COUNT
} BatchCommand;

typedef struct BatchState {
    BatchStatus status;
    bool paused;
} BatchState;

enum {
    BATCH_STEP_MAX = 500, // members that are accepted by one commit
    BATCH_STEPS_PER_S = 10,
};

const char *batch_status_name(BatchStatus status); // "" for what is none
bool batch_status_from_name(Str name, BatchStatus *ret);
const char *batch_command_name(BatchCommand command); // "start"
bool batch_command_from_name(Str name, BatchCommand *ret);
bool batch_is_over(BatchStatus status); // completed, cancelled, failed: nothing more is made

// What the command makes of the state; a command that changes nothing (pause of a paused one) is
// fine. ERROR_CONFLICT: not in this state, with a text for the caller.
bool batch_decide(BatchState state, BatchCommand command, BatchState *ret, Error *err);

// How many members go into one commit at this rate (0: no limit): a tenth of a second's worth, so
// that a paced batch flows and does not jerk. It is fixed when the batch is made, because a repeat
// after a crash must cut the chunk at the same places.
int64_t batch_step(int64_t rate_per_s);
