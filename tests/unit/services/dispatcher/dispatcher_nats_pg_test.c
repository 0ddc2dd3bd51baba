// SPDX-License-Identifier: Apache-2.0
// The whole flow between a real JetStream and a real Postgres, with a vendor that does what each
// test says.
#include "tests/unit/common/bus/bus_tools.h"

#include <libpq-fe.h>

#include "common/base/clock.h"
#include "common/bus/reader.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/db/migrate.h"
#include "services/dispatcher/dispatcher.h"
#include "stentor/v1/dead.pb-c.h"
#include "stentor/v1/deferred.pb-c.h"
#include "stentor/v1/request.pb-c.h"
#include "stentor/v1/status.pb-c.h"

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
    bool holding;      // mails are kept instead of answered
    size_t claims_max; // of the next dispatcher; 0: 64
    bool draining;
    Mail *held[HELD_MAX];
    size_t held_count;
    int sends;
    char last_message[4096];
    const char *answers[4]; // of the next mails; NULL: "250 2.0.0 Ok"
    uv_timer_t vendor_timer;
    Seen status, deferred, dead;
} Stage;

// ---- the vendor ----

static void answer_mail(Stage *stage, Mail *mail, const char *answer)
{
    Str text = str_from(answer);
    SendResult result = {.state = SEND_ANSWERED, .text = str_from("words of the vendor")};
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

static void answer_held(Stage *stage, const char *answer)
{
    size_t count = stage->held_count;
    stage->held_count = 0;
    for (size_t i = 0; i < count; i++) {
        answer_mail(stage, stage->held[i], answer);
    }
}

static void on_vendor_timer(uv_timer_t *timer)
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

static void vendor_send(void *self, Mail *mail)
{
    Stage *stage = self;
    assert_true(stage->held_count < HELD_MAX);
    (void)str_to_c(mail->message, stage->last_message, sizeof stage->last_message);
    stage->held[stage->held_count++] = mail;
}

static void vendor_drain(void *self)
{
    Stage *stage = self;
    stage->draining = true;
}

// ---- what is published ----

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
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

static void on_reader_caught_up(void *ctx)
{
    (void)ctx;
}

static void on_reader_failed(void *ctx, const Error *err)
{
    (void)ctx;
    fail_msg("%s", err->text);
}

static const ReaderHandlers reader_handlers = {
    on_reader_messages, on_reader_caught_up, on_reader_failed};

static void watch(
    Stage *stage, Seen *seen, const char *stream, const ProtobufCMessageDescriptor *type)
{
    ReaderOptions options = {.stream = stream};
    seen->type = type;
    seen->arena = stage->arena;
    seen->count = 0;
    seen->reader = reader_new(stage->rig.bus, &options, &reader_handlers, seen);
}

static Stentor__V1__NotificationStatus *status_at(Stage *stage, size_t i)
{
    WAIT(&stage->rig, stage->status.count > i);
    return (Stentor__V1__NotificationStatus *)stage->status.message[i];
}

static Stentor__V1__Deferred *deferred_at(Stage *stage, size_t i)
{
    WAIT(&stage->rig, stage->deferred.count > i);
    return (Stentor__V1__Deferred *)stage->deferred.message[i];
}

static Stentor__V1__DeadLetter *dead_at(Stage *stage, size_t i)
{
    WAIT(&stage->rig, stage->dead.count > i);
    return (Stentor__V1__DeadLetter *)stage->dead.message[i];
}

// ---- stage ----

static const char *database_url(void)
{
    const char *url = getenv("STENTOR_TEST_DATABASE_URL");
    assert_non_null(url);
    return url;
}

static int migrate_once(void **state)
{
    (void)state;
    const char *const schemas[] = {"stentor", "keys", "dispatch", NULL};
    MigrateReport report;
    Error err;
    if (!db_migrate(
            database_url(), STENTOR_SOURCE_DIR "/migrations", schemas, &report, NULL, NULL, &err)) {
        fail_msg("%s", err.text);
    }
    return 0;
}

static void run_sql(Stage *stage, const char *sql)
{
    PGresult *res = PQexec(stage->admin, sql);
    if (PQresultStatus(res) != PGRES_COMMAND_OK && PQresultStatus(res) != PGRES_TUPLES_OK) {
        fail_msg("%s: %s", sql, PQerrorMessage(stage->admin));
    }
    PQclear(res);
}

static const char *sql_value(Stage *stage, const char *sql)
{
    static char value[256];
    PGresult *res = PQexec(stage->admin, sql);
    assert_int_equal(PQresultStatus(res), PGRES_TUPLES_OK);
    snprintf(value, sizeof value, "%s", PQntuples(res) > 0 ? PQgetvalue(res, 0, 0) : "");
    PQclear(res);
    return value;
}

static const char *ledger_state(Stage *stage)
{
    return sql_value(
        stage, "SELECT state || '/' || unknown_count || '/' || attempt FROM dispatch.ledger");
}

static void dispatcher_up(Stage *stage, const char *instance)
{
    size_t claims_max = stage->claims_max > 0 ? stage->claims_max : 64;
    metrics_free(stage->metrics);
    stage->metrics = metrics_new();
    stage->parts = (DispatcherParts){
        .loop = &stage->rig.loop,
        .bus = stage->rig.bus,
        .pool = stage->pool,
        .master = stage->master,
        .metrics = stage->metrics,
        .instance = instance,
        .vendor = {"smtp", stage, vendor_send, vendor_drain},
        .rules =
            {.from = STR("default@example.com"),
             .mail_domain = STR("mail.example.com"),
             .vendor = "smtp"},
        .unknown = stage->parts.unknown,
        .lease_ms = stage->parts.lease_ms,
        .batch_max = claims_max,
        .claims_max = claims_max,
        .in_flight_max = 256,
        .service = "stentor-dispatcher",
    };
    assert_true(ladder_parse(STR("60,120"), &stage->parts.rules.ladder));
    stage->draining = false;
    stage->dispatcher = dispatcher_new(&stage->parts);
}

static void on_flag(void *ctx)
{
    ((Stage *)ctx)->flag = true;
}

static void dispatcher_down(Stage *stage)
{
    stage->flag = false;
    dispatcher_stop(stage->dispatcher, on_flag, stage);
    WAIT_FLAG(&stage->rig, stage->flag);
    dispatcher_free(stage->dispatcher);
    stage->dispatcher = NULL;
}

static int stage_up(void **state)
{
    Stage *stage = calloc(1, sizeof *stage);
    rig_open(&stage->rig, NULL);
    stage->rig.bus =
        rig_bus(&stage->rig, getenv("STENTOR_TEST_NATS_URL"), "stentor-dispatcher", NULL);
    rig_fresh(&stage->rig, 0);
    stage->admin = PQconnectdb(database_url());
    run_sql(stage, "TRUNCATE dispatch.ledger, keys.data_keys");
    char url[256];
    snprintf(url, sizeof url, "%s&user=stentor_dispatcher", database_url());
    stage->pool = db_pool_new(&stage->rig.loop, &(DbPoolOptions){.url = url, .connections = 2});
    stage->admin_pool =
        db_pool_new(&stage->rig.loop, &(DbPoolOptions){.url = database_url(), .connections = 1});
    WAIT(&stage->rig, db_pool_ready(stage->pool) && db_pool_ready(stage->admin_pool));
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
    dispatcher_up(stage, "first");
    *state = stage;
    return 0;
}

static void close_reader(Stage *stage, Seen *seen)
{
    stage->flag = false;
    reader_free(seen->reader, on_flag, stage);
    WAIT_FLAG(&stage->rig, stage->flag);
}

static void close_pool(Stage *stage, DbPool *pool)
{
    stage->flag = false;
    db_pool_close(pool, on_flag, stage);
    WAIT_FLAG(&stage->rig, stage->flag);
}

static int stage_down(void **state)
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
    close_pool(stage, stage->pool);
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
    uint32_t attempt, rung;
    int64_t expires_at_us;
    int64_t rendered_ago_s;
    const BodyPrefix *prefix;
    bool wrong_checksum;
    char id[ID_SIZE]; // out
    Str packed;       // out
} Event;

