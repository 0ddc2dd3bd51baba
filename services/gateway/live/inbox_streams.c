// SPDX-License-Identifier: Apache-2.0
// FEED's messages, as they are republished, mark the inboxes that changed. A round waits until the
// fold has them, asks for the counts of all marked ones at once, and writes to those whose version
// moved. What core NATS lost marks all.
#include "services/gateway/live/inbox_streams.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/map.h"
#include "common/bus/jetstream/listen.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/ticks/ticks.h"
#include "services/gateway/inbox/inbox_view.h"
#include "stentor/v1/feed.pb-c.h"

enum {
    TICK_MS = 1000,
    CHECK_TICKS = 10, // between two looks at the end of FEED
    ROUND_MS = 50,    // changes of so long are one event
    AGAIN_MS = 1000,  // after a round that failed
    ROUND_MAX = 1000, // inboxes
    ITEMS_MAX = 20,   // new ones that an event names
    ASK_TIMEOUT_MS = 2000,
    KEY_SIZE = INBOX_TENANT_SIZE + 1 + ADDRESS_HASH_LEN,
    TENANT_TOKEN = 2,
};

#define HEARD_SUBJECT "live.feed.*"
#define INFO_SUBJECT "$JS.API.STREAM.INFO.FEED"

// clang-format off
static const DbStatement COUNTS = {"inbox_stream_counts",
    "SELECT c.tenant_id, c.recipient, c.category, c.unseen, c.unread, c.total, c.version"
    " FROM unnest($1::text[], $2::bytea[]) AS w (tenant_id, recipient)"
    " JOIN feed.counters c ON c.recipient = w.recipient AND c.tenant_id = w.tenant_id ORDER BY 1, 2"};
enum { TENANT, RECIPIENT, CATEGORY };
// clang-format on

typedef struct InboxStream {
    struct Inbox *inbox;
    HttpStream *http;
    int64_t expires_at_us;
    uint64_t version; // that its client has; 0: none
    bool opened;      // has had its first event
    struct InboxStream *next;
} InboxStream;

// One that has streams.
typedef struct Inbox {
    InboxStreams *all;
    char tenant[INBOX_TENANT_SIZE];
    uint8_t recipient[ADDRESS_HASH_LEN];
    InboxStream *first;
    size_t count;
    bool marked;
    bool awaited;                   // the round that is on shows it
    char items[ITEMS_MAX][ID_SIZE]; // that came since the last event
    size_t item_count;
    size_t awaited_items; // of these, that it names
} Inbox;

struct InboxStreams {
    InboxStreamsOptions options;
    Map *inboxes; // by tenant and recipient
    size_t count; // of streams
    bool listening;
    uint64_t heard;    // the last of FEED; 0: none yet
    uint64_t expected; // what must have been heard by the next tick
    uint64_t through;  // what the next round waits for
    bool any_marked;
    bool in_round; // the tables are waited for or asked
    bool failed;   // the last round
    bool asked;    // for the end of FEED
    unsigned ticks;
    uv_timer_t tick, round;
    bool stopping;
    int closing;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
    Metric *events;
};

// ---- marks ----

static Str inbox_key(Str tenant, Str recipient, char out[KEY_SIZE])
{
    memcpy(out, tenant.ptr, tenant.len);
    out[tenant.len] = '/';
    memcpy(out + tenant.len + 1, recipient.ptr, recipient.len);
    return str_of(out, tenant.len + 1 + recipient.len);
}

static Inbox *find_inbox(const InboxStreams *all, Str tenant, Str recipient)
{
    char key[KEY_SIZE];
    bool fits = tenant.len < INBOX_TENANT_SIZE && recipient.len == ADDRESS_HASH_LEN;
    return fits ? map_get(all->inboxes, inbox_key(tenant, recipient, key)) : NULL;
}

static void begin_round(uv_timer_t *timer);

static void want_round(InboxStreams *all)
{
    all->any_marked = true;
    if (!all->in_round && !all->stopping && !uv_is_active((uv_handle_t *)&all->round)) {
        (void)uv_timer_start(&all->round, begin_round, all->failed ? AGAIN_MS : ROUND_MS, 0);
    }
}

