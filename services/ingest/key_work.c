// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/key_work.h"

#include <assert.h>
#include <stdlib.h>

#include "common/auditlog/audit_append.h"
#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/base/log.h"

enum { LOOK_MS = 5000, AGAIN_MS = 1000 };

struct KeyWork {
    uv_loop_t *loop;
    Keywork *work;
    uv_timer_t timer;
    uv_work_t job;
    bool busy; // a turn is under way, in a thread
    bool ok;   // its outcome
    KeyworkReport report;
    Error err;
    bool has_epochs;
    bool failing;      // the last turn failed: logged once
    uint64_t wrapped;  // since keys were last left
    int64_t opened_us; // of the open epoch; 0: not known here
    int64_t dumped_us; // the newest dump of the keys; 0: not known here
    double erasure_s;  // how long the oldest erasure waits; 0: none, or not known here
    uint64_t left;
    Metric *rewrapped;
    Metric *failed;
    // The thread asks, the loop answers: AUDIT is the loop's.
    Bus *bus;
    AuditLog *audit;
    uv_async_t asking;
    uv_mutex_t mutex;
    uv_cond_t answered;
    enum { NOTHING, ASKED, UNDER_WAY, ANSWERED } question; // these three under the mutex
    KeyworkEnding ending;
    Error answer; // kind ERROR_NONE: AUDIT has it
    bool freeing;
    int handles; // not closed yet
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

// ---- what is logged ----

static void log_failure(KeyWork *w, const Error *err)
{
    bool first = !w->failing;
    w->failing = true;
    metric_set(w->failed, 1);
    if (first) {
        LOG(err->kind == ERROR_TRANSIENT ? LOG_WARN : LOG_ERROR,
            "the work on keys failed; it is tried again (HINT: stentor keys status)",
            log_error(err));
    }
}

static void log_events(const KeyworkReport *report)
{
    for (size_t i = 0; i < report->event_count; i++) {
        char id[KEY_ID_SIZE];
        key_id_print(report->events[i].id, id);
        LOG(LOG_INFO, "epoch", log_text("deed", keywork_deed_name(report->events[i].deed)),
            log_int("number", report->events[i].number), log_text("epoch_key", id));
    }
}

static void note_wrapped(KeyWork *w)
{
    w->wrapped += w->report.wrapped;
    metric_add(w->rewrapped, (double)w->report.wrapped);
    if (w->wrapped > 0 && w->left == 0) {
        LOG(LOG_INFO,
            w->has_epochs ? "rotation is complete: the open epoch's key wraps every data key"
                          : "rotation is complete: the current master key wraps every data key",
            log_int("wrapped", (int64_t)w->wrapped));
        w->wrapped = 0;
    }
}

static void take_report(KeyWork *w)
{
    const KeyworkReport *report = &w->report;
    w->opened_us = report->opened_us;
    w->left = report->left;
    w->erasure_s = report->erasure_s;
    w->dumped_us = report->dumped_us;
    log_events(report);
    note_wrapped(w);
    if (report->failed > 0) {
        log_failure(w, &report->failure);
    } else {
        w->failing = false;
        metric_set(w->failed, 0);
    }
}

// ---- the end of an epoch key, in AUDIT ----

static bool ask_for_entry(void *ctx, const KeyworkEnding *ending, Error *err)
{
    KeyWork *w = ctx;
    uv_mutex_lock(&w->mutex);
    w->ending = *ending;
    w->question = ASKED;
    uv_async_send(&w->asking);
    while (w->question != ANSWERED) {
        uv_cond_wait(&w->answered, &w->mutex);
    }
    w->question = NOTHING;
    Error answer = w->answer;
    uv_mutex_unlock(&w->mutex);
    return answer.kind == ERROR_NONE ||
           error_set(
               err, answer.kind, "an epoch key is not destroyed, AUDIT has no entry of it: %s",
               answer.text);
}

static void answer(KeyWork *w, const Error *err)
{
    uv_mutex_lock(&w->mutex);
    w->answer = err != NULL ? *err : (Error){.kind = ERROR_NONE};
    w->question = ANSWERED;
    uv_cond_signal(&w->answered);
    uv_mutex_unlock(&w->mutex);
}

static void on_entry_stored(void *ctx, const Error *err, const AuditHead *head)
{
    (void)head;
    answer(ctx, err);
}

// The same entry at each try: request, action, target and time are the epoch's.
static void append_entry(KeyWork *w, const KeyworkEnding *ending)
{
    char id[KEY_ID_SIZE], number[16], request[32];
    key_id_print(ending->id, id);
    (void)snprintf(number, sizeof number, "%u", (unsigned)ending->number);
    (void)snprintf(request, sizeof request, "epoch-%u-%s", (unsigned)ending->number, id);
    const AuditDetail details[] = {{"epoch", number}};
    audit_log_append(
        w->audit,
        &(AuditNote){
            .kind = AUDIT_ERASURE,
            .tenant = "platform",
            .action = "epoch_key.destroyed",
            .actor = "service ingest",
            .target = id,
            .request_id = request,
            .program = "stentor-ingest",
            .details = details,
            .detail_count = 1,
            .at_us = ending->due_us},
        on_entry_stored, w);
}

static void on_asked(uv_async_t *asking)
{
    KeyWork *w = asking->data;
    Error err = {0};
    uv_mutex_lock(&w->mutex);
    bool asked = w->question == ASKED;
    KeyworkEnding ending = w->ending;
    w->question = asked ? UNDER_WAY : w->question;
    uv_mutex_unlock(&w->mutex);
    if (!asked) {
        return;
    }
    if (w->freeing) {
        error_set(&err, ERROR_CANCELLED, "ingest is stopping");
        answer(w, &err);
    } else if (!bus_connected(w->bus)) {
        error_set(&err, ERROR_TRANSIENT, "NATS is away");
        answer(w, &err);
    } else {
        append_entry(w, &ending);
    }
}

// ---- turns ----

static void on_work(uv_work_t *job)
{
    KeyWork *w = job->data;
    error_clear(&w->err);
    w->ok = keywork_turn(w->work, clock_now_us(), &w->report, &w->err);
}

static void on_handle_closed(uv_handle_t *handle)
{
    KeyWork *w = handle->data;
    if (--w->handles > 0) {
        return;
    }
    void (*on_freed)(void *) = w->on_freed;
    void *ctx = w->freed_ctx;
    keywork_free(w->work);
    uv_cond_destroy(&w->answered);
    uv_mutex_destroy(&w->mutex);
    free(w);
    on_freed(ctx);
}

static void close_handles(KeyWork *w)
{
    w->handles = 2;
    uv_close((uv_handle_t *)&w->timer, on_handle_closed);
    uv_close((uv_handle_t *)&w->asking, on_handle_closed);
}

static void on_timer(uv_timer_t *timer);

static void finish_turn(KeyWork *w)
{
    w->busy = false;
    if (w->freeing) {
        close_handles(w);
        return;
    }
    if (w->ok) {
        take_report(w);
    } else if (w->err.kind != ERROR_CANCELLED) {
        log_events(&w->report);
        log_failure(w, &w->err);
    }
    uv_timer_start(&w->timer, on_timer, w->ok && w->report.again ? AGAIN_MS : LOOK_MS, 0);
}

static void on_work_done(uv_work_t *job, int status)
{
    (void)status; // never cancelled
    finish_turn(job->data);
}

static void on_timer(uv_timer_t *timer)
{
    KeyWork *w = timer->data;
    w->busy = true;
    int queued = uv_queue_work(w->loop, &w->job, on_work, on_work_done);
    assert(queued == 0);
    (void)queued;
}

// ---- life ----

static double read_age(void *ctx)
{
    const KeyWork *w = ctx;
    return w->opened_us > 0 ? (double)(clock_now_us() - w->opened_us) / 1e6 : 0;
}

static double read_dump_age(void *ctx)
{
    const KeyWork *w = ctx;
    return w->dumped_us > 0 ? (double)(clock_now_us() - w->dumped_us) / 1e6 : 0;
}

static double read_erasure(void *ctx)
{
    const KeyWork *w = ctx;
    return w->erasure_s;
}

static double read_left(void *ctx)
{
    const KeyWork *w = ctx;
    return (double)w->left;
}

static void build_witness(KeyWork *w, Bus *bus)
{
    w->bus = bus;
    w->audit = audit_log_new(bus);
    int made = uv_mutex_init(&w->mutex) | uv_cond_init(&w->answered) |
               uv_async_init(w->loop, &w->asking, on_asked);
    assert(made == 0);
    (void)made;
    w->asking.data = w;
}

KeyWork *key_work_new(uv_loop_t *loop, Bus *bus, const KeyworkOptions *options, Metrics *metrics)
{
    KeyWork *w = xcalloc(1, sizeof *w);
    KeyworkOptions own = *options;
    own.witness = ask_for_entry;
    own.witness_ctx = w;
    w->loop = loop;
    build_witness(w, bus);
    w->work = keywork_new(&own);
    w->has_epochs = options->epoch_folder[0] != '\0';
    w->job.data = w;
    // clang-format off
    w->rewrapped = metrics_counter(metrics, "stentor_ingest_keys_rewrapped_total", "", "Data keys that the current key wrapped in place of an older one");
    w->failed = metrics_gauge(metrics, "stentor_ingest_key_work_failing", "", "1: the last turn of the work on keys failed, here");
    metrics_gauge_fn(metrics, "stentor_ingest_epoch_age_seconds", "", "Age of the open epoch; 0: there is none, or another replica does the work on keys", read_age, w);
    metrics_gauge_fn(metrics, "stentor_ingest_keys_dump_age_seconds", "", "Age of the newest dump of the keys; 0: there is none, or another replica does the work on keys", read_dump_age, w);
    metrics_gauge_fn(metrics, "stentor_ingest_erasure_waiting_seconds", "", "How long the oldest erasure waits that no hold keeps; 0: none, or another replica does the work on keys", read_erasure, w);
    metrics_gauge_fn(metrics, "stentor_ingest_keys_left", "", "Data keys that another than the current key wraps, counted to 100,000, where the work on keys is done", read_left, w);
    // clang-format on
    uv_timer_init(loop, &w->timer);
    w->timer.data = w;
    uv_timer_start(&w->timer, on_timer, 0, 0);
    return w;
}

void key_work_free(KeyWork *work, void (*on_freed)(void *ctx), void *ctx)
{
    work->freeing = true;
    work->on_freed = on_freed;
    work->freed_ctx = ctx;
    uv_timer_stop(&work->timer);
    keywork_stop(work->work);
    audit_log_free(work->audit); // an entry under way ends now, and the turn that waits for it
    work->audit = NULL;
    if (!work->busy) {
        close_handles(work);
    }
}
