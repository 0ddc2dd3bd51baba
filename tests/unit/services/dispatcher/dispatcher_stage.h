// SPDX-License-Identifier: Apache-2.0
// A dispatcher between a real JetStream and a real Postgres, with a vendor that does what each test
// says; and what it publishes, as it was read.
#pragma once

#include "tests/unit/common/bus/bus_tools.h"

#include <libpq-fe.h>

#include "common/base/clock.h"
#include "common/bus/consume/reader.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "services/dispatcher/dispatcher.h"
#include "stentor/v1/dead.pb-c.h"
#include "stentor/v1/deferred.pb-c.h"
#include "stentor/v1/request.pb-c.h"
#include "stentor/v1/status.pb-c.h"
#include "tests/unit/common/db/migrated.h"

enum { HELD_MAX = 64, SEEN_MAX = 64 };

typedef struct Seen {
    ProtobufCMessage *message[SEEN_MAX];
    size_t count;
    const ProtobufCMessageDescriptor *type;
    Arena *arena;
    Reader *reader;
} Seen;

typedef struct Stage {
    Rig rig;
    Bus *bus;           // the dispatcher's own
    DbPool *pool;       // as stentor_dispatcher
    DbPool *admin_pool; // makes the recipients' keys
    PGconn *admin;
    MasterKey *master;
    Keyring *keyring;
    Metrics *metrics;
    Dispatcher *dispatcher;
    DispatcherParts parts;
    Arena *arena;
    bool flag;
    // the vendor
    bool holding;         // mails are kept instead of answered
    size_t claims_max;    // of the next dispatcher; 0: 64
    size_t in_flight_max; // the same; 0: 256
    int database_ms;      // the same: how long it waits for Postgres; 0: 10 s
    bool draining;
    Mail *held[HELD_MAX];
    size_t held_count;
    int sends;
    char last_message[4096];
    const char *answers[4]; // of the next mails; NULL: "250 2.0.0 Ok"
    VendorHealth health;    // what it says of itself
    int probes;             // how often it was asked to try
    Str words;              // of every answer; empty: "words of the vendor"
    uv_timer_t vendor_timer;
    Seen status, deferred, dead;
} Stage;

// ---- the vendor ----

static inline void answer_mail(Stage *stage, Mail *mail, const char *answer)
{
    Str text = str_from(answer);
    Str words = stage->words.len > 0 ? stage->words : STR("words of the vendor");
    SendResult result = {.state = SEND_ANSWERED, .text = words};
    if (str_eq(text, STR("unknown"))) {
        result.state = SEND_UNKNOWN;
    } else if (str_eq(text, STR("released"))) {
        result.state = SEND_RELEASED;
    } else if (str_eq(text, STR("unsent"))) {
        result.state = SEND_UNSENT;
    } else {
        int64_t code = 0;
        assert_true(str_to_i64(str_slice(text, 0, 3), &code));
        result.code = str_slice(text, 0, 3);
        result.enhanced = str_slice(text, 4, text.len);
        result.reply = reply_classify((int)code, result.enhanced);
        stage->sends++;
    }
    mail->on_done(mail->ctx, mail, &result);
}

static inline void answer_held(Stage *stage, const char *answer)
{
    size_t count = stage->held_count;
    stage->held_count = 0;
    for (size_t i = 0; i < count; i++) {
        answer_mail(stage, stage->held[i], answer);
    }
}

static inline void on_vendor_timer(uv_timer_t *timer)
{
    Stage *stage = timer->data;
    if (stage->draining) {
        answer_held(stage, "released");
        return;
    }
    while (stage->held_count > 0 && !stage->holding) {
        Mail *mail = stage->held[0];
        memmove(stage->held, stage->held + 1, --stage->held_count * sizeof(Mail *));
        const char *answer = stage->answers[0] != NULL ? stage->answers[0] : "250 2.0.0";
        memmove(stage->answers, stage->answers + 1, sizeof stage->answers - sizeof *stage->answers);
        stage->answers[3] = NULL;
        answer_mail(stage, mail, answer);
    }
}

static inline void vendor_send(void *self, Mail *mail)
{
    Stage *stage = self;
    assert_true(stage->held_count < HELD_MAX);
    (void)str_to_c(mail->message, stage->last_message, sizeof stage->last_message);
    stage->held[stage->held_count++] = mail;
}

