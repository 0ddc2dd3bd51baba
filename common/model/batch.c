// SPDX-License-Identifier: Apache-2.0
#include "common/model/batch.h"

// clang-format off
static const char *const status_names[BATCH_STATUS_COUNT] = {
    [BATCH_NONE]      = "",
    [BATCH_DRAFT]     = "draft",
    [BATCH_SCHEDULED] = "scheduled",
    [BATCH_RUNNING]   = "running",
    [BATCH_COMPLETED] = "completed",
    [BATCH_CANCELLED] = "cancelled",
    [BATCH_FAILED]    = "failed",
};

static const char *const command_names[BATCH_COMMAND_COUNT] = {
    [BATCH_DO_SCHEDULE] = "schedule",
    [BATCH_DO_START]    = "start",
    [BATCH_DO_PAUSE]    = "pause",
    [BATCH_DO_RESUME]   = "resume",
    [BATCH_DO_CANCEL]   = "cancel",
};

// Which status each command leads to; BATCH_NONE: not from here.
static const BatchStatus allowed[BATCH_COMMAND_COUNT][BATCH_STATUS_COUNT] = {
    [BATCH_DO_SCHEDULE] = {[BATCH_DRAFT] = BATCH_SCHEDULED, [BATCH_SCHEDULED] = BATCH_SCHEDULED},
    [BATCH_DO_START]    = {[BATCH_DRAFT] = BATCH_RUNNING, [BATCH_SCHEDULED] = BATCH_RUNNING, [BATCH_RUNNING] = BATCH_RUNNING},
    [BATCH_DO_PAUSE]    = {[BATCH_SCHEDULED] = BATCH_SCHEDULED, [BATCH_RUNNING] = BATCH_RUNNING},
    [BATCH_DO_RESUME]   = {[BATCH_SCHEDULED] = BATCH_SCHEDULED, [BATCH_RUNNING] = BATCH_RUNNING},
    [BATCH_DO_CANCEL]   = {[BATCH_DRAFT] = BATCH_CANCELLED, [BATCH_SCHEDULED] = BATCH_CANCELLED,
                           [BATCH_RUNNING] = BATCH_CANCELLED, [BATCH_CANCELLED] = BATCH_CANCELLED},
};
// clang-format on

const char *batch_status_name(BatchStatus status)
{
    return (unsigned)status < BATCH_STATUS_COUNT ? status_names[status] : "";
}

bool batch_status_from_name(Str name, BatchStatus *ret)
{
    for (int i = BATCH_NONE + 1; i < BATCH_STATUS_COUNT; i++) {
        if (str_eq(name, str_from(status_names[i]))) {
            *ret = (BatchStatus)i;
            return true;
        }
    }
    return false;
}

const char *batch_command_name(BatchCommand command)
{
    return (unsigned)command < BATCH_COMMAND_COUNT ? command_names[command] : "";
}

bool batch_command_from_name(Str name, BatchCommand *ret)
{
    for (int i = 0; i < BATCH_COMMAND_COUNT; i++) {
        if (str_eq(name, str_from(command_names[i]))) {
            *ret = (BatchCommand)i;
            return true;
        }
    }
    return false;
}

bool batch_is_over(BatchStatus status)
{
    return status == BATCH_COMPLETED || status == BATCH_CANCELLED || status == BATCH_FAILED;
}

bool batch_decide(BatchState state, BatchCommand command, BatchState *ret, Error *err)
{
    BatchStatus next = allowed[command][state.status];
    if (next == BATCH_NONE) {
        return error_set(
            err, ERROR_CONFLICT, "a %s batch does not take the command %s",
            batch_status_name(state.status), batch_command_name(command));
    }
    bool paused = command == BATCH_DO_PAUSE || (command != BATCH_DO_RESUME && state.paused);
    *ret = (BatchState){.status = next, .paused = paused && !batch_is_over(next)};
    return true;
}

int64_t batch_step(int64_t rate_per_s)
{
    int64_t step = rate_per_s == 0 ? BATCH_STEP_MAX : rate_per_s / BATCH_STEPS_PER_S;
    if (step < 1) {
        return 1;
    }
    return step < BATCH_STEP_MAX ? step : BATCH_STEP_MAX;
}
