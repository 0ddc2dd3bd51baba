// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/job.h"

#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/events/sealed.h"
#include "common/model/currency.h"
#include "services/dispatcher/voice/calls.h"

static const int64_t DAY_US = 86400LL * 1000000;
enum { OLDEST_DAYS = 400 };

// ---- reading ----

static OwnRetries own_retries(const Stentor__V1__Rendered *rendered)
{
    const Stentor__V1__Retries *retries = rendered->retries;
    return retries == NULL ? (OwnRetries){0}
                           : (OwnRetries){
                                 .wait_s = retries->wait_s,
                                 .count = retries->n_wait_s,
                                 .max_attempts = retries->max_attempts,
                             };
}

static bool check_fields(const Stentor__V1__Rendered *rendered, Error *err)
{
    if (channel_name((Channel)rendered->channel)[0] == '\0') {
        return error_set(err, ERROR_PERMANENT, "'channel' is %d", (int)rendered->channel);
    }
    if ((int)rendered->priority < PRIORITY_CRITICAL || (int)rendered->priority >= PRIORITY_COUNT) {
        return error_set(err, ERROR_PERMANENT, "'priority' is %d", (int)rendered->priority);
    }
    if (rendered->attempt < 1 || rendered->attempt > JOB_ATTEMPTS_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "'attempt' is %u: expected 1 to %d", rendered->attempt,
            JOB_ATTEMPTS_MAX);
    }
    if (rendered->rung > LADDER_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "'rung' is %u: expected at most %d", rendered->rung, LADDER_MAX);
    }
    const Ladder any = ladder_default();
    const OwnRetries own = own_retries(rendered);
    Ladder ladder;
    if (!ladder_own(&any, &own, &ladder, err)) {
        return error_wrap(err, "'retries'");
    }
    if (rendered->rendered_at_us < 0 || rendered->accepted_at_us < 0 ||
        rendered->expires_at_us < 0) {
        return error_set(err, ERROR_PERMANENT, "a time is negative");
    }
    if (rendered->content_checksum.len != SHA256_LEN) {
        return error_set(err, ERROR_PERMANENT, "'content_checksum' is not a SHA-256");
    }
    if (!calls_check(rendered, err)) {
        return false;
    }
    return sealed_check(rendered->address, "address", err) &&
           sealed_check(rendered->content, "content", err);
}

static bool read_key(Job *job, int64_t now_us, Error *err)
{
    const Stentor__V1__Meta *meta = job->rendered->meta;
    if (meta == NULL || !id_is_tenant(str_from(meta->tenant))) {
        return error_set(err, ERROR_PERMANENT, "'meta.tenant' is not a tenant's id");
    }
    int64_t created_ms = 0;
    if (!id_parse(str_from(meta->notification_id), "ntf_", &created_ms)) {
        return error_set(err, ERROR_PERMANENT, "'meta.notification_id' is not a notification's id");
    }
    // The ledger's partitions reach just so far.
    if (created_ms * 1000 > now_us + DAY_US || created_ms * 1000 < now_us - OLDEST_DAYS * DAY_US) {
        return error_set(
            err, ERROR_PERMANENT, "'meta.notification_id' is of a time too far from now");
    }
    LedgerKey *key = arena_zalloc(job->delivery->arena, sizeof *key);
    *key = (LedgerKey){
        .created_at_us = created_ms * 1000,
        .notification_id = str_from(meta->notification_id),
        .attempt = (int32_t)job->rendered->attempt,
        .tenant = str_from(meta->tenant),
        // A mail that an operator resends is sent, whatever a callback proved before.
        // One that is for a call without an answer is for nothing else.
        .retry = (job->rendered->attempt > 1 && job->rendered->resends == 0) ||
                 job->rendered->after_call > 0,
    };
    job->key = key;
    job->row_key = key;
    return true;
}

Str job_name(Str notification_id, int32_t attempt, char *space, size_t size)
{
    int used = snprintf(space, size, STR_FMT "/%d", STR_ARG(notification_id), attempt);
    return (Str){space, used > 0 && (size_t)used < size ? (size_t)used : 0};
}

bool job_read(Job *job, Delivery *delivery, int64_t now_us, Error *err)
{
    job->delivery = delivery;
    job->rendered = (Stentor__V1__Rendered *)event_unpack(
        &stentor__v1__rendered__descriptor, delivery->message.payload, delivery->arena, err);
    if (job->rendered == NULL || !read_key(job, now_us, err) || !check_fields(job->rendered, err)) {
        return false;
    }
    job->row = (LedgerRow){.rung = -1};
    char name[JOB_NAME_SIZE];
    job->name = arena_str(
        delivery->arena, job_name(job->key->notification_id, job->key->attempt, name, sizeof name));
    return true;
}