static inline void vendor_drain(void *self)
{
    Stage *stage = self;
    stage->draining = true;
}

static inline VendorHealth vendor_health(void *self)
{
    Stage *stage = self;
    if (stage->health.reason == NULL) {
        stage->health.reason = "";
    }
    return stage->health;
}

static inline void vendor_probe(void *self)
{
    Stage *stage = self;
    stage->probes++;
}

// ---- what is published ----

static inline void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    Seen *seen = ctx;
    for (size_t i = 0; i < count; i++) {
        assert_true(seen->count < SEEN_MAX);
        ProtobufCMessage *message =
            event_unpack(seen->type, messages[i].payload, seen->arena, NULL);
        assert_non_null(message);
        seen->message[seen->count++] = message;
    }
}

static inline void on_reader_caught_up(void *ctx)
{
    (void)ctx;
}

static inline void on_reader_failed(void *ctx, const Error *err)
{
    (void)ctx;
    fail_msg("%s", err->text);
}

static const ReaderHandlers reader_handlers = {
    on_reader_messages, on_reader_caught_up, on_reader_failed};

static inline void watch(
    Stage *stage, Seen *seen, const char *stream, const ProtobufCMessageDescriptor *type)
{
    ReaderOptions options = {.stream = stream};
    seen->type = type;
    seen->arena = stage->arena;
    seen->count = 0;
    seen->reader = reader_new(stage->rig.bus, &options, &reader_handlers, seen);
}

static inline Stentor__V1__NotificationStatus *status_at(Stage *stage, size_t i)
{
    WAIT(&stage->rig, stage->status.count > i);
    return (Stentor__V1__NotificationStatus *)stage->status.message[i];
}

static inline Stentor__V1__Deferred *deferred_at(Stage *stage, size_t i)
{
    WAIT(&stage->rig, stage->deferred.count > i);
    return (Stentor__V1__Deferred *)stage->deferred.message[i];
}

static inline Stentor__V1__DeadLetter *dead_at(Stage *stage, size_t i)
{
    WAIT(&stage->rig, stage->dead.count > i);
    return (Stentor__V1__DeadLetter *)stage->dead.message[i];
}

// ---- stage ----

static inline const char *database_url(void)
{
    const char *url = getenv("STENTOR_TEST_DATABASE_URL");
    assert_non_null(url);
    return url;
}

static inline int migrate_once(void **state)
{
    (void)state;
    const char *const schemas[] = {"stentor", "keys", "dispatcher", NULL};
    migrate_these(schemas);
    return 0;
}

static inline void run_sql(Stage *stage, const char *sql)
{
    PGresult *res = PQexec(stage->admin, sql);
    if (PQresultStatus(res) != PGRES_COMMAND_OK && PQresultStatus(res) != PGRES_TUPLES_OK) {
        fail_msg("%s: %s", sql, PQerrorMessage(stage->admin));
    }
    PQclear(res);
}

static inline const char *sql_value(Stage *stage, const char *sql)
{
    static char value[256];
    PGresult *res = PQexec(stage->admin, sql);
    assert_int_equal(PQresultStatus(res), PGRES_TUPLES_OK);
    snprintf(value, sizeof value, "%s", PQntuples(res) > 0 ? PQgetvalue(res, 0, 0) : "");
    PQclear(res);
    return value;
}

static inline const char *ledger_state(Stage *stage)
{
    return sql_value(
        stage, "SELECT state || '/' || unknown_count || '/' || attempt FROM dispatcher.ledger");
}

static inline void open_pool(Stage *stage)
{
    char url[256];
    snprintf(url, sizeof url, "%s&user=stentor_dispatcher", database_url());
    stage->pool = db_pool_new(
        &stage->rig.loop,
        &(DbPoolOptions){.url = url, .connections = 2, .statement_timeout_ms = stage->database_ms});
    WAIT(&stage->rig, db_pool_ready(stage->pool));
}

static inline void on_flag(void *ctx)
{
    ((Stage *)ctx)->flag = true;
}

static inline void close_pool(Stage *stage, DbPool *pool)
{
    stage->flag = false;
    db_pool_close(pool, on_flag, stage);
    WAIT_FLAG(&stage->rig, stage->flag);
}

