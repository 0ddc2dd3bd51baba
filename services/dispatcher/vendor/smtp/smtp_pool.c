// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/vendor/smtp/smtp_pool.h"

#include <assert.h>
#include <stdlib.h>

#include "common/base/arena.h"
#include "common/base/log.h"
#include "common/model/company.h"
#include "services/dispatcher/vendor/smtp/smtp_client.h"

enum {
    TICK_MS = 200,
    TRIES_MAX = 5,        // of one mail on connections that broke before its final dot
    BACKOFF_MIN_MS = 100, // doubles
    BACKOFF_MAX_MS = 10000,
    CLOSE_MS = 1000,
    FAIRNESS = 16, // every so many mails the lowest lane goes first, so that it is never starved
    // One in so many connections, and at least one when there are two, is for critical and high
    // alone: a campaign to a slow server would else hold them all. As many again, and at least one
    // when there are three, are not for the lowest lane.
    RESERVED_SHARE = 8,
    PLACE_MAILS = 2, // of one connection: one whose dot was written, and the next one's envelope
};

// A place for one connection; how many of them are reserved is fixed, which one is where is not.
typedef struct Place {
    struct SmtpPool *pool;
    SmtpClient *client;       // NULL: free
    Priority lowest;          // lane that it serves
    Mail *mails[PLACE_MAILS]; // given to it and not answered, oldest first
} Place;

typedef struct Queue {
    Mail *head;
    Mail *tail;
} Queue;

struct SmtpPool {
    uv_loop_t *loop;
    SmtpOptions options;
    SmtpTlsContext *tls;
    Queue lanes[PRIORITY_COUNT];
    size_t queued;
    unsigned taken;
    Place places[SMTP_CONNECTIONS_MAX];  // options.connections of them; the reserved ones first
    unsigned count;                      // of them taken
    unsigned tenant_max[PRIORITY_COUNT]; // of the places that serve the lane, in company
    Company company;
    uv_timer_t tick;
    uv_timer_t soon; // pump() in the next turn of the loop
    uint64_t retry_at_ms;
    unsigned failures; // connections in a row that were of no use
    unsigned turn;
    Error trouble;
    SmtpPoolStats stats;
    bool draining, closing;
    uint64_t close_at_ms;
    int handles;
    void (*on_closed)(void *ctx);
    void *closed_ctx;
};

static void pump(SmtpPool *pool);

// ---- queue ----

static void push_back(SmtpPool *pool, Mail *mail)
{
    Queue *queue = &pool->lanes[mail->lane];
    mail->next = NULL;
    if (queue->tail == NULL) {
        queue->head = mail;
    } else {
        queue->tail->next = mail;
    }
    queue->tail = mail;
    pool->queued++;
}

static void push_front(SmtpPool *pool, Mail *mail)
{
    Queue *queue = &pool->lanes[mail->lane];
    mail->next = queue->head;
    queue->head = mail;
    if (queue->tail == NULL) {
        queue->tail = mail;
    }
    pool->queued++;
}

static Mail *pop(SmtpPool *pool, Queue *queue)
{
    Mail *mail = queue->head;
    if (mail != NULL) {
        queue->head = mail->next;
        if (queue->head == NULL) {
            queue->tail = NULL;
        }
        mail->next = NULL;
        pool->queued--;
    }
    return mail;
}

static bool has_work(const SmtpPool *pool, Priority lowest)
{
    for (int lane = 0; lane <= (int)lowest; lane++) {
        if (pool->lanes[lane].head != NULL) {
            return true;
        }
    }
    return false;
}

// ---- whose turn it is ----

static bool is_company(const SmtpPool *pool)
{
    return company_is(&pool->company, (int64_t)uv_now(pool->loop) * 1000);
}

static bool holds(const Place *place, Str tenant)
{
    for (int i = 0; i < PLACE_MAILS; i++) {
        if (place->mails[i] != NULL && str_eq(place->mails[i]->tenant, tenant)) {
            return true;
        }
    }
    return false;
}

static bool has_its_part(const SmtpPool *pool, const Mail *mail)
{
    unsigned count = 0;
    for (unsigned i = 0; i < pool->options.connections; i++) {
        count += holds(&pool->places[i], mail->tenant) ? 1 : 0;
    }
    return count >= pool->tenant_max[mail->lane];
}

typedef struct Found {
    Queue *queue;
    Mail *before; // NULL: it is the first
    Mail *mail;
} Found;

// The lane's first mail that goes to this place, or may go to any.
static bool find_fair(const SmtpPool *pool, Queue *queue, const Place *place, Found *ret)
{
    Mail *before = NULL;
    for (Mail *mail = queue->head; mail != NULL; before = mail, mail = mail->next) {
        if (holds(place, mail->tenant) || !has_its_part(pool, mail)) {
            *ret = (Found){queue, before, mail};
            return true;
        }
    }
    return false;
}

static Mail *pop_found(SmtpPool *pool, const Found *found)
{
    if (found->before == NULL) {
        return pop(pool, found->queue);
    }
    found->before->next = found->mail->next;
    if (found->queue->tail == found->mail) {
        found->queue->tail = found->before;
    }
    found->mail->next = NULL;
    pool->queued--;
    return found->mail;
}