// ---- the ledger's answer ----

Course job_classify(const Job *job, Str owner, UnknownPolicy policy)
{
    const LedgerConflict *conflict = job->conflict;
    if (conflict == NULL) {
        return COURSE_BEGIN;
    }
    if (conflict->row.state == LEDGER_NONE) {
        return COURSE_RECHECK;
    }
    if (conflict->row.state != LEDGER_CLAIMED) {
        return COURSE_REPEAT;
    }
    // Released; or ours and not in flight here, so its claim was committed but the answer was lost,
    // and it was never sent.
    if (conflict->owner.len == 0 || str_eq(conflict->owner, owner)) {
        return COURSE_TAKE_OVER;
    }
    if (conflict->wait_ms > 0) {
        return COURSE_WAIT;
    }
    return policy == UNKNOWN_PARK && !job->decided ? COURSE_PARK : COURSE_TAKE_OVER;
}

// ---- outcome ----

// Text for Postgres and protobuf: bytes that are not UTF-8 become '?', control characters a space.
static Str recordable(Arena *arena, Str text)
{
    if (text.len <= JOB_REPLY_MAX && str_is_utf8(text) && !str_has_control(text)) {
        return arena_str(arena, text);
    }
    char *out = arena_alloc(arena, JOB_REPLY_MAX);
    size_t len = 0;
    while (text.len > 0) {
        size_t step = str_utf8_step(text);
        size_t size = step > 0 ? step : 1;
        if (len + size > JOB_REPLY_MAX) {
            break;
        }
        memcpy(out + len, step > 0 ? text.ptr : "?", size);
        if (step == 1 && ((uint8_t)out[len] < 0x20 || out[len] == 0x7f)) {
            out[len] = ' ';
        }
        len += size;
        text = str_slice(text, size, text.len);
    }
    return (Str){out, len};
}

static Ladder ladder_of(const Job *job, const JobRules *rules)
{
    Ladder ladder = *ladders_of(&rules->ladders, (Channel)job->rendered->channel);
    const OwnRetries own = own_retries(job->rendered);
    (void)ladder_own(&ladder, &own, &ladder, NULL); // check_fields has refused others
    return ladder;
}

// As the vendor counts them, else as we do; of what it took.
static uint32_t segments_of(const Job *job, const SendResult *result)
{
    const VendorMail *mail = job->mail.content;
    bool taken = result->state == SEND_ANSWERED && result->reply == REPLY_ACCEPTED;
    uint32_t own = taken && mail != NULL ? mail->segments : 0;
    uint32_t segments = result->segments > 0 ? result->segments : own;
    return segments <= INT16_MAX ? segments : INT16_MAX;
}

// What the row says of the vendor and its answer.
static void note_result(Job *job, const SendResult *result, int64_t now_us)
{
    Arena *arena = job->delivery->arena;
    LedgerRow *row = &job->row;
    bool is_smtp = str_eq(job->place.vendor, STR(ROUTING_SMTP));
    row->finished_at_us = now_us;
    row->due_at_us = 0;
    row->rung = -1;
    row->vendor = job->place.vendor;
    row->credential = job->place.credential;
    row->vendor_key = job->place.key;
    row->vendor_message_id =
        is_smtp ? job->message_id : recordable(arena, result->vendor_message_id);
    row->code = recordable(arena, result->code);
    row->enhanced = recordable(arena, result->enhanced);
    row->reply = recordable(arena, result->text);
    bool refused = result->state == SEND_ANSWERED && result->reply != REPLY_ACCEPTED;
    row->reply_class = refused ? str_from(reply_class_name(result->reply)) : STR_EMPTY;
    row->next_step = STR_EMPTY;
    row->segments = segments_of(job, result);
    bool priced =
        result->cost_micros > 0 && currency_is_code(result->currency); // the ledger takes no other
    row->cost_micros = priced ? result->cost_micros : 0;
    row->currency = priced ? recordable(arena, result->currency) : STR_EMPTY;
}

SendResult job_shown(const Job *job, const SendResult *result)
{
    SendResult shown = *result;
    if (job->rendered->channel != STENTOR__V1__CHANNEL__CHANNEL_EMAIL && result->text.len > 0) {
        size_t room = 2 * JOB_REPLY_MAX + 4;
        char *text = arena_alloc(job->delivery->arena, room);
        mask_known(str_slice(result->text, 0, JOB_REPLY_MAX), job->mail.to, text, room);
        shown.text = str_from(text);
    }
    return shown;
}