static void mark(Inbox *inbox)
{
    inbox->marked = true;
    want_round(inbox->all);
}

// tenant empty: of all.
static void mark_all(InboxStreams *all, Str tenant)
{
    Str key;
    void *value = NULL;
    for (size_t i = 0; map_next(all->inboxes, &i, &key, &value);) {
        Inbox *inbox = value;
        if (tenant.len == 0 || str_eq(str_from(inbox->tenant), tenant)) {
            mark(inbox);
        }
    }
}

// ---- events ----

static json_t *list_items(const Inbox *inbox)
{
    json_t *items = json_array();
    for (size_t i = 0; i < inbox->awaited_items; i++) {
        (void)json_array_append_new(items, json_string(inbox->items[i]));
    }
    return items;
}

// `since`: the version that the client had before; another one than it has shows that it missed
// some. The first event after it came back says so itself.
static void write_event(InboxStream *s, json_t *counts, uint64_t version)
{
    const char *name = s->opened ? "counts" : "open";
    (void)json_object_set_new(counts, "since", json_integer((json_int_t)s->version));
    if (!s->opened) {
        (void)json_object_set_new(
            counts, "missed", json_boolean(s->version != 0 && s->version != version));
    }
    char *json = json_dumps(counts, JSON_COMPACT);
    Buf text;
    buf_init(&text, HTTP_EVENT_MAX);
    http_event_write(&text, version, name, str_from(json));
    (void)http_stream_write(s->http, buf_view(&text));
    metric_add(s->inbox->all->events, 1);
    s->opened = true;
    s->version = version;
    buf_done(&text);
    free(json);
}

static void show_counts(Inbox *inbox, json_t *counts)
{
    uint64_t version = (uint64_t)json_integer_value(json_object_get(counts, "version"));
    (void)json_object_set_new(counts, "items", list_items(inbox));
    for (InboxStream *s = inbox->first; s != NULL; s = s->next) {
        if (!s->opened || version != s->version) {
            write_event(s, counts, version);
            (void)json_object_del(counts, "missed");
        }
    }
    inbox->item_count -= inbox->awaited_items;
    memmove(
        inbox->items, inbox->items[inbox->awaited_items], inbox->item_count * sizeof *inbox->items);
    inbox->awaited_items = 0;
    inbox->awaited = false;
    json_decref(counts);
}

// ---- a round ----

typedef struct Round {
    InboxStreams *all;
    size_t count;
    struct {
        char tenant[INBOX_TENANT_SIZE];
        uint8_t recipient[ADDRESS_HASH_LEN];
    } of[ROUND_MAX];
} Round;

static Str recipient_of(const uint8_t recipient[ADDRESS_HASH_LEN])
{
    return str_of(recipient, ADDRESS_HASH_LEN);
}

static void end_round(Round *round, bool again)
{
    InboxStreams *all = round->all;
    all->in_round = false;
    all->failed = again;
    for (size_t i = 0; again && i < round->count; i++) {
        Inbox *inbox =
            find_inbox(all, str_from(round->of[i].tenant), recipient_of(round->of[i].recipient));
        if (inbox != NULL) {
            mark(inbox);
        }
    }
    free(round);
    if (all->any_marked) {
        want_round(all);
    }
}

// Rows of one inbox stand together; those of the next one begin at the row that is returned.
static int show_rows(const InboxStreams *all, const PGresult *rows, int from)
{
    Str tenant = db_get_text(rows, from, TENANT), recipient = db_get_text(rows, from, RECIPIENT);
    int to = from + 1;
    while (to < db_rows(rows) && str_eq(db_get_text(rows, to, TENANT), tenant) &&
           str_eq(db_get_text(rows, to, RECIPIENT), recipient)) {
        to++;
    }
    Inbox *inbox = find_inbox(all, tenant, recipient);
    if (inbox != NULL && inbox->awaited) {
        show_counts(inbox, inbox_counts_of(rows, from, to, CATEGORY));
    }
    return to;
}

