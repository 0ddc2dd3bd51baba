// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/accept/accept.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/auth.h"
#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/model/company.h"
#include "services/ingest/accept/accept_group.h"
#include "services/ingest/accept/accept_internal.h"
#include "services/ingest/accept/accept_trace.h"

enum { RETRY_FIRST_MS = 50, RETRY_MAX_MS = 1000, ARENA_BYTES = 64 * 1024 };

static void pump(Accept *a);

static size_t groups_in_air(const Accept *a)
{
    size_t count = 0;
    for (size_t i = 0; i < ACCEPT_GROUPS_MAX; i++) {
        count += a->groups[i] != NULL;
    }
    return count;
}

// ---- one group ----

static void free_group(Group *g)
{
    for (size_t i = 0; i < ACCEPT_GROUPS_MAX; i++) {
        if (g->accept->groups[i] == g) {
            g->accept->groups[i] = NULL;
        }
    }
    arena_free(g->arena); // the group itself lives in it
}

static void end_group(Group *g)
{
    Accept *a = g->accept;
    free_group(g);
    pump(a);
}

static void refuse_group(Group *g, const Error *err)
{
    Accept *a = g->accept;
    AcceptResult result = {.verdict = ACCEPT_UNAVAILABLE, .error = *err};
    Submission *next = NULL;
    for (Submission *s = g->first; s != NULL; s = next) {
        next = s->next;
        accept_answer(a, s, &result);
    }
    if (err->kind == ERROR_CONFIG) {
        a->options.on_broken(a->options.ctx, err);
    }
    end_group(g);
}

// Tried again with the same ids and parts: a commit whose answer was lost is one in effect.
static void fail_group(Group *g, const Error *err)
{
    int64_t now_us = clock_mono_us();
    if (err->kind != ERROR_TRANSIENT || now_us >= g->give_up_us) {
        refuse_group(g, err);
        return;
    }
    int64_t wait_ms = RETRY_FIRST_MS << (g->tries < 5 ? g->tries : 5);
    g->tries++;
    g->retry_at_us = now_us + (wait_ms > RETRY_MAX_MS ? RETRY_MAX_MS : wait_ms) * 1000;
}

static void count_decisions(const Group *g)
{
    const IngestMetrics *m = g->accept->options.metrics;
    double counts[GATE_GATHER + 1] = {0};
    for (size_t i = 0; i < g->gate.count; i++) {
        const Notice *notice = &g->gate.notices[i];
        counts[notice->decision.verdict] += g->parts[notice->part].accept_id != 0;
    }
    metric_add(m->suppressed, counts[GATE_SUPPRESS]);
    metric_add(m->deferred, counts[GATE_DEFER]);
    metric_add(m->gathered, counts[GATE_GATHER]);
    metric_add(m->lowered, (double)g->lowered);
}

// A flood of the only tenant that sends delays no other, and the sweep would read its rows again.
static void publish_rows(const Group *g)
{
    const PublishedRow *rows = group_published_rows(g);
    bool company = company_is(&g->accept->company, clock_mono_us());
    for (size_t i = 0; i < g->row_count; i++) {
        if (rows[i].accept_id != 0) {
            size_t room =
                rows[i].lowered && company ? ROW_PUBLISHER_FLOOD_MAX : ROW_PUBLISHER_PENDING_MAX;
            (void)row_publisher_send(g->accept->options.publisher, room, &rows[i]);
        }
    }
}

static void log_accepted(const Notice *notice)
{
    char to[LOG_MASKED_SIZE];
    mask_address(notice->request.to, to, sizeof to);
    bool suppressed = notice->decision.verdict == GATE_SUPPRESS;
    LOG(LOG_INFO,
        suppressed ? "a notification was accepted and suppressed" : "a notification was accepted",
        log_str("tenant", notice->tenant), log_text("notification", notice->id),
        log_str("correlation", notice->request.correlation_id),
        log_text("channel", channel_name(notice->request.channel)),
        log_str("template", notice->request.template_key),
        log_str("recipient", notice->request.recipient_id), log_text("to", to),
        log_text("reason", gate_reason_name(notice->decision.reason)));
}

// Before the answers: a submission may be gone with its own.
static void log_group(const Group *g)
{
    for (size_t i = 0; i < g->gate.count; i++) {
        const Notice *notice = &g->gate.notices[i];
        if (g->parts[notice->part].accept_id != 0 && log_takes_notification(LOG_INFO)) {
            log_accepted(notice);
        }
    }
}

