// SPDX-License-Identifier: Apache-2.0
// A stored mail becomes events: read in a process of its own (mail_reader.h), its report judged
// (mail_events.h).
#pragma once

#include <uv.h>

#include "common/codec/master_key.h"
#include "common/vendor/vendor_callback.h"

typedef struct MailWork MailWork;

MailWork *mail_work_new(uv_loop_t *loop, const MasterKey *master);

// batch: in the arena; NULL with err: PERMANENT for a mail that cannot be read, CANCELLED after
// mail_work_free.
typedef void (*MailWorked)(void *ctx, const CallbackBatch *batch, const Error *err);

typedef struct MailInput {
    Str tenant;
    Str body; // as mail_intake.h stores it
    int64_t received_at_us;
} MailInput;

// Exactly one on_worked, now or from the loop. The input and the arena live until then.
void mail_work_read(
    MailWork *work, const MailInput *input, Arena *arena, MailWorked on_worked, void *ctx);
// Cancels what is read; then on_freed, from the loop.
void mail_work_free(MailWork *work, void (*on_freed)(void *ctx), void *ctx);