// An inbox without rows is empty.
static void show_round(const Round *round, const PGresult *rows)
{
    for (int row = 0; row < db_rows(rows);) {
        row = show_rows(round->all, rows, row);
    }
    for (size_t i = 0; i < round->count; i++) {
        Inbox *inbox = find_inbox(
            round->all, str_from(round->of[i].tenant), recipient_of(round->of[i].recipient));
        if (inbox != NULL && inbox->awaited) {
            show_counts(inbox, inbox_counts_of(rows, 0, 0, CATEGORY));
        }
    }
}

static void on_counts(void *ctx, DbTxn *txn, const Error *err)
{
    Round *round = ctx;
    if (err == NULL && !round->all->stopping) {
        show_round(round, db_txn_result(txn, 0));
    }
    end_round(round, err != NULL); // Postgres is away: the next round asks again
}

static void ask_counts(Round *round)
{
    DbTxn *txn = db_txn_new(round->all->options.pool);
    DbParams *p = db_txn_add(txn, &COUNTS, NULL);
    DbArray *tenants = db_array(p, DB_TEXT);
    DbArray *recipients = db_array(p, DB_BYTES);
    for (size_t i = 0; i < round->count; i++) {
        db_txn_tenant(txn, str_from(round->of[i].tenant));
        db_push_text(tenants, str_from(round->of[i].tenant));
        db_push_text(recipients, recipient_of(round->of[i].recipient));
    }
    db_txn_submit(txn, on_counts, round);
}

static void on_folded(void *ctx, bool seen)
{
    Round *round = ctx;
    if (seen && !round->all->stopping) {
        ask_counts(round);
    } else {
        end_round(round, true); // the fold is behind
    }
}

static Round *gather(InboxStreams *all)
{
    Round *round = xcalloc(1, sizeof *round);
    Str key;
    void *value = NULL;
    round->all = all;
    all->any_marked = false;
    for (size_t i = 0; map_next(all->inboxes, &i, &key, &value);) {
        Inbox *inbox = value;
        if (inbox->marked && round->count < ROUND_MAX) {
            memcpy(round->of[round->count].tenant, inbox->tenant, sizeof inbox->tenant);
            memcpy(round->of[round->count++].recipient, inbox->recipient, sizeof inbox->recipient);
            inbox->marked = false;
            inbox->awaited = true;
            inbox->awaited_items = inbox->item_count;
        }
        all->any_marked = all->any_marked || inbox->marked;
    }
    return round;
}

static void begin_round(uv_timer_t *timer)
{
    InboxStreams *all = timer->data;
    Round *round = gather(all);
    if (round->count == 0) {
        free(round); // their streams have ended
        return;
    }
    all->in_round = true;
    if (all->through == 0) {
        ask_counts(round);
        return;
    }
    people_wait(all->options.wait, all->through, on_folded, round);
}

// ---- what is heard ----

static void note_item(Inbox *inbox, const char *id)
{
    if (inbox->item_count < ITEMS_MAX && strlen(id) < ID_SIZE) {
        (void)str_to_c(str_from(id), inbox->items[inbox->item_count++], ID_SIZE);
    }
}

// An erasure names keys and no inbox.
static void take_event(InboxStreams *all, Str tenant, const Stentor__V1__FeedEvent *event)
{
    if (event->part_case == STENTOR__V1__FEED_EVENT__PART_REMOVAL) {
        mark_all(all, tenant);
        return;
    }
    Inbox *inbox = find_inbox(all, tenant, pb_bytes(event->recipient));
    if (inbox == NULL) {
        return;
    }
    if (event->part_case == STENTOR__V1__FEED_EVENT__PART_ITEM && event->meta != NULL) {
        note_item(inbox, event->meta->notification_id);
    }
    mark(inbox);
}