static inline void dispatcher_up(Stage *stage, const char *instance)
{
    open_pool(stage);
    stage->bus = rig_bus(&stage->rig, getenv("STENTOR_TEST_NATS_URL"), "stentor-dispatcher", NULL);
    size_t claims_max = stage->claims_max > 0 ? stage->claims_max : 64;
    metrics_free(stage->metrics);
    stage->metrics = metrics_new();
    stage->parts = (DispatcherParts){
        .loop = &stage->rig.loop,
        .bus = stage->bus,
        .pool = stage->pool,
        .master = stage->master,
        .metrics = stage->metrics,
        .instance = instance,
        .vendor = {"smtp", stage, vendor_send, vendor_drain, vendor_health, vendor_probe},
        .rules =
            {.from = STR("default@example.com"),
             .mail_domain = STR("mail.example.com"),
             .vendor = "smtp"},
        .unknown = stage->parts.unknown,
        .lease_ms = stage->parts.lease_ms,
        .batch_max = claims_max,
        .claims_max = claims_max,
        .tenant_percent = 75,
        .in_flight_max = stage->in_flight_max > 0 ? stage->in_flight_max : 256,
        .service = "stentor-dispatcher",
    };
    assert_true(ladders_parse(STR("60,120"), &stage->parts.rules.ladders, NULL));
    stage->draining = false;
    stage->dispatcher = dispatcher_new(&stage->parts);
}

// In the order of a service: the pool's last answers still come to the dispatcher, and what it
// gives back goes when its bus closes.
static inline void dispatcher_down(Stage *stage)
{
    stage->flag = false;
    dispatcher_stop(stage->dispatcher, on_flag, stage);
    WAIT_FLAG(&stage->rig, stage->flag);
    close_pool(stage, stage->pool);
    dispatcher_free(stage->dispatcher);
    stage->dispatcher = NULL;
    rig_close_bus(&stage->rig, stage->bus);
}

// Without a sender's domain that the operator has verified no mail leaves.
static inline void put_tenant(Stage *stage)
{
    Stentor__V1__Tenant tenant;
    stentor__v1__tenant__init(&tenant);
    tenant.tenant = (char *)(uintptr_t) "acme";
    tenant.sender_address = (char *)(uintptr_t) "shop@example.com";
    BusOut out = {.subject = "cfg.tenant.acme.self", .event_id = STR("tenant-acme")};
    assert_true(event_pack(&tenant.base, stage->arena, &out.payload, NULL));
    Acks acks = {0};
    bus_publish(stage->rig.bus, &out, on_acks, &acks);
    WAIT(&stage->rig, acks.stored == 1);
}

static inline int stage_up(void **state)
{
    Stage *stage = calloc(1, sizeof *stage);
    rig_open(&stage->rig, NULL);
    stage->rig.bus =
        rig_bus(&stage->rig, getenv("STENTOR_TEST_NATS_URL"), "stentor-dispatcher", NULL);
    rig_fresh(&stage->rig, 0);
    stage->admin = PQconnectdb(database_url());
    run_sql(stage, "TRUNCATE dispatcher.ledger, keys.data_keys");
    run_sql(stage, "ALTER TABLE dispatcher.ledger DROP CONSTRAINT IF EXISTS refuses");
    stage->admin_pool =
        db_pool_new(&stage->rig.loop, &(DbPoolOptions){.url = database_url(), .connections = 1});
    WAIT(&stage->rig, db_pool_ready(stage->admin_pool));
    char text[132];
    master_key_generate(text);
    stage->master = master_key_parse(str_from(text), NULL);
    stage->keyring = keyring_new(stage->admin_pool, stage->master, &(KeyringOptions){0});
    stage->arena = arena_new(0);
    uv_timer_init(&stage->rig.loop, &stage->vendor_timer);
    stage->vendor_timer.data = stage;
    uv_timer_start(&stage->vendor_timer, on_vendor_timer, 1, 1);
    watch(stage, &stage->status, "STATUS", &stentor__v1__notification_status__descriptor);
    watch(stage, &stage->deferred, "DEFERRED", &stentor__v1__deferred__descriptor);
    watch(stage, &stage->dead, "DEAD", &stentor__v1__dead_letter__descriptor);
    stage->parts.lease_ms = 20000;
    put_tenant(stage);
    dispatcher_up(stage, "first");
    *state = stage;
    return 0;
}

