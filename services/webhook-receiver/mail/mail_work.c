// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/mail/mail_work.h"

#include <stdlib.h>

#include "services/webhook-receiver/lmtp/mail_intake.h"
#include "services/webhook-receiver/mail/mail_events.h"
#include "services/webhook-receiver/mail/mail_reader.h"

struct MailWork {
    MailReader *reader;
    MailKeys keys;
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

// Lives in the caller's arena.
typedef struct Reading {
    MailWork *work;
    MailOrigin origin;
    Arena *arena;
    MailWorked on_worked;
    void *ctx;
} Reading;

MailWork *mail_work_new(uv_loop_t *loop, const MasterKey *master)
{
    MailWork *work = xcalloc(1, sizeof *work);
    work->reader = mail_reader_new(&(MailReaderOptions){.loop = loop});
    bounce_key(master, &work->keys.bounce);
    opt_out_key(master, &work->keys.opt_out);
    work->keys.hash = master_hash_keys(master);
    return work;
}

static void on_mail_read(void *ctx, Str report, const Error *err)
{
    Reading *reading = ctx;
    Error bad = {0};
    MailReport found;
    if (err != NULL) {
        reading->on_worked(reading->ctx, NULL, err);
    } else if (!mail_report_read(report, reading->arena, &found, &bad)) {
        reading->on_worked(reading->ctx, NULL, &bad);
    } else {
        CallbackBatch batch = {0};
        mail_events(&found, &reading->origin, &reading->work->keys, reading->arena, &batch);
        reading->on_worked(reading->ctx, &batch, NULL);
    }
}

// The first line is our own.
static bool split_body(Str body, Str *ret_delivered_to, Str *ret_mail)
{
    ptrdiff_t end = str_find(body, '\n');
    if (end < 0 || !str_starts(body, STR(MAIL_DELIVERED_TO))) {
        return false;
    }
    Str line = str_slice(body, sizeof MAIL_DELIVERED_TO - 1, (size_t)end);
    *ret_delivered_to = str_trim(line);
    *ret_mail = str_slice(body, (size_t)end + 1, body.len);
    return true;
}

void mail_work_read(
    MailWork *work, const MailInput *input, Arena *arena, MailWorked on_worked, void *ctx)
{
    Reading *reading = arena_zalloc(arena, sizeof *reading);
    *reading = (Reading){.work = work, .arena = arena, .on_worked = on_worked, .ctx = ctx};
    reading->origin.tenant = input->tenant;
    reading->origin.received_at_us = input->received_at_us;
    Str mail = STR_EMPTY;
    if (!split_body(input->body, &reading->origin.delivered_to, &mail)) {
        Error err = {0};
        (void)error_set(
            &err, ERROR_PERMANENT, "the stored mail does not begin with " MAIL_DELIVERED_TO);
        on_worked(ctx, NULL, &err);
        return;
    }
    mail_reader_read(work->reader, mail, on_mail_read, reading);
}

static void on_reader_freed(void *ctx)
{
    MailWork *work = ctx;
    work->on_freed(work->freed_ctx);
    free(work);
}

void mail_work_free(MailWork *work, void (*on_freed)(void *ctx), void *ctx)
{
    work->on_freed = on_freed;
    work->freed_ctx = ctx;
    mail_reader_free(work->reader, on_reader_freed, work);
}