static void on_heard(void *ctx, const BusMessage *message)
{
    InboxStreams *all = ctx;
    int64_t number = 0;
    if (!str_to_i64(bus_message_header(message, "Nats-Sequence"), &number) || number <= 0) {
        return; // none that FEED republished
    }
    uint64_t sequence = (uint64_t)number;
    bool follows = all->heard == 0 || sequence == all->heard + 1;
    all->heard = sequence;
    all->through = sequence;
    if (!follows) {
        mark_all(all, STR_EMPTY);
    }
    Arena *arena = arena_new(0);
    Error err = {0};
    const Stentor__V1__FeedEvent *event = (const Stentor__V1__FeedEvent *)event_unpack(
        &stentor__v1__feed_event__descriptor, message->payload, arena, &err);
    if (event != NULL) {
        take_event(all, subject_token(message->subject, TENANT_TOKEN), event);
    }
    arena_free(arena);
}

static void on_info(void *ctx, Str reply, const Error *err)
{
    InboxStreams *all = ctx;
    all->asked = false;
    json_t *root = err == NULL ? json_loadb(reply.ptr, reply.len, 0, NULL) : NULL;
    const json_t *last = json_object_get(json_object_get(root, "state"), "last_seq");
    if (json_is_integer(last)) {
        all->expected = (uint64_t)json_integer_value(last);
    }
    json_decref(root);
}

// A change that was lost in silence shows in the end of FEED alone.
static void check_end(InboxStreams *all)
{
    if (all->expected > all->heard) {
        bool first = all->heard == 0;
        all->heard = all->expected;
        all->through = first ? all->through : all->expected;
        mark_all(all, STR_EMPTY);
    }
    if (all->ticks++ % CHECK_TICKS == 0 && !all->asked && bus_connected(all->options.bus)) {
        all->asked = true;
        bus_request(all->options.bus, INFO_SUBJECT, STR_EMPTY, ASK_TIMEOUT_MS, on_info, all);
    }
}

// ---- streams ----

static void end_stream(InboxStream *s, const char *json)
{
    Buf text;
    buf_init(&text, 256);
    http_event_write(&text, 0, "end", str_from(json));
    (void)http_stream_write(s->http, buf_view(&text));
    http_stream_close(s->http);
    buf_done(&text);
}

static void check_inbox(const Inbox *inbox, int64_t now_us)
{
    TenantStanding standing =
        catalog_standing(inbox->all->options.catalog, str_from(inbox->tenant));
    for (InboxStream *s = inbox->first; s != NULL; s = s->next) {
        if (s->expires_at_us <= now_us) {
            end_stream(s, "{\"reason\":\"token-expired\"}");
        } else if (standing != STANDING_ACTIVE) {
            end_stream(s, "{\"reason\":\"tenant\"}");
        }
    }
}

static void on_tick(uv_timer_t *timer)
{
    ticks_keep(timer);
    InboxStreams *all = timer->data;
    Str key;
    void *value = NULL;
    int64_t now_us = clock_now_us();
    for (size_t i = 0; map_next(all->inboxes, &i, &key, &value);) {
        check_inbox(value, now_us);
    }
    if (all->count > 0) {
        check_end(all);
    } else if (all->listening) {
        all->listening = false;
        bus_unlisten(all->options.bus, HEARD_SUBJECT);
    }
}

static void on_stream_ended(void *ctx)
{
    InboxStream *s = ctx;
    Inbox *inbox = s->inbox;
    InboxStreams *all = inbox->all;
    char key[KEY_SIZE];
    InboxStream **at = &inbox->first;
    while (*at != s) {
        at = &(*at)->next;
    }
    *at = s->next;
    all->count--;
    if (--inbox->count == 0) {
        (void)map_remove(
            all->inboxes, inbox_key(str_from(inbox->tenant), recipient_of(inbox->recipient), key));
    }
    free(s);
}