static void answer_one(Group *g, Submission *s)
{
    Accept *a = g->accept;
    AcceptResult result = accept_result_of(s, &g->parts[s->part]);
    metric_add(
        a->options.metrics->accepted, result.verdict == ACCEPT_STORED ? (double)s->count : 0);
    accept_answer(a, s, &result);
}

// Those whose key was there stay in the group.
static void answer_new(Group *g)
{
    Submission **at = &g->first;
    while (*at != NULL) {
        Submission *s = *at;
        if (g->parts[s->part].accept_id == 0) {
            at = &s->next;
        } else {
            *at = s->next; // `s` is its owner's again once it is answered
            answer_one(g, s);
        }
    }
}

// Between the commit and the publish the events are in the accept log and in this memory. Killed
// here: the callers have no answer or a 202, and the sweep publishes the rows
// (tests/integration/faults/test_kill.py).
static void finish_new(Group *g)
{
    Accept *a = g->accept;
    IngestMetrics *m = a->options.metrics;
    CRASH_POINT("ingest.committed");
    metric_observe(m->commit_seconds, (double)(clock_now_us() - g->accepted_at_us) / 1e6);
    metric_observe(m->batch_size, (double)g->notifications);
    count_decisions(g);
    log_group(g);
    accept_trace_group(a->options.tracer, g);
    answer_new(g);
    CRASH_POINT("ingest.answered");
    publish_rows(g);
}

// ---- repeats: what their keys' first requests were answered ----

static void on_db_found(void *ctx, DbTxn *txn, const Error *err)
{
    Group *g = ctx;
    if (err != NULL) {
        fail_group(g, err);
        return;
    }
    accept_sql_found(txn, g->parts, g->part_count, g->arena);
    Submission *next = NULL;
    for (Submission *s = g->first; s != NULL; s = next) {
        next = s->next;
        answer_one(g, s);
    }
    end_group(g);
}

// Killed before it is answered: nothing of a repeat is stored, and the caller asks once more
// (tests/integration/faults/test_crash_points.py).
static void find_answers(Group *g)
{
    DbTxn *txn = db_txn_new(g->accept->options.pool);
    accept_sql_find(txn, g->parts, g->part_count);
    CRASH_POINT("ingest.refused");
    db_txn_submit(txn, on_db_found, g);
}

// ---- the commit ----

static void on_db_committed(void *ctx, DbTxn *txn, const Error *err)
{
    Group *g = ctx;
    Error read_err = {0};
    if (err != NULL) {
        fail_group(g, err);
        return;
    }
    if (!accept_sql_read(txn, g->parts, g->part_count, &read_err)) {
        fail_group(g, &read_err);
        return;
    }
    g->committed = true;
    finish_new(g);
    if (g->first != NULL) {
        find_answers(g);
    } else {
        end_group(g);
    }
}

static void commit_group(Group *g)
{
    DbTxn *txn = db_txn_new(g->accept->options.pool);
    accept_sql_add(
        txn, g->parts, g->part_count, g->accept->options.packed ? FRAMES_HEAD_ZSTD : FRAMES_HEAD,
        g->accepted_at_us);
    CRASH_POINT("ingest.building");
    db_txn_submit(txn, on_db_committed, g);
}

static void on_keys_resolved(void *ctx, const Error *err)
{
    Group *g = ctx;
    Error build_err = {0};
    if (err != NULL) {
        fail_group(g, err);
    } else if (!group_build(g, g->accept->options.share, &build_err)) {
        fail_group(g, &build_err);
    } else {
        commit_group(g);
    }
}

static void resolve_keys(Group *g)
{
    Keyring *keyring = g->accept->options.keyring;
    group_want_keys(g, keyring);
    if (g->want_count == 0) {
        on_keys_resolved(g, NULL);
        return;
    }
    keyring_resolve(keyring, g->wants, g->want_count, on_keys_resolved, g);
}

static void on_gate_decided(void *ctx, const Error *err)
{
    Group *g = ctx;
    if (err != NULL) {
        fail_group(g, err);
        return;
    }
    g->gated = true;
    g->gated_after_us = clock_mono_us() - g->gathered_at_us;
    resolve_keys(g);
}

static void run_group(Group *g)
{
    g->retry_at_us = 0;
    if (g->committed) {
        find_answers(g);
    } else if (g->built) {
        commit_group(g);
    } else if (g->gated) {
        resolve_keys(g);
    } else {
        g->gate = (GateRun){.gate = &g->accept->gate, .done = on_gate_decided, .ctx = g};
        group_prepare(g);
        gate_run(&g->gate);
    }
}