static void on_key(void *ctx, const Error *err)
{
    assert_null(err);
    ((Stage *)ctx)->flag = true;
}

static DataKey *recipient_key(Stage *stage, const char *to, KeyWant *want)
{
    key_subject(master_hash_key(stage->master), STR("acme"), str_from(to), want->subject);
    want->tenant = STR("acme");
    stage->flag = false;
    keyring_resolve(stage->keyring, want, 1, on_key, stage);
    WAIT_FLAG(&stage->rig, stage->flag);
    assert_non_null(want->key);
    return want->key;
}

static void seal_content(Stage *stage, Event *event, DataKey *key, Stentor__V1__Rendered *rendered)
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

static Str packed_address(Stage *stage, const char *to)
{
    Stentor__V1__Address address;
    stentor__v1__address__init(&address);
    address.address = (char *)(uintptr_t)to;
    address.name = (char *)(uintptr_t) "Alice";
    Str packed;
    assert_true(event_pack(&address.base, stage->arena, &packed, NULL));
    return packed;
}

static void make_event(Stage *stage, Event *event)
{
    if (event->id[0] == '\0') {
        id_new("ntf_", clock_now_us(), event->id);
    }
    KeyWant want = {0};
    DataKey *key = recipient_key(stage, event->to, &want);
    Stentor__V1__Meta meta;
    stentor__v1__meta__init(&meta);
    meta.event_id = (char *)(uintptr_t) "causecausecausecausec1";
    meta.tenant = (char *)(uintptr_t) "acme";
    meta.notification_id = event->id;
    meta.correlation_id = (char *)(uintptr_t) "order-7";
    Stentor__V1__Rendered rendered;
    stentor__v1__rendered__init(&rendered);
    rendered.meta = &meta;
    rendered.channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    rendered.priority = STENTOR__V1__PRIORITY__PRIORITY_NORMAL;
    rendered.template_ = (char *)(uintptr_t) "welcome";
    rendered.template_version = (char *)(uintptr_t) "1.0.0";
    rendered.attempt = event->attempt == 0 ? 1 : event->attempt;
    rendered.rung = event->rung;
    rendered.rendered_at_us = clock_now_us() - event->rendered_ago_s * 1000000;
    rendered.accepted_at_us = rendered.rendered_at_us;
    rendered.expires_at_us = event->expires_at_us;
    rendered.address = seal(
        key, STR("acme"), str_from(event->id), "address", packed_address(stage, event->to),
        stage->arena);
    seal_content(stage, event, key, &rendered);
    assert_true(event_pack(&rendered.base, stage->arena, &event->packed, NULL));
}

