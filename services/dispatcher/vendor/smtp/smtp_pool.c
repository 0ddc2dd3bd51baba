// SPDX-License-Identifier: Apache-2.0
// The connections of the pool: opened, given mails, closed. smtp_queue.c has the mails that wait.
#include <assert.h>
#include <stdlib.h>

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/ticks/ticks.h"
#include "services/dispatcher/vendor/smtp/smtp_pool_internal.h"

enum {
    TICK_MS = 200,
    REST_MS = 1000,       // between two ticks while there is neither a connection nor a mail
    TRIES_MAX = 5,        // of one mail on connections that broke before its final dot
    BACKOFF_MIN_MS = 100, // doubles
    BACKOFF_MAX_MS = 10000,
    CLOSE_MS = 1000,
    // One in this many connections, and at least one of two, serves critical and high only:
    // otherwise a campaign to a slow server would hold them all. The same number, and at least one
    // of three, does not serve the lowest lane.
    RESERVED_SHARE = 8,
    LIMITED_MS = 2000, // a mail that is late so soon after the limit kept one is late because of it
};

static void answer(Mail *mail, SendState state, const char *text)
{
    SendResult result = {.state = state, .reply = REPLY_RETRY, .text = str_from(text)};
    mail->on_done(mail->ctx, mail, &result);
}

static void answer_late(const SmtpPool *pool, Mail *mail)
{
    bool trouble = pool->trouble.text[0] != '\0';
    const char *text = trouble ? pool->trouble.text : "no smtp connection was free in time";
    SendResult result = {
        .state = SEND_UNSENT, .waited = !trouble, .reply = REPLY_RETRY, .text = str_from(text)};
    if (!trouble && pool->limited_us > 0 &&
        clock_mono_us() - pool->limited_us < LIMITED_MS * INT64_C(1000)) {
        result.code = STR(SMTP_POOL_LIMITED);
        result.text = STR("the limit of the smtp server was used up in time");
    }
    mail->on_done(mail->ctx, mail, &result);
}

// Reads the clock: uv_now() may be old when this process was stopped (SIGSTOP, a machine that
// swaps).
static uint64_t clock_ms(void)
{
    return uv_hrtime() / 1000000;
}

static bool is_late(const Mail *mail, uint64_t now_ms)
{
    return mail->give_up_at_ms <= now_ms || mail->held_until_ms <= now_ms;
}

// Mails of a lane expire nearly in the order of their arrival, so the heads are enough.
static void drop_late(SmtpPool *pool)
{
    uint64_t now = clock_ms();
    for (int lane = 0; lane < PRIORITY_COUNT; lane++) {
        while (pool->lanes[lane].head != NULL && is_late(pool->lanes[lane].head, now)) {
            answer_late(pool, smtp_queue_pop(pool, (Priority)lane));
        }
    }
}

static void release_queue(SmtpPool *pool)
{
    for (int lane = 0; lane < PRIORITY_COUNT; lane++) {
        Mail *mail;
        while ((mail = smtp_queue_pop(pool, (Priority)lane)) != NULL) {
            answer(mail, SEND_RELEASED, "draining");
        }
    }
}

static void pump_soon(SmtpPool *pool);

// ---- events of a connection ----

static void on_soon_timer(uv_timer_t *timer);

// false: the limit is used up; the mail waits, and the others with it.
static bool is_within_limit(SmtpPool *pool, Mail *mail)
{
    int64_t at_us = 0;
    if (pool->may_start == NULL ||
        pool->may_start(pool->may_start_ctx, mail->lane, pool->queued + 1, &at_us)) {
        return true;
    }
    smtp_queue_push_front(pool, mail);
    int64_t now_us = clock_mono_us();
    int64_t wait_ms = (at_us - now_us) / 1000 + 1;
    pool->limited_us = now_us;
    pool->limited_until_us = at_us;
    uv_timer_start(&pool->soon, on_soon_timer, wait_ms > 0 ? (uint64_t)wait_ms : 1, 0);
    return false;
}

static Mail *on_client_next(void *ctx)
{
    SmtpPlace *place = ctx;
    SmtpPool *pool = place->pool;
    if (pool->draining) {
        return NULL;
    }
    uint64_t now = clock_ms();
    Mail *mail;
    while ((mail = smtp_queue_next(pool, place)) != NULL && is_late(mail, now)) {
        answer_late(pool, mail);
    }
    if (mail == NULL || !is_within_limit(pool, mail)) {
        return NULL;
    }
    smtp_queue_given(place, mail);
    return mail;
}

static bool on_client_may_write(void *ctx, const Mail *mail)
{
    (void)ctx;
    return mail->held_until_ms > clock_ms();
}