// ---- gathering ----

static void take_turn(Accept *a, TenantQueue *q)
{
    q->next = NULL;
    if (a->last == NULL) {
        a->first = q;
    } else {
        a->last->next = q;
    }
    a->last = q;
}

static TenantQueue *end_turn(Accept *a)
{
    TenantQueue *q = a->first;
    a->first = q->next;
    if (a->first == NULL) {
        a->last = NULL;
    }
    return q;
}

// Of the tenant whose turn it is; it is behind the others then.
static Submission *take_next(Accept *a)
{
    TenantQueue *q = end_turn(a);
    Submission *s = q->head;
    q->head = s->next;
    if (q->head == NULL) {
        q->tail = NULL;
    } else {
        take_turn(a, q);
    }
    s->next = NULL;
    a->gathered -= s->count;
    a->gathered_bytes -= s->bytes;
    return s;
}

static bool is_full(size_t notifications, size_t bytes)
{
    return notifications >= ACCEPT_GROUP_MAX || bytes >= ACCEPT_GROUP_BYTES;
}

static Group *gather_group(Accept *a)
{
    Arena *arena = arena_new(ARENA_BYTES);
    Group *g = arena_zalloc(arena, sizeof *g);
    g->accept = a;
    g->arena = arena;
    g->accepted_at_us = clock_now_us();
    g->gathered_at_us = clock_mono_us();
    g->give_up_us = a->first->head->queued_at_us + ACCEPT_PATIENCE_MS * INT64_C(1000);
    Submission **end = &g->first;
    while (a->first != NULL && !is_full(g->notifications, g->bytes)) {
        *end = take_next(a);
        g->notifications += (*end)->count;
        g->bytes += (*end)->bytes;
        // Rows and frames are published after their submission was answered, when it may be gone.
        (*end)->tenant = arena_str(arena, (*end)->tenant);
        (*end)->traceparent = arena_str(arena, (*end)->traceparent);
        end = &(*end)->next;
    }
    return g;
}

static void start_group(Accept *a)
{
    Group *g = gather_group(a);
    for (size_t i = 0; i < ACCEPT_GROUPS_MAX; i++) {
        if (a->groups[i] == NULL) {
            a->groups[i] = g;
            break;
        }
    }
    run_group(g);
}

static void on_timer_pump(uv_timer_t *timer)
{
    Accept *a = timer->data;
    pump(a);
}

static void pump(Accept *a)
{
    if (a->first == NULL || !db_pool_ready(a->options.pool)) {
        return; // the tick comes back to it
    }
    size_t in_air = groups_in_air(a);
    int64_t waited_us = clock_mono_us() - a->first->head->queued_at_us;
    bool due = in_air == 0 || waited_us >= ACCEPT_GATHER_MS * 1000 ||
               is_full(a->gathered, a->gathered_bytes);
    if (in_air < ACCEPT_GROUPS_MAX && due) {
        start_group(a);
        in_air++;
    }
    if (a->first != NULL && in_air < ACCEPT_GROUPS_MAX &&
        !uv_is_active((uv_handle_t *)&a->pump_timer)) {
        (void)uv_timer_start(&a->pump_timer, on_timer_pump, ACCEPT_GATHER_MS, 0);
    }
}

static void queue(Accept *a, TenantQueue *q, Submission *s)
{
    s->next = NULL;
    if (q->tail == NULL) {
        q->head = s;
        take_turn(a, q);
    } else {
        q->tail->next = s;
    }
    q->tail = s;
    a->gathered += s->count;
    a->gathered_bytes += s->bytes;
    // Never inside the caller's call: a turn of the loop gathers what came in with it.
    size_t in_air = groups_in_air(a);
    bool now = in_air == 0 || is_full(a->gathered, a->gathered_bytes);
    if (in_air < ACCEPT_GROUPS_MAX && (now || !uv_is_active((uv_handle_t *)&a->pump_timer))) {
        (void)uv_timer_start(&a->pump_timer, on_timer_pump, now ? 0 : ACCEPT_GATHER_MS, 0);
    }
}