static void publish(Stage *stage, Str payload, const char *event_id)
{
    char subject[SUBJECT_SIZE];
    subject_rendered(subject, PRIORITY_NORMAL, STR("acme"));
    BusOut out = {.subject = subject, .event_id = str_from(event_id), .payload = payload};
    Acks acks = {0};
    bus_publish(stage->rig.bus, &out, on_acks, &acks);
    WAIT(&stage->rig, acks.stored == 1);
}

static void make_and_publish(Stage *stage, Event *event)
{
    make_event(stage, event);
    publish(stage, event->packed, event->id);
}

static void wait_acked(Stage *stage)
{
    for (int i = 0; i < 300; i++) {
        rig_ask(&stage->rig, "$JS.API.CONSUMER.INFO.RENDERED_NORMAL.dispatcher", "");
        if (strstr(stage->rig.reply, "\"num_ack_pending\":0") != NULL &&
            strstr(stage->rig.reply, "\"num_pending\":0") != NULL) {
            return;
        }
        pass_ms(&stage->rig, 20);
    }
    fail_msg("not acked: %s", stage->rig.reply);
}

// ---- tests ----

static void a_mail_is_sent_recorded_published_and_acked(void **state)
{
    Stage *stage = *state;
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    Stentor__V1__NotificationStatus *status = status_at(stage, 0);
    assert_int_equal(status->status, STATUS_SENT);
    assert_string_equal(status->meta->notification_id, event.id);
    assert_string_equal(status->meta->correlation_id, "order-7");
    assert_string_equal(status->attempt->vendor, "smtp");
    assert_string_equal(status->attempt->code, "250");
    assert_int_equal(status->attempt->outcome, OUTCOME_ACCEPTED);
    assert_int_equal(status->attempt->number, 1);
    assert_false(status->attempt->was_unknown);
    assert_string_equal(ledger_state(stage), "sent/0/1");
    assert_int_equal(stage->sends, 1);
    assert_non_null(strstr(
        stage->last_message,
        "From: <shop@example.com>\r\nTo: \"Alice\" <alice@example.org>\r\nSubject: Hello\r\n"));
    assert_non_null(strstr(stage->last_message, "@mail.example.com>\r\n"));
    wait_acked(stage);
}