static void on_client_answer(void *ctx, Mail *mail, const SendResult *result)
{
    SmtpPool *pool = ((SmtpPlace *)ctx)->pool;
    pool->reached_ms = uv_now(pool->loop);
    smtp_queue_answered(ctx, mail);
    mail->on_done(mail->ctx, mail, result);
}

static void on_client_ready(void *ctx)
{
    SmtpPool *pool = ((SmtpPlace *)ctx)->pool;
    pool->reached_ms = uv_now(pool->loop);
    if (pool->trouble.text[0] != '\0') {
        LOG(LOG_INFO, "the smtp server can be reached again", log_text("host", pool->options.host),
            log_int("seconds", (int64_t)(pool->reached_ms - pool->down_ms) / 1000));
    }
    pool->probing = false;
    pool->failures = 0;
    pool->retry_at_ms = 0;
    error_clear(&pool->trouble);
    pump_soon(pool);
}

static void on_client_lost(void *ctx, Mail *mail)
{
    smtp_queue_answered(ctx, mail);
    answer(mail, SEND_UNKNOWN, "the connection was lost after the whole mail was sent");
}

static void on_client_back(void *ctx, Mail *mail)
{
    SmtpPool *pool = ((SmtpPlace *)ctx)->pool;
    smtp_queue_answered(ctx, mail);
    mail->tries++;
    if (pool->draining) {
        answer(mail, SEND_RELEASED, "draining");
    } else if (mail->held_until_ms <= clock_ms()) {
        answer(mail, SEND_UNSENT, "the lease of its claim ended before it could be written");
    } else if (mail->tries >= TRIES_MAX) {
        answer(mail, SEND_UNSENT, "every connection broke before the mail was sent");
    } else {
        smtp_queue_push_front(pool, mail);
    }
}

static void note_failure(SmtpPool *pool, const Error *err)
{
    uint64_t wait = BACKOFF_MAX_MS;
    if (pool->failures < 7) {
        wait = (uint64_t)BACKOFF_MIN_MS << pool->failures;
    }
    if (pool->failures == 0 || pool->reached_ms > pool->down_ms) {
        pool->down_ms = uv_now(pool->loop);
        pool->down_since_us = clock_now_us();
    }
    if (pool->failures++ == 0) {
        LOG(LOG_WARN,
            "the smtp server cannot be used; mails wait while the connection is tried again",
            log_error(err));
    }
    pool->turn++;
    pool->stats.connect_failures++;
    pool->trouble = *err;
    pool->retry_at_ms = uv_now(pool->loop) + (wait < BACKOFF_MAX_MS ? wait : BACKOFF_MAX_MS);
}

static void end_when_closed(SmtpPool *pool);

static void on_client_closed(void *ctx, SmtpClient *client, bool useful, const Error *err)
{
    SmtpPlace *place = ctx;
    SmtpPool *pool = place->pool;
    assert(place->client == client);
    place->client = NULL;
    pool->count--;
    pool->stats.closed++;
    if (!useful && err->kind != ERROR_CANCELLED) {
        note_failure(pool, err);
    } else if (err->kind != ERROR_CANCELLED) {
        LOG(LOG_DEBUG, "an smtp connection ended", log_error(err));
    }
    if (pool->closing) {
        end_when_closed(pool);
    } else {
        pump_soon(pool);
    }
}

// ---- distribution ----

static const SmtpClientHooks client_hooks = {
    .session =
        {.next = on_client_next, .may_write = on_client_may_write, .on_answer = on_client_answer},
    .on_ready = on_client_ready,
    .on_lost = on_client_lost,
    .on_back = on_client_back,
    .on_closed = on_client_closed,
};

static void open_connection(SmtpPool *pool, SmtpPlace *place)
{
    SmtpClientContext context = {
        .loop = pool->loop,
        .options = &pool->options,
        .tls = pool->tls,
        .hooks = &client_hooks,
        .ctx = place,
        .turn = pool->turn,
    };
    pool->stats.connects++;
    pool->count++;
    place->client = smtp_client_new(&context);
}

// NULL: all of that kind are taken.
static SmtpPlace *free_place(SmtpPool *pool, Priority lowest)
{
    for (unsigned i = 0; i < pool->options.connections; i++) {
        SmtpPlace *place = &pool->places[i];
        if (place->client == NULL && place->lowest == lowest) {
            return place;
        }
    }
    return NULL;
}

static unsigned count_connecting(const SmtpPool *pool)
{
    unsigned connecting = 0;
    for (unsigned i = 0; i < pool->options.connections; i++) {
        const SmtpClient *client = pool->places[i].client;
        connecting += client != NULL && !smtp_client_ready(client) ? 1 : 0;
    }
    return connecting;
}