static inline void close_reader(Stage *stage, Seen *seen)
{
    stage->flag = false;
    reader_free(seen->reader, on_flag, stage);
    WAIT_FLAG(&stage->rig, stage->flag);
}

static inline int stage_down(void **state)
{
    Stage *stage = *state;
    if (stage->dispatcher != NULL) {
        dispatcher_down(stage);
    }
    close_reader(stage, &stage->status);
    close_reader(stage, &stage->deferred);
    close_reader(stage, &stage->dead);
    uv_close((uv_handle_t *)&stage->vendor_timer, NULL);
    keyring_free(stage->keyring);
    close_pool(stage, stage->admin_pool);
    rig_close(&stage->rig);
    PQfinish(stage->admin);
    master_key_free(stage->master);
    metrics_free(stage->metrics);
    arena_free(stage->arena);
    free(stage);
    return 0;
}

// ---- events ----

typedef struct Event {
    const char *to;
    const char *tenant; // NULL: acme; another one has no keys here, so nothing is sent
    uint32_t attempt, rung;
    int64_t expires_at_us;
    int64_t rendered_ago_s;
    const BodyPrefix *prefix;
    bool wrong_checksum;
    uint32_t attempts; // made before, as the event carries them
    uint32_t resends;
    Stentor__V1__Retries *retries; // NULL: none of its own
    size_t padding;                // bytes that are not read
    Stentor__V1__Channel channel;  // unspecified: email
    char id[ID_SIZE];              // out
    Str packed;                    // out
} Event;

static inline void on_key(void *ctx, const Error *err)
{
    assert_null(err);
    ((Stage *)ctx)->flag = true;
}

static inline DataKey *recipient_key(Stage *stage, const char *to, KeyWant *want)
{
    key_subject(
        master_hash_key(stage->master), DATA_KEY_RECORD, STR("acme"), str_from(to), want->subject);
    want->tenant = STR("acme");
    stage->flag = false;
    keyring_resolve(stage->keyring, want, 1, on_key, stage);
    WAIT_FLAG(&stage->rig, stage->flag);
    assert_non_null(want->key);
    return want->key;
}

static inline void seal_content(
    Stage *stage, Event *event, DataKey *key, Stentor__V1__Rendered *rendered)
{
    Stentor__V1__EmailContent content;
    stentor__v1__email_content__init(&content);
    content.subject = (char *)(uintptr_t) "Hello";
    content.text = (char *)(uintptr_t) "Hello there\n";
    content.from = (char *)(uintptr_t) "shop@example.com";
    Str packed;
    Str frame;
    assert_true(event_pack(&content.base, stage->arena, &packed, NULL));
    assert_true(body_pack(event->prefix, packed, stage->arena, &frame, NULL));
    uint8_t *checksum = arena_alloc(stage->arena, SHA256_LEN);
    sha256(packed, checksum);
    checksum[0] ^= event->wrong_checksum ? 1 : 0;
    rendered->content_checksum = pb_data((Str){(char *)checksum, SHA256_LEN});
    rendered->content_prefix_id = event->prefix != NULL ? body_prefix_id(event->prefix) : 0;
    rendered->content = seal(key, STR("acme"), str_from(event->id), "content", frame, stage->arena);
}

static inline Str packed_address(Stage *stage, const char *to)
{
    Stentor__V1__Address address;
    stentor__v1__address__init(&address);
    address.address = (char *)(uintptr_t)to;
    address.name = (char *)(uintptr_t) "Alice";
    Str packed;
    assert_true(event_pack(&address.base, stage->arena, &packed, NULL));
    return packed;
}

static inline Stentor__V1__Attempt **earlier_attempts(Stage *stage, uint32_t count)
{
    Stentor__V1__Attempt **attempts = arena_array(stage->arena, count, sizeof *attempts);
    for (uint32_t i = 0; i < count; i++) {
        attempts[i] = arena_alloc(stage->arena, sizeof **attempts);
        stentor__v1__attempt__init(attempts[i]);
        attempts[i]->number = i + 1;
        attempts[i]->text = (char *)(uintptr_t) "earlier words";
    }
    return attempts;
}