static void a_repeat_is_not_sent_and_publishes_the_same(void **state)
{
    Stage *stage = *state;
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    status_at(stage, 0);
    wait_acked(stage);
    publish(stage, event.packed, "another-id-past-dedupe");
    wait_acked(stage);
    assert_int_equal(stage->sends, 1);
    pass_ms(&stage->rig, 100);
    assert_int_equal(stage->status.count, 1); // the same id: JetStream dropped it
}

static void a_transient_refusal_is_deferred_up_the_ladder(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "451 4.3.0";
    Event event = {.to = "alice@example.org"};
    int64_t before = clock_now_us();
    make_and_publish(stage, &event);
    Stentor__V1__Deferred *deferred = deferred_at(stage, 0);
    assert_string_equal(deferred->reason, "retry");
    assert_int_equal(deferred->rendered->attempt, 2);
    assert_int_equal(deferred->rendered->rung, 1);
    assert_string_equal(deferred->rendered->meta->notification_id, event.id);
    assert_non_null(deferred->rendered->content);
    assert_true(
        deferred->due_at_us >= before + 60 * 1000000LL &&
        deferred->due_at_us <= clock_now_us() + 67 * 1000000LL);
    Stentor__V1__NotificationStatus *status = status_at(stage, 0);
    assert_int_equal(status->status, STATUS_SENDING);
    assert_int_equal(status->attempt->outcome, OUTCOME_REJECTED_RETRYABLE);
    assert_string_equal(ledger_state(stage), "deferred/0/1");
    wait_acked(stage);
}

static void a_throttled_mail_uses_no_rung(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "421 4.7.0";
    Event event = {.to = "alice@example.org", .attempt = 3, .rung = 2};
    make_and_publish(stage, &event);
    assert_int_equal(deferred_at(stage, 0)->rendered->attempt, 4);
    assert_int_equal(deferred_at(stage, 0)->rendered->rung, 2);
}

static void a_mail_throttled_for_a_day_goes_up_the_ladder(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "421 4.7.0";
    Event event = {.to = "a@example.org", .attempt = 9, .rung = 1, .rendered_ago_s = 25 * 3600};
    make_and_publish(stage, &event);
    const Stentor__V1__Rendered *next = deferred_at(stage, 0)->rendered;
    assert_int_equal(next->rung, 2);
    assert_true(next->rendered_at_us <= clock_now_us() - 25 * 3600 * INT64_C(1000000)); // as it was
}

static void a_mail_throttled_for_ever_fails(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "450 4.2.1";
    Event event = {.to = "a@example.org", .attempt = 9, .rung = 2, .rendered_ago_s = 25 * 3600};
    make_and_publish(stage, &event);
    assert_string_equal(status_at(stage, 0)->reason_code, "retries_exhausted");
    assert_int_equal(stage->deferred.count, 0);
}

static void a_used_up_ladder_fails_and_is_buried(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "451 4.3.0";
    Event event = {.to = "alice@example.org", .attempt = 3, .rung = 2};
    make_and_publish(stage, &event);
    Stentor__V1__NotificationStatus *status = status_at(stage, 0);
    assert_int_equal(status->status, STATUS_FAILED);
    assert_string_equal(status->reason_code, "retries_exhausted");
    assert_string_equal(dead_at(stage, 0)->reason, "retries_exhausted: words of the vendor");
    assert_int_equal(stage->deferred.count, 0);
    wait_acked(stage);
}

static void a_bad_address_fails_at_once(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "550 5.1.1";
    Event event = {.to = "nobody@example.org"};
    make_and_publish(stage, &event);
    Stentor__V1__NotificationStatus *status = status_at(stage, 0);
    assert_int_equal(status->status, STATUS_FAILED);
    assert_string_equal(status->reason_code, "invalid_address");
    assert_int_equal(status->attempt->outcome, OUTCOME_REJECTED_TERMINAL);
    assert_string_equal(status->attempt->enhanced_code, "5.1.1");
    wait_acked(stage);
    assert_int_equal(stage->dead.count, 0);
}