// `order`: the lanes, in which they are looked at. Behind a mail of a tenant that has its part no
// other tenant's goes: the answer may take long, and it is next here or elsewhere.
static Mail *pop_fair(SmtpPool *pool, const Place *place, const Priority *order, int count)
{
    const Mail *ahead = place->mails[0];
    bool tied = ahead != NULL && has_its_part(pool, ahead);
    Found found;
    for (int i = 0; i < count; i++) {
        if (find_fair(pool, &pool->lanes[order[i]], place, &found)) {
            return tied && !holds(place, found.mail->tenant) ? NULL : pop_found(pool, &found);
        }
    }
    return NULL;
}

static Mail *pop_first(SmtpPool *pool, const Place *place)
{
    Priority order[PRIORITY_COUNT];
    int count = (int)place->lowest + 1;
    bool from_below = place->lowest == PRIORITY_LOW && ++pool->taken % FAIRNESS == 0;
    for (int i = 0; i < count; i++) {
        order[i] = (Priority)(from_below ? count - 1 - i : i);
    }
    if (is_company(pool)) {
        return pop_fair(pool, place, order, count);
    }
    Mail *mail = NULL;
    for (int i = 0; i < count && mail == NULL; i++) {
        mail = pop(pool, &pool->lanes[order[i]]);
    }
    return mail;
}

static void note_given(Place *place, Mail *mail)
{
    int i = 0;
    while (place->mails[i] != NULL) {
        i++;
        assert(i < PLACE_MAILS);
    }
    place->mails[i] = mail;
}

static void note_answered(Place *place, const Mail *mail)
{
    if (place->mails[0] == mail) {
        place->mails[0] = place->mails[1];
        place->mails[1] = NULL;
    } else if (place->mails[1] == mail) {
        place->mails[1] = NULL;
    }
}

static void answer(Mail *mail, SendState state, const char *text)
{
    SendResult result = {.state = state, .reply = REPLY_RETRY, .text = str_from(text)};
    mail->on_done(mail->ctx, mail, &result);
}

static const char *trouble_text(const SmtpPool *pool)
{
    return pool->trouble.text[0] != '\0' ? pool->trouble.text
                                         : "no smtp connection was free in time";
}

// Of this moment: uv_now() may be older than the time for which this process was stopped (SIGSTOP,
// a machine that swaps).
static uint64_t clock_ms(void)
{
    return uv_hrtime() / 1000000;
}

static bool is_late(const Mail *mail, uint64_t now_ms)
{
    return mail->give_up_at_ms <= now_ms || mail->held_until_ms <= now_ms;
}

// Mails of a lane end nearly in the order in which they came, so the heads tell.
static void drop_late(SmtpPool *pool)
{
    uint64_t now = clock_ms();
    for (int lane = 0; lane < PRIORITY_COUNT; lane++) {
        while (pool->lanes[lane].head != NULL && is_late(pool->lanes[lane].head, now)) {
            answer(pop(pool, &pool->lanes[lane]), SEND_UNSENT, trouble_text(pool));
        }
    }
}

static void release_queue(SmtpPool *pool)
{
    for (int lane = 0; lane < PRIORITY_COUNT; lane++) {
        Mail *mail;
        while ((mail = pop(pool, &pool->lanes[lane])) != NULL) {
            answer(mail, SEND_RELEASED, "draining");
        }
    }
}

static void pump_soon(SmtpPool *pool);

// ---- what a connection reports ----

static Mail *on_client_next(void *ctx)
{
    Place *place = ctx;
    SmtpPool *pool = place->pool;
    if (pool->draining) {
        return NULL;
    }
    uint64_t now = clock_ms();
    Mail *mail;
    while ((mail = pop_first(pool, place)) != NULL && is_late(mail, now)) {
        answer(mail, SEND_UNSENT, trouble_text(pool));
    }
    if (mail != NULL) {
        note_given(place, mail);
    }
    return mail;
}

static bool on_client_may_write(void *ctx, const Mail *mail)
{
    (void)ctx;
    return mail->held_until_ms > clock_ms();
}

static void on_client_answer(void *ctx, Mail *mail, const SendResult *result)
{
    note_answered(ctx, mail);
    mail->on_done(mail->ctx, mail, result);
}

static void on_client_ready(void *ctx)
{
    SmtpPool *pool = ((Place *)ctx)->pool;
    if (pool->trouble.text[0] != '\0') {
        LOG(LOG_INFO, "smtp server is reached again", log_text("host", pool->options.host));
    }
    pool->failures = 0;
    pool->retry_at_ms = 0;
    error_clear(&pool->trouble);
    pump_soon(pool);
}

static void on_client_lost(void *ctx, Mail *mail)
{
    note_answered(ctx, mail);
    answer(mail, SEND_UNKNOWN, "the connection was lost after the whole mail was sent");
}