static inline void make_event(Stage *stage, Event *event)
{
    if (event->id[0] == '\0') {
        id_new("ntf_", clock_now_us(), event->id);
    }
    KeyWant want = {0};
    DataKey *key = recipient_key(stage, event->to, &want);
    Stentor__V1__Meta meta;
    stentor__v1__meta__init(&meta);
    meta.event_id = (char *)(uintptr_t) "causecausecausecausec1";
    meta.tenant = (char *)(uintptr_t)(event->tenant != NULL ? event->tenant : "acme");
    meta.notification_id = event->id;
    meta.correlation_id = (char *)(uintptr_t) "order-7";
    Stentor__V1__Rendered rendered;
    stentor__v1__rendered__init(&rendered);
    rendered.meta = &meta;
    rendered.channel = event->channel != 0 ? event->channel : STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    rendered.priority = STENTOR__V1__PRIORITY__PRIORITY_NORMAL;
    rendered.template_ = (char *)(uintptr_t) "welcome";
    rendered.template_version = (char *)(uintptr_t) "1.0.0";
    rendered.attempt = event->attempt == 0 ? 1 : event->attempt;
    rendered.rung = event->rung;
    rendered.retries = event->retries;
    rendered.rendered_at_us = clock_now_us() - event->rendered_ago_s * 1000000;
    rendered.accepted_at_us = rendered.rendered_at_us;
    rendered.expires_at_us = event->expires_at_us;
    rendered.address = seal(
        key, STR("acme"), str_from(event->id), "address", packed_address(stage, event->to),
        stage->arena);
    seal_content(stage, event, key, &rendered);
    rendered.resends = event->resends;
    rendered.address_hash =
        pb_data(str_of(arena_zalloc(stage->arena, event->padding), event->padding));
    rendered.n_attempts = event->attempts;
    rendered.attempts = earlier_attempts(stage, event->attempts);
    assert_true(event_pack(&rendered.base, stage->arena, &event->packed, NULL));
}

static inline void publish_of(Stage *stage, const char *tenant, Str payload, const char *event_id)
{
    char subject[SUBJECT_SIZE];
    subject_rendered(subject, PRIORITY_NORMAL, str_from(tenant));
    BusOut out = {.subject = subject, .event_id = str_from(event_id), .payload = payload};
    Acks acks = {0};
    bus_publish(stage->rig.bus, &out, on_acks, &acks);
    WAIT(&stage->rig, acks.stored == 1);
}

static inline void publish(Stage *stage, Str payload, const char *event_id)
{
    publish_of(stage, "acme", payload, event_id);
}

static inline void make_and_publish(Stage *stage, Event *event)
{
    make_event(stage, event);
    publish_of(stage, event->tenant != NULL ? event->tenant : "acme", event->packed, event->id);
}

static inline void wait_acked_on(Stage *stage, const char *stream)
{
    char subject[128];
    snprintf(subject, sizeof subject, "$JS.API.CONSUMER.INFO.%s.dispatcher", stream);
    for (int i = 0; i < 300; i++) {
        rig_ask(&stage->rig, subject, "");
        if (strstr(stage->rig.reply, "\"num_ack_pending\":0") != NULL &&
            strstr(stage->rig.reply, "\"num_pending\":0") != NULL) {
            return;
        }
        pass_ms(&stage->rig, 20);
    }
    fail_msg("not acked: %s", stage->rig.reply);
}

static inline void wait_acked(Stage *stage)
{
    wait_acked_on(stage, "RENDERED_NORMAL");
}

// A claim as a process that is gone left it.
static inline void leave_claim(Stage *stage, const Event *event, const char *lease)
{
    int64_t ms = 0;
    assert_true(id_parse(str_from(event->id), "ntf_", &ms));
    char sql[512];
    snprintf(
        sql, sizeof sql,
        "INSERT INTO dispatcher.ledger (created_at, notification_id, attempt, tenant_id, state, "
        "owner, lease_until, claimed_at)"
        " VALUES (to_timestamp(%lld / 1000.0), '%s', 1, 'acme', 'claimed', 'gone', now() + "
        "interval '%s', now())",
        (long long)ms, event->id, lease);
    run_sql(stage, sql);
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, stage_up, stage_down)