static void what_cannot_be_sent_is_told_without_a_try(void **state)
{
    Stage *stage = *state;
    Event expired = {.to = "alice@example.org", .expires_at_us = 1};
    make_and_publish(stage, &expired);
    assert_string_equal(status_at(stage, 0)->reason_code, "expired");
    assert_null(status_at(stage, 0)->attempt);
    Event broken = {.to = "alice@example.org", .wrong_checksum = true};
    make_and_publish(stage, &broken);
    assert_string_equal(status_at(stage, 1)->reason_code, "unreadable_content");
    assert_string_equal(
        dead_at(stage, 0)->reason,
        "unreadable_content: 'content' does not match 'content_checksum'");
    Event bad = {.to = "not an address"};
    make_and_publish(stage, &bad);
    assert_string_equal(status_at(stage, 2)->reason_code, "invalid_address");
    wait_acked(stage);
    assert_int_equal(stage->sends, 0);
    assert_string_equal(
        sql_value(
            stage,
            "SELECT count(*) FROM dispatch.ledger WHERE state = 'failed' AND vendor IS NULL"),
        "3");
}

static void an_erased_recipient_gets_nothing(void **state)
{
    Stage *stage = *state;
    Event event = {.to = "alice@example.org"};
    make_event(stage, &event);
    run_sql(stage, "UPDATE keys.data_keys SET wrapped = NULL, destroyed_at = now()");
    publish(stage, event.packed, event.id);
    assert_string_equal(status_at(stage, 0)->reason_code, "recipient_erased");
    assert_int_equal(stage->sends, 0);
}

static void a_poison_event_is_buried_and_the_others_go_on(void **state)
{
    Stage *stage = *state;
    publish(stage, STR("\xff\xffnot protobuf"), "poison-1");
    publish(stage, STR(""), "poison-2");
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    assert_string_equal(dead_at(stage, 1)->reason, "'meta.tenant' is not a tenant's id");
    wait_acked(stage);
}

static void an_unknown_template_version_is_waited_for(void **state)
{
    Stage *stage = *state;
    Stentor__V1__LocaleVariant locale;
    stentor__v1__locale_variant__init(&locale);
    locale.locale = (char *)(uintptr_t) "en-US";
    locale.text = (char *)(uintptr_t) "Hello there and a lot of other words of the template";
    Stentor__V1__LocaleVariant *locales[] = {&locale};
    Stentor__V1__TemplateVersion version;
    stentor__v1__template_version__init(&version);
    version.tenant = (char *)(uintptr_t) "acme";
    version.key = (char *)(uintptr_t) "welcome";
    version.version = (char *)(uintptr_t) "1.0.0";
    version.n_locales = 1;
    version.locales = locales;
    BodyPrefix *prefix = body_prefix_new(&version);
    Event event = {.to = "alice@example.org", .prefix = prefix};
    make_and_publish(stage, &event);
    pass_ms(&stage->rig, 400);
    assert_int_equal(stage->sends, 0);
    Str packed;
    assert_true(event_pack(&version.base, stage->arena, &packed, NULL));
    BusOut out = {
        .subject = "cfg.template.acme.welcome.1_0_0",
        .event_id = STR("template-1"),
        .payload = packed};
    Acks acks = {0};
    bus_publish(stage->rig.bus, &out, on_acks, &acks);
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    body_prefix_free(prefix);
}

// A claim as a process that is gone left it.
static void leave_claim(Stage *stage, const Event *event, const char *lease)
{
    int64_t ms = 0;
    assert_true(id_parse(str_from(event->id), "ntf_", &ms));
    char sql[512];
    snprintf(
        sql, sizeof sql,
        "INSERT INTO dispatch.ledger (created_at, notification_id, attempt, tenant_id, state, "
        "owner, lease_until, claimed_at)"
        " VALUES (to_timestamp(%lld / 1000.0), '%s', 1, 'acme', 'claimed', 'gone', now() + "
        "interval '%s', now())",
        (long long)ms, event->id, lease);
    run_sql(stage, sql);
}