static void wake_idle(SmtpPool *pool)
{
    for (unsigned i = 0; i < pool->options.connections && pool->queued > 0; i++) {
        SmtpClient *client = pool->places[i].client;
        if (client != NULL && smtp_client_idle(client)) {
            smtp_client_wake(client);
        }
    }
}

// The place for one more connection; NULL: none is needed. A reserved one is opened when the
// general ones are taken and a mail that it may carry waits.
static SmtpPlace *next_place(SmtpPool *pool, unsigned connecting)
{
    if (connecting >= pool->queued) {
        return NULL;
    }
    for (int lowest = PRIORITY_LOW; lowest >= PRIORITY_HIGH; lowest--) {
        SmtpPlace *place =
            smtp_queue_has(pool, (Priority)lowest) ? free_place(pool, (Priority)lowest) : NULL;
        if (place != NULL) {
            return place;
        }
    }
    return NULL;
}

// For a connection that only shows whether the server is back: the last of the places, so that the
// reserved ones stay free. NULL: a mail will show it, or none need be.
static SmtpPlace *probe_place(SmtpPool *pool)
{
    bool wanted = pool->failures > 0 || pool->probing;
    return wanted && pool->queued == 0 && pool->count == 0
               ? &pool->places[pool->options.connections - 1]
               : NULL;
}

// Gives idle connections work, and opens further ones while more mails wait than connections are
// being opened.
static void pump(SmtpPool *pool)
{
    if (pool->queued > 0 && clock_mono_us() < pool->limited_until_us &&
        !smtp_queue_has(pool, PRIORITY_HIGH)) {
        return;
    }
    wake_idle(pool);
    if (pool->draining || uv_now(pool->loop) < pool->retry_at_ms) {
        return;
    }
    unsigned connecting = count_connecting(pool);
    unsigned at_once = pool->failures > 0 ? 1 : pool->options.connections;
    SmtpPlace *place = NULL;
    while (connecting < at_once && (place = next_place(pool, connecting)) != NULL) {
        open_connection(pool, place);
        connecting++;
    }
    place = probe_place(pool);
    if (place != NULL) {
        open_connection(pool, place);
    }
}

static void on_soon_timer(uv_timer_t *timer)
{
    SmtpPool *pool = timer->data;
    pump(pool);
}

static void pump_soon(SmtpPool *pool)
{
    if (!pool->closing && !uv_is_active((uv_handle_t *)&pool->soon)) {
        uv_timer_start(&pool->soon, on_soon_timer, 0, 0);
    }
}

static void for_each_client(SmtpPool *pool, void (*what)(SmtpClient *client))
{
    for (unsigned i = 0; i < pool->options.connections; i++) {
        if (pool->places[i].client != NULL) {
            what(pool->places[i].client);
        }
    }
}

static void check_times(SmtpPool *pool)
{
    uint64_t now = uv_now(pool->loop);
    if (pool->closing && now >= pool->close_at_ms) {
        for_each_client(pool, smtp_client_abort);
        return;
    }
    for (unsigned i = 0; i < pool->options.connections; i++) {
        if (pool->places[i].client != NULL) {
            smtp_client_tick(pool->places[i].client, now);
        }
    }
    drop_late(pool);
    pump(pool);
}

static void on_tick_timer(uv_timer_t *timer)
{
    SmtpPool *pool = timer->data;
    check_times(pool);
    bool rests = pool->count == 0 && pool->queued == 0 && pool->failures == 0 && !pool->closing;
    ticks_start(timer, on_tick_timer, rests ? REST_MS : TICK_MS);
}

// ---- start and stop ----

static void make_places(SmtpPool *pool)
{
    unsigned count = pool->options.connections;
    unsigned reserved = count < 2 ? 0 : (count + RESERVED_SHARE - 1) / RESERVED_SHARE;
    unsigned raised = count < 3 ? 0 : reserved;
    for (unsigned i = 0; i < count; i++) {
        Priority lowest = i < reserved ? PRIORITY_HIGH : PRIORITY_NORMAL;
        pool->places[i] =
            (SmtpPlace){.pool = pool, .lowest = i < reserved + raised ? lowest : PRIORITY_LOW};
        for (int lane = 0; lane <= (int)pool->places[i].lowest; lane++) {
            pool->tenant_max[lane]++;
        }
    }
    for (int lane = 0; lane < PRIORITY_COUNT; lane++) {
        unsigned part = pool->tenant_max[lane] * pool->options.tenant_percent / 100;
        pool->tenant_max[lane] = part > 0 ? part : 1;
    }
}