const SendResult *job_keep_result(const Job *job, const SendResult *result)
{
    Arena *arena = job->delivery->arena;
    SendResult *kept = arena_zalloc(arena, sizeof *kept);
    *kept = (SendResult){
        .state = result->state,
        .reply = result->reply,
        .of_recipient = result->of_recipient,
        .retry_after_ms = result->retry_after_ms,
        .code = recordable(arena, result->code),
        .enhanced = recordable(arena, result->enhanced),
        .text = recordable(arena, result->text),
        .currency = STR_EMPTY, // nothing was sent
    };
    return kept;
}

void job_decide_unsent(Job *job, const char *code, Str reason, bool dead_letter, int64_t now_us)
{
    job->decided = true;
    job->row = (LedgerRow){
        .state = LEDGER_FAILED,
        .claimed_at_us = now_us,
        .finished_at_us = now_us,
        .rung = dead_letter ? (int32_t)job->rendered->rung : -1,
        .code = str_from(code),
        .reply = recordable(job->delivery->arena, reason),
    };
}

void job_decide(Job *job, const char *reason_code, const char *reason, int64_t now_us)
{
    int64_t claimed_at_us = job->row.claimed_at_us;
    int32_t unknown_count = job->row.unknown_count;
    job_decide_unsent(job, reason_code, str_from(reason), false, now_us);
    job->row.claimed_at_us = claimed_at_us;
    job->row.unknown_count = unknown_count;
}

// [0, 1) from the attempt's name: retries of many mails spread, and the same attempt always gets
// the same time.
static double jitter_of(const Job *job)
{
    return (double)(str_hash(job->name) >> 11) / 9007199254740992.0;
}

static void defer(Job *job, const JobRules *rules, const SendResult *result, int64_t now_us)
{
    // Busy servers and greylisting end within a day and use no rung until then; a server that
    // always answers 4xx must not hold a mail for ever.
    const int64_t free_us = JOB_THROTTLED_FREE_H * 3600LL * 1000000;
    bool free = result->state == SEND_ANSWERED && result->reply == REPLY_THROTTLED &&
                now_us - job->rendered->rendered_at_us < free_us &&
                job->rendered->retries == NULL; // its caller counts every attempt
    uint32_t used = job->rendered->rung;
    const Ladder own = ladder_of(job, rules);
    const Ladder *ladder = &own;
    uint32_t rung = free && used >= ladder->count && used > 0 ? ladder->count - 1 : used;
    bool more =
        job->rendered->attempt < JOB_ATTEMPTS_MAX &&
        ladder_next(
            ladder, rung, now_us, result->retry_after_ms, jitter_of(job), &job->row.due_at_us);
    job->row.state = more ? LEDGER_DEFERRED : LEDGER_FAILED;
    job->row.rung = (int32_t)(more && !free ? used + 1 : used);
}

void job_defer(Job *job, const SendResult *result, int64_t due_us, const char *step, int64_t now_us)
{
    note_result(job, result, now_us);
    bool more = job->rendered->attempt < JOB_ATTEMPTS_MAX;
    job->row.state = more ? LEDGER_DEFERRED : LEDGER_FAILED;
    job->row.due_at_us = more ? due_us : 0;
    job->row.rung = (int32_t)job->rendered->rung;
    job->row.next_step = str_from(step);
}

static void note_next_call(Job *job, const JobRules *rules, int64_t now_us)
{
    // Without a public URL nothing is heard of a call.
    if (job->rendered->channel == STENTOR__V1__CHANNEL__CHANNEL_VOICE &&
        rules->public_url.len > 0) {
        Ladder ladder = ladder_of(job, rules);
        calls_plan_next(job, &ladder, jitter_of(job), now_us);
    }
}

void job_outcome(Job *job, const JobRules *rules, const SendResult *result, int64_t now_us)
{
    LedgerRow *row = &job->row;
    note_result(job, result, now_us);
    if (result->state != SEND_ANSWERED) {
        defer(job, rules, result, now_us);
        return;
    }
    switch (result->reply) {
    case REPLY_ACCEPTED:
        row->state = LEDGER_SENT;
        note_next_call(job, rules, now_us);
        break;
    case REPLY_TERMINAL:
    case REPLY_BAD_ADDRESS:
        row->state = LEDGER_FAILED;
        break;
    case REPLY_ELSEWHERE: // no other vendor is there
        row->state = LEDGER_FAILED;
        break;
    case REPLY_CONFIG:
    case REPLY_RETRY:
    case REPLY_THROTTLED:
        defer(job, rules, result, now_us);
        break;
    }
}

bool job_shorten_row(Job *job)
{
    LedgerRow *row = &job->row;
    if (row->vendor_message_id.len + row->enhanced.len + row->reply.len == 0) {
        return false;
    }
    row->vendor_message_id = row->enhanced = row->reply = STR_EMPTY;
    row->unknown_count = row->unknown_count < INT16_MAX ? row->unknown_count : INT16_MAX;
    return true;
}