static Inbox *get_inbox(InboxStreams *all, const InboxToken *token)
{
    char key[KEY_SIZE];
    Str tenant = str_from(token->tenant), recipient = recipient_of(token->recipient);
    Inbox *inbox = find_inbox(all, tenant, recipient);
    if (inbox == NULL) {
        inbox = xcalloc(1, sizeof *inbox);
        inbox->all = all;
        memcpy(inbox->tenant, token->tenant, sizeof inbox->tenant);
        memcpy(inbox->recipient, token->recipient, sizeof inbox->recipient);
        map_put(all->inboxes, inbox_key(tenant, recipient, key), inbox);
    }
    return inbox;
}

static void start_listening(InboxStreams *all)
{
    if (!all->listening) {
        all->listening = true;
        all->heard = all->expected = all->through = 0;
        all->ticks = 0;
        bus_listen(all->options.bus, HEARD_SUBJECT, on_heard, all);
    }
}

static bool read_version(HttpRequest *request, uint64_t *ret)
{
    int64_t version = 0;
    Str text = http_header(request, "Last-Event-ID");
    if (text.len > 0 && (!str_to_i64(text, &version) || version < 0)) {
        http_problem(
            request, 400, "invalid-header", "A header is wrong", "Last-Event-ID",
            "it is the 'id' of the last event that came, a number; leave it out to begin now");
        return false;
    }
    *ret = (uint64_t)version;
    return true;
}

void inbox_streams_open(InboxStreams *all, HttpRequest *request, const InboxToken *token)
{
    uint64_t version = 0;
    const Inbox *there = find_inbox(all, str_from(token->tenant), recipient_of(token->recipient));
    if (!read_version(request, &version)) {
        return;
    }
    if (there != NULL && there->count >= INBOX_STREAMS_MAX) {
        http_response_header(request, "Retry-After", STR("5"));
        http_problem(
            request, 429, "too-many-streams", "Too many streams", NULL,
            "the inbox has %d streams open, as many as it may", INBOX_STREAMS_MAX);
        return;
    }
    InboxStream *s = xcalloc(1, sizeof *s);
    s->expires_at_us = token->expires_at_us;
    s->version = version;
    InboxToken whose = *token; // the request's memory goes with its answer
    s->http = http_stream_begin(request, on_stream_ended, s);
    if (s->http == NULL) {
        free(s);
        return;
    }
    s->inbox = get_inbox(all, &whose);
    s->next = s->inbox->first;
    s->inbox->first = s;
    s->inbox->count++;
    all->count++;
    start_listening(all);
    mark(s->inbox);
}

// ---- life ----

static double read_count(void *ctx)
{
    return (double)((const InboxStreams *)ctx)->count;
}

InboxStreams *inbox_streams_new(const InboxStreamsOptions *options)
{
    InboxStreams *all = xcalloc(1, sizeof *all);
    all->options = *options;
    all->inboxes = map_new(free);
    // clang-format off
    all->events = metrics_counter(options->metrics, "stentor_gateway_live_events_total", "stream=\"inbox\"", "Events that were written to live streams");
    metrics_gauge_fn(options->metrics, "stentor_gateway_live_streams", "stream=\"inbox\"", "Live streams that are open", read_count, all);
    // clang-format on
    (void)uv_timer_init(options->loop, &all->tick);
    (void)uv_timer_init(options->loop, &all->round);
    all->tick.data = all->round.data = all;
    ticks_start(&all->tick, on_tick, TICK_MS);
    return all;
}

static void on_timer_closed(uv_handle_t *handle)
{
    InboxStreams *all = handle->data;
    if (--all->closing == 0) {
        all->on_stopped(all->stopped_ctx);
    }
}

void inbox_streams_stop(InboxStreams *all, void (*on_stopped)(void *ctx), void *ctx)
{
    all->stopping = true;
    all->closing = 2;
    all->on_stopped = on_stopped;
    all->stopped_ctx = ctx;
    if (all->listening) {
        bus_unlisten(all->options.bus, HEARD_SUBJECT);
    }
    uv_close((uv_handle_t *)&all->tick, on_timer_closed);
    uv_close((uv_handle_t *)&all->round, on_timer_closed);
}

void inbox_streams_free(InboxStreams *all)
{
    if (all != NULL) {
        map_free(all->inboxes);
        free(all);
    }
}