// A key that is in flight in this process: its repeat waits, because one statement may not meet a
// key twice.
static bool follow(Accept *a, Submission *s, Arena *arena)
{
    s->flight = STR_EMPTY;
    if (s->key.len == 0) {
        return false;
    }
    char *name = arena_printf(
        arena, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(s->tenant), STR_ARG(s->scope),
        STR_ARG(s->key));
    Submission *first = map_get(a->flights, str_from(name));
    if (first == NULL) {
        s->flight = str_from(name);
        map_put(a->flights, s->flight, s);
        return false;
    }
    s->next = first->followers;
    first->followers = s;
    return true;
}

bool accept_submit(Accept *a, Submission *s, Arena *arena, Error *err)
{
    if (a->waiting + s->count > ACCEPT_WAITING_MAX ||
        a->waiting_bytes + s->bytes > ACCEPT_WAITING_BYTES_MAX) {
        return error_set(
            err, ERROR_TRANSIENT, "%zu notifications wait to be committed already", a->waiting);
    }
    const TenantQueue *other = map_get(a->tenants, s->tenant);
    if (other != NULL &&
        (other->waiting + s->count > ACCEPT_WAITING_MAX / ACCEPT_TENANT_SHARE ||
         other->waiting_bytes + s->bytes > ACCEPT_WAITING_BYTES_MAX / ACCEPT_TENANT_SHARE)) {
        return error_set(
            err, ERROR_TRANSIENT,
            "%zu notifications of tenant '" STR_FMT "' wait to be committed already",
            other->waiting, STR_ARG(s->tenant));
    }
    TenantQueue *q = accept_queue_of(a, s->tenant);
    s->followers = NULL;
    s->queued_at_us = clock_mono_us();
    company_note(&a->company, s->tenant, s->queued_at_us);
    accept_begin_waiting(a, q, s);
    if (!follow(a, s, arena)) {
        queue(a, q, s);
    }
    return true;
}

// ---- life ----

static void refuse_overdue(Accept *a)
{
    int64_t before_us = clock_mono_us() - ACCEPT_PATIENCE_MS * INT64_C(1000);
    AcceptResult result = {.verdict = ACCEPT_UNAVAILABLE};
    (void)error_set(
        &result.error, ERROR_TRANSIENT, "Postgres did not answer within %d ms",
        (int)ACCEPT_PATIENCE_MS);
    // Each turn is another tenant's, so all are looked at before the first comes again.
    for (size_t asked = 0; a->first != NULL && asked < map_count(a->tenants); asked++) {
        if (a->first->head->queued_at_us < before_us) {
            accept_answer(a, take_next(a), &result);
            asked = 0;
        } else {
            take_turn(a, end_turn(a));
        }
    }
}

static void retry_groups(Accept *a)
{
    int64_t now_us = clock_mono_us();
    bool ready = db_pool_ready(a->options.pool);
    Error err = {0};
    (void)error_set(&err, ERROR_TRANSIENT, "Postgres cannot be reached");
    for (size_t i = 0; i < ACCEPT_GROUPS_MAX; i++) {
        Group *g = a->groups[i];
        bool due = g != NULL && g->retry_at_us != 0 && g->retry_at_us <= now_us;
        if (due && ready) {
            run_group(g);
        } else if (due && now_us >= g->give_up_us) {
            refuse_group(g, &err);
        }
    }
}

void accept_tick(Accept *a)
{
    retry_groups(a);
    refuse_overdue(a);
    pump(a);
}

bool accept_idle(const Accept *a)
{
    return a->first == NULL && groups_in_air(a) == 0;
}

Accept *accept_new(const AcceptOptions *options)
{
    Accept *a = xcalloc(1, sizeof *a);
    a->options = *options;
    a->gate = (Gate){
        .pool = options->pool,
        .catalog = options->catalog,
        .suppressions = options->suppressions,
        .hash_key = master_hash_key(keyring_master(options->keyring)),
        .hash_keys = master_hash_keys(keyring_master(options->keyring)),
    };
    a->flights = map_new(NULL);
    a->tenants = map_new(free);
    (void)uv_timer_init(options->loop, &a->pump_timer);
    a->pump_timer.data = a;
    return a;
}

static void on_uv_closed(uv_handle_t *handle)
{
    Accept *a = handle->data;
    map_free(a->flights);
    map_free(a->tenants);
    a->on_freed(a->freed_ctx);
    free(a);
}

void accept_free(Accept *a, void (*on_freed)(void *ctx), void *ctx)
{
    assert(accept_idle(a)); // else a caller would wait for its answer for ever
    a->on_freed = on_freed;
    a->freed_ctx = ctx;
    uv_close((uv_handle_t *)&a->pump_timer, on_uv_closed);
}