SmtpPool *smtp_pool_new(uv_loop_t *loop, const SmtpOptions *options, Error *err)
{
    TlsContext *tls = NULL;
    if (options->tls != SMTP_TLS_OFF && options->tls != SMTP_TLS_PLAINTEXT) {
        tls = tls_context_new(options->ca_file, options->tls == SMTP_TLS_REQUIRED, NULL, err);
        if (tls == NULL) {
            error_wrap(err, "STENTOR_SMTP_CA_FILE");
            return NULL;
        }
    }
    SmtpPool *pool = xcalloc(1, sizeof *pool);
    pool->loop = loop;
    pool->options = *options;
    pool->tls = tls;
    make_places(pool);
    uv_timer_init(loop, &pool->tick);
    uv_timer_init(loop, &pool->soon);
    pool->tick.data = pool;
    pool->soon.data = pool;
    uv_timer_start(&pool->tick, on_tick_timer, TICK_MS, TICK_MS);
    return pool;
}

static void send_through(void *self, Mail *mail)
{
    smtp_pool_send(self, mail);
}

static void drain_through(void *self)
{
    smtp_pool_drain(self);
}

static VendorHealth health_through(void *self)
{
    return smtp_pool_health(self);
}

static void probe_through(void *self)
{
    smtp_pool_probe(self);
}

Vendor smtp_pool_vendor(SmtpPool *pool)
{
    return (Vendor){
        .name = "smtp",
        .self = pool,
        .send = send_through,
        .drain = drain_through,
        .health = health_through,
        .probe = probe_through};
}

void smtp_pool_limit(SmtpPool *pool, SmtpPoolMayStart may_start, void *ctx)
{
    pool->may_start = may_start;
    pool->may_start_ctx = ctx;
}

void smtp_pool_send(SmtpPool *pool, Mail *mail)
{
    mail->tries = 0;
    (void)str_to_c(str_from(pool->options.host), mail->server, sizeof mail->server);
    company_note(&pool->company, mail->tenant, (int64_t)uv_now(pool->loop) * 1000);
    smtp_queue_push(pool, mail);
    if (mail->lane <= PRIORITY_HIGH && !pool->draining) { // a part of the limit is kept for it
        uv_timer_start(&pool->soon, on_soon_timer, 0, 0);
    }
    pump_soon(pool);
}

static void on_drain_timer(uv_timer_t *timer)
{
    SmtpPool *pool = timer->data;
    release_queue(pool);
}

void smtp_pool_drain(SmtpPool *pool)
{
    if (!pool->draining) {
        pool->draining = true;
        // From now on the timer releases mails, so those handed over later are answered too.
        uv_timer_start(&pool->soon, on_drain_timer, 0, TICK_MS);
    }
}

static void on_handle_closed(uv_handle_t *handle)
{
    SmtpPool *pool = handle->data;
    if (--pool->handles > 0) {
        return;
    }
    void (*on_closed)(void *) = pool->on_closed;
    void *ctx = pool->closed_ctx;
    tls_context_free(pool->tls);
    free(pool);
    on_closed(ctx);
}

static void end_when_closed(SmtpPool *pool)
{
    if (pool->count > 0 || pool->handles > 0) {
        return;
    }
    release_queue(pool);
    pool->handles = 2;
    uv_close((uv_handle_t *)&pool->tick, on_handle_closed);
    uv_close((uv_handle_t *)&pool->soon, on_handle_closed);
}

void smtp_pool_close(SmtpPool *pool, void (*on_closed)(void *ctx), void *ctx)
{
    pool->draining = true;
    pool->closing = true;
    pool->on_closed = on_closed;
    pool->closed_ctx = ctx;
    pool->close_at_ms = uv_now(pool->loop) + CLOSE_MS;
    for_each_client(pool, smtp_client_quit);
    end_when_closed(pool);
}

SmtpPoolStats smtp_pool_stats(const SmtpPool *pool)
{
    SmtpPoolStats stats = pool->stats;
    stats.connections = pool->count;
    stats.queued = pool->queued;
    return stats;
}

VendorHealth smtp_pool_health(const SmtpPool *pool)
{
    VendorHealth health = {.waiting = pool->queued, .reason = ""};
    if (pool->reached_ms > 0) {
        uint64_t now = uv_now(pool->loop);
        health.reached_at_us = clock_now_us() - (int64_t)(now - pool->reached_ms) * 1000;
    }
    if (pool->failures > 0 && pool->reached_ms <= pool->down_ms) {
        health.down_since_us = pool->down_since_us;
        health.reason = pool->trouble.text;
    }
    return health;
}

void smtp_pool_probe(SmtpPool *pool)
{
    pool->probing = true;
}