static void a_dead_claim_is_sent_again_and_says_so(void **state)
{
    Stage *stage = *state;
    Event event = {.to = "alice@example.org"};
    make_event(stage, &event);
    leave_claim(stage, &event, "-1 second");
    publish(stage, event.packed, event.id);
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    assert_true(status_at(stage, 0)->attempt->was_unknown);
    assert_string_equal(ledger_state(stage), "sent/1/1");
}

static void a_living_claim_is_waited_for(void **state)
{
    Stage *stage = *state;
    Event event = {.to = "alice@example.org"};
    make_event(stage, &event);
    leave_claim(stage, &event, "1 second");
    publish(stage, event.packed, event.id);
    pass_ms(&stage->rig, 500);
    assert_int_equal(stage->sends, 0);
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    assert_int_equal(stage->sends, 1);
}

static void a_dead_claim_is_parked_when_the_policy_says_so(void **state)
{
    Stage *stage = *state;
    dispatcher_down(stage);
    stage->parts.unknown = UNKNOWN_PARK;
    dispatcher_up(stage, "second");
    Event event = {.to = "alice@example.org"};
    make_event(stage, &event);
    leave_claim(stage, &event, "-1 second");
    publish(stage, event.packed, event.id);
    assert_true(str_starts(str_from(dead_at(stage, 0)->reason), STR("unknown_outcome")));
    assert_string_equal(ledger_state(stage), "parked/1/1");
    wait_acked(stage);
    assert_int_equal(stage->sends, 0);
    assert_int_equal(stage->status.count, 0);
}

static void an_unanswered_mail_is_sent_once_more(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "unknown";
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    assert_true(status_at(stage, 0)->attempt->was_unknown);
    assert_string_equal(ledger_state(stage), "sent/1/1");
}

static void a_mail_unanswered_twice_is_deferred(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "unknown";
    stage->answers[1] = "unknown";
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    assert_int_equal(deferred_at(stage, 0)->rendered->attempt, 2);
    assert_int_equal(status_at(stage, 0)->attempt->outcome, OUTCOME_TIMEOUT);
    assert_string_equal(ledger_state(stage), "deferred/2/1");
}

static void an_unreachable_vendor_defers(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "unsent";
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    assert_int_equal(deferred_at(stage, 0)->rendered->rung, 1);
    assert_int_equal(status_at(stage, 0)->attempt->outcome, OUTCOME_TIMEOUT);
    assert_string_equal(ledger_state(stage), "deferred/0/1");
}

static void draining_releases_and_the_next_process_sends(void **state)
{
    Stage *stage = *state;
    stage->holding = true;
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    WAIT(&stage->rig, stage->held_count == 1);
    dispatcher_down(stage);
    assert_string_equal(
        sql_value(stage, "SELECT state || owner || lease_until FROM dispatch.ledger"),
        "claimed-infinity");
    stage->holding = false;
    dispatcher_up(stage, "second");
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    assert_false(status_at(stage, 0)->attempt->was_unknown);
    assert_int_equal(stage->sends, 1);
}

static void outcomes_survive_a_database_that_goes_away(void **state)
{
    Stage *stage = *state;
    stage->holding = true;
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    WAIT(&stage->rig, stage->held_count == 1);
    run_sql(stage, "ALTER ROLE stentor_dispatcher NOLOGIN");
    run_sql(
        stage, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = "
               "'stentor_dispatcher'");
    answer_held(stage, "250 2.0.0");
    pass_ms(&stage->rig, 500);
    run_sql(stage, "ALTER ROLE stentor_dispatcher LOGIN");
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    assert_int_equal(stage->sends, 1);
    assert_string_equal(ledger_state(stage), "sent/0/1");
    wait_acked(stage);
}

static void a_slow_mail_keeps_its_claim(void **state)
{
    Stage *stage = *state;
    dispatcher_down(stage);
    stage->parts.lease_ms = 1000;
    dispatcher_up(stage, "second");
    stage->holding = true;
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    WAIT(&stage->rig, stage->held_count == 1);
    pass_ms(&stage->rig, 2500);
    assert_string_equal(sql_value(stage, "SELECT lease_until > now() FROM dispatch.ledger"), "t");
    answer_held(stage, "250 2.0.0");
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    assert_string_equal(ledger_state(stage), "sent/0/1");
}