static void on_client_back(void *ctx, Mail *mail)
{
    SmtpPool *pool = ((Place *)ctx)->pool;
    note_answered(ctx, mail);
    mail->tries++;
    if (pool->draining) {
        answer(mail, SEND_RELEASED, "draining");
    } else if (mail->held_until_ms <= clock_ms()) {
        answer(mail, SEND_UNSENT, "its claim ended before it could be written");
    } else if (mail->tries >= TRIES_MAX) {
        answer(mail, SEND_UNSENT, "connections broke again and again before the mail was sent");
    } else {
        push_front(pool, mail);
    }
}

static void note_failure(SmtpPool *pool, const Error *err)
{
    uint64_t wait = BACKOFF_MAX_MS;
    if (pool->failures < 7) {
        wait = (uint64_t)BACKOFF_MIN_MS << pool->failures;
    }
    if (pool->failures++ == 0) {
        LOG(LOG_WARN, "smtp server cannot be used; mails wait and it is tried again",
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
    Place *place = ctx;
    SmtpPool *pool = place->pool;
    assert(place->client == client);
    place->client = NULL;
    pool->count--;
    pool->stats.closed++;
    if (!useful && err->kind != ERROR_CANCELLED) {
        note_failure(pool, err);
    } else if (err->kind != ERROR_CANCELLED) {
        LOG(LOG_DEBUG, "smtp connection ended", log_error(err));
    }
    if (pool->closing) {
        end_when_closed(pool);
    } else {
        pump_soon(pool);
    }
}

// ---- pump ----

static const SmtpClientHooks client_hooks = {
    .session =
        {.next = on_client_next, .may_write = on_client_may_write, .on_answer = on_client_answer},
    .on_ready = on_client_ready,
    .on_lost = on_client_lost,
    .on_back = on_client_back,
    .on_closed = on_client_closed,
};

static void open_connection(SmtpPool *pool, Place *place)
{
    SmtpClientWorld world = {
        .loop = pool->loop,
        .options = &pool->options,
        .tls = pool->tls,
        .hooks = &client_hooks,
        .ctx = place,
        .turn = pool->turn,
    };
    pool->stats.connects++;
    pool->count++;
    place->client = smtp_client_new(&world);
}

// NULL: all of that kind are taken.
static Place *free_place(SmtpPool *pool, Priority lowest)
{
    for (unsigned i = 0; i < pool->options.connections; i++) {
        Place *place = &pool->places[i];
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

// The place for one more connection; NULL: none is wanted. A reserved one is opened when those for
// all are taken and something waits that it serves.
static Place *next_place(SmtpPool *pool, unsigned connecting)
{
    if (connecting >= pool->queued) {
        return NULL;
    }
    for (int lowest = PRIORITY_LOW; lowest >= PRIORITY_HIGH; lowest--) {
        Place *place = has_work(pool, (Priority)lowest) ? free_place(pool, (Priority)lowest) : NULL;
        if (place != NULL) {
            return place;
        }
    }
    return NULL;
}

// Gives the idle connections work, and opens more of them as long as there is more work than
// connections on their way.
static void pump(SmtpPool *pool)
{
    wake_idle(pool);
    if (pool->draining || uv_now(pool->loop) < pool->retry_at_ms) {
        return;
    }
    unsigned connecting = count_connecting(pool);
    unsigned at_once = pool->failures > 0 ? 1 : pool->options.connections;
    Place *place = NULL;
    while (connecting < at_once && (place = next_place(pool, connecting)) != NULL) {
        open_connection(pool, place);
        connecting++;
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
}

// ---- life ----

static void make_places(SmtpPool *pool)
{
    unsigned count = pool->options.connections;
    unsigned reserved = count < 2 ? 0 : (count + RESERVED_SHARE - 1) / RESERVED_SHARE;
    unsigned raised = count < 3 ? 0 : reserved;
    for (unsigned i = 0; i < count; i++) {
        Priority lowest = i < reserved ? PRIORITY_HIGH : PRIORITY_NORMAL;
        pool->places[i] =
            (Place){.pool = pool, .lowest = i < reserved + raised ? lowest : PRIORITY_LOW};
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
    SmtpTlsContext *tls = NULL;
    if (options->tls != SMTP_TLS_OFF && options->tls != SMTP_TLS_PLAINTEXT) {
        tls = smtp_tls_context_new(options->ca_file, options->tls == SMTP_TLS_REQUIRED, err);
        if (tls == NULL) {
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

Vendor smtp_pool_vendor(SmtpPool *pool)
{
    return (Vendor){.name = "smtp", .self = pool, .send = send_through, .drain = drain_through};
}

void smtp_pool_send(SmtpPool *pool, Mail *mail)
{
    mail->tries = 0;
    company_note(&pool->company, mail->tenant, (int64_t)uv_now(pool->loop) * 1000);
    push_back(pool, mail);
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
        // From now on the timer releases, so a mail that is still handed over is answered too.
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
    smtp_tls_context_free(pool->tls);
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

const char *smtp_pool_trouble(const SmtpPool *pool)
{
    return pool->trouble.text[0] != '\0' ? pool->trouble.text : NULL;
}
