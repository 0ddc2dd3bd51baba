// SPDX-License-Identifier: Apache-2.0
// One post: signed for this attempt, sent once by the HTTP client under the tenant's guard, and
// what the answer means. Nothing that comes back but a status, one of a few words and the beginning
// of the answer's body is kept.
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/codec/event.h"
#include "services/dispatcher/webhooks/hooks_internal.h"

enum { SIGNATURES_MAX = WEBHOOK_SECRETS_MAX * WEBHOOK_SIGNATURE_SIZE };

// ---- the answer ----

static bool keep_piece(void *ctx, HttpCall *call, const void *bytes, size_t len)
{
    HookJob *job = ctx;
    (void)call;
    size_t room = sizeof job->response - job->response_len;
    size_t taken = len < room ? len : room;
    memcpy(job->response + job->response_len, bytes, taken);
    job->response_len += taken;
    return true;
}

// Printable text for a tenant's eyes: what is neither is a '?'.
static Str printable(HookJob *job)
{
    for (size_t i = 0; i < job->response_len; i++) {
        unsigned char c = (unsigned char)job->response[i];
        bool plain = (c >= ' ' && c < 0x7f) || c == '\n' || c == '\t';
        job->response[i] = plain ? (char)c : '?';
    }
    return str_of(job->response, job->response_len);
}

static void handle_status(HookJob *job, HttpCall *call, int status)
{
    char error[HOOK_ERROR_SIZE];
    uint32_t wait_ms =
        http_retry_after_ms(http_call_header(call, "retry-after"), job->outcome.finished_at_us);
    (void)snprintf(error, sizeof error, "status %d", status);
    if (status / 100 == 2) {
        job->outcome.state = WEBHOOK_DELIVERED;
    } else if (status == HOOK_GONE) {
        job->gone = true;
        job->outcome.state = WEBHOOK_FAILED;
        (void)str_to_c(str_from(error), job->outcome.error, sizeof job->outcome.error);
    } else {
        bool throttled = status == HOOK_TOO_MANY || wait_ms > 0;
        if (throttled) {
            budgets_throttled(job->hooks->budgets, str_from(job->endpoint->key), wait_ms);
        }
        hook_failed(job, status / 100 == 3 ? "redirect" : error, status, wait_ms);
    }
    job->outcome.counts = job->outcome.state != WEBHOOK_DELIVERED && status != HOOK_TOO_MANY;
}

static void on_posted(void *ctx, HttpCall *call, const HttpAnswer *answer)
{
    HookJob *job = ctx;
    Hooks *hooks = job->hooks;
    bool answered = answer->outcome == HTTP_ANSWERED || answer->head;
    double seconds = (double)(clock_mono_us() - job->posted_us) / 1e6;
    CRASH_POINT("hook.answered");
    hooks->posts--;
    metric_observe(hooks->metrics.post_seconds, seconds);
    job->outcome = (HookOutcome){.finished_at_us = clock_now_us()};
    job->endpoint->probing = !answered && answer->err.kind != ERROR_CANCELLED;
    if (answered) {
        job->outcome.status_code = answer->status;
        handle_status(job, call, answer->status);
    } else {
        hook_failed(job, http_failure_name(answer->failure), 0, 0);
        job->outcome.counts = answer->err.kind != ERROR_CANCELLED;
    }
    job->outcome.response = printable(job);
    job->outcome.duration_ms = (int64_t)(seconds * 1000);
    hook_record(job);
}

// ---- the request ----

static void sign(const HookJob *job, const Subscription *subscription, int64_t now_us, Buf *out)
{
    for (size_t i = 0; i < subscription->secret_count; i++) {
        const SubscriptionSecret *secret = &subscription->secrets[i];
        if (webhook_secret_signs(secret->sealed, now_us)) {
            webhook_sign(
                &secret->key, str_from(job->event->webhook_id), now_us / 1000000,
                pb_bytes(job->event->payload), out);
        }
    }
}

static void call(
    HookJob *job, const Subscription *subscription, int64_t now_us, const char *signatures)
{
    Hooks *hooks = job->hooks;
    char timestamp[24];
    (void)snprintf(timestamp, sizeof timestamp, "%" PRId64, now_us / 1000000);
    HttpCallOptions options = {
        .method = "POST",
        .url = subscription->entry->target_url,
        .headers =
            {
                {"content-type", "application/json"},
                {"webhook-id", job->event->webhook_id},
                {"webhook-timestamp", timestamp},
                {"webhook-signature", signatures},
            },
        .body = job->event->payload.data,
        .body_len = job->event->payload.len,
        .whole_ms = hooks->parts.call_ms,
        .on_piece = keep_piece,
        .on_done = on_posted,
        .ctx = job,
    };
    hooks->posts++;
    job->posted_us = clock_mono_us();
    (void)http_call(hooks->client, &options);
}

void hook_post(HookJob *job, int64_t now_us)
{
    const Subscription *subscription = hook_subscription(job);
    Buf signatures;
    buf_init(&signatures, SIGNATURES_MAX);
    sign(job, subscription, now_us, &signatures);
    assert(signatures.len > 0);
    call(job, subscription, now_us, buf_c(&signatures));
    buf_done(&signatures);
}