static void no_more_is_claimed_than_the_vendor_can_take(void **state)
{
    enum { MAILS = 20, CLAIMS = 4, WITH_A_BATCH = 2 * CLAIMS - 1 };
    Stage *stage = *state;
    dispatcher_down(stage);
    stage->claims_max = CLAIMS;
    dispatcher_up(stage, "second");
    stage->holding = true;
    for (int i = 0; i < MAILS; i++) {
        make_and_publish(stage, &(Event){.to = "alice@example.org"});
    }
    WAIT(&stage->rig, stage->held_count >= CLAIMS);
    pass_ms(&stage->rig, 300);
    assert_true(stage->held_count <= WITH_A_BATCH);
    assert_string_equal(
        sql_value(stage, "SELECT count(*) BETWEEN 4 AND 7 FROM dispatch.ledger"), "t");
    stage->holding = false;
    status_at(stage, MAILS - 1);
    assert_int_equal(stage->sends, MAILS);
    wait_acked(stage);
}

static void a_claim_taken_away_is_not_recorded(void **state)
{
    Stage *stage = *state;
    stage->holding = true;
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    WAIT(&stage->rig, stage->held_count == 1);
    run_sql(
        stage, "UPDATE dispatch.ledger SET owner = 'other', state = 'sent', finished_at = now(), "
               "vendor = 'smtp',"
               " code = '250', claimed_at = now(), unknown_count = 1");
    answer_held(stage, "451 4.3.0");
    // Its redelivery tells what the other recorded, not what came back here.
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    assert_true(status_at(stage, 0)->attempt->was_unknown);
    assert_int_equal(stage->deferred.count, 0);
}

static void another_tenants_row_is_not_asked_for_for_ever(void **state)
{
    Stage *stage = *state;
    Event event = {.to = "alice@example.org"};
    make_event(stage, &event);
    leave_claim(stage, &event, "-1 second");
    run_sql(stage, "UPDATE dispatch.ledger SET tenant_id = 'zeta'");
    publish(stage, event.packed, event.id);
    assert_string_equal(
        dead_at(stage, 0)->reason, "the notification's row in the ledger is not of tenant 'acme'");
    assert_int_equal(stage->sends, 0);
    wait_acked(stage);
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, stage_up, stage_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(a_mail_is_sent_recorded_published_and_acked),
        ON_STAGE(a_repeat_is_not_sent_and_publishes_the_same),
        ON_STAGE(a_transient_refusal_is_deferred_up_the_ladder),
        ON_STAGE(a_throttled_mail_uses_no_rung),
        ON_STAGE(a_mail_throttled_for_a_day_goes_up_the_ladder),
        ON_STAGE(a_mail_throttled_for_ever_fails),
        ON_STAGE(a_used_up_ladder_fails_and_is_buried),
        ON_STAGE(a_bad_address_fails_at_once),
        ON_STAGE(what_cannot_be_sent_is_told_without_a_try),
        ON_STAGE(an_erased_recipient_gets_nothing),
        ON_STAGE(a_poison_event_is_buried_and_the_others_go_on),
        ON_STAGE(an_unknown_template_version_is_waited_for),
        ON_STAGE(a_dead_claim_is_sent_again_and_says_so),
        ON_STAGE(a_living_claim_is_waited_for),
        ON_STAGE(a_dead_claim_is_parked_when_the_policy_says_so),
        ON_STAGE(an_unanswered_mail_is_sent_once_more),
        ON_STAGE(a_mail_unanswered_twice_is_deferred),
        ON_STAGE(an_unreachable_vendor_defers),
        ON_STAGE(draining_releases_and_the_next_process_sends),
        ON_STAGE(outcomes_survive_a_database_that_goes_away),
        ON_STAGE(a_slow_mail_keeps_its_claim),
        ON_STAGE(no_more_is_claimed_than_the_vendor_can_take),
        ON_STAGE(a_claim_taken_away_is_not_recorded),
        ON_STAGE(another_tenants_row_is_not_asked_for_for_ever),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
