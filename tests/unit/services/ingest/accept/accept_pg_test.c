// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/codec/event.h"
#include "services/ingest/accept/accept.h"
#include "services/ingest/accept/accept_group.h"
#include "services/ingest/accept/accept_internal.h"
#include "stentor/v1/request.pb-c.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

enum { TICK_MS = 20, TRIES_MAX = 4, SHARE = 50 };

// One replica of ingest without its HTTP and without NATS: what is accepted stays in the accept
// log.
typedef struct Replica {
    uv_loop_t *loop;
    DbPool *pool;
    Metrics *registry;
    IngestMetrics metrics;
    MasterKey *master;
    Keyring *keyring;
    Catalog *catalog;
    Bus *bus;
    RowPublisher *publisher;
    FairShare *share;
    Accept *accept;
    uv_timer_t tick;
    int open;
    bool gone;
} Replica;

// A submission and what became of it.
typedef struct Try {
    Submission submission;
    Request requests[4];
    bool done;
    AcceptVerdict verdict;
    char answer[512];
    Error error;
    PGconn *breaker; // not NULL: ends the connections of ingest when it is answered
} Try;

#define END_CONNECTIONS                                                                            \
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'stentor_ingest'"

// Parts on their way to the accept log.
typedef struct Parts {
    AcceptPart *items;
    size_t count;
    Arena *arena;
    bool done;
} Parts;

static char master_text[132];

static void on_accept_broken(void *ctx, const Error *err)
{
    (void)ctx;
    fail_msg("%s", err->text);
}

static void on_timer_tick(uv_timer_t *timer)
{
    Replica *r = timer->data;
    accept_tick(r->accept);
}

static Replica *replica_new(uv_loop_t *loop, const char *url)
{
    Replica *r = calloc(1, sizeof *r);
    r->loop = loop;
    r->pool = db_pool_new(
        loop, &(DbPoolOptions){.url = url, .application_name = "ingest-test", .connections = 2});
    r->registry = metrics_new();
    ingest_metrics_init(&r->metrics, r->registry);
    r->master = master_key_parse(str_from(master_text), NULL);
    r->keyring = keyring_new(r->pool, r->master, &(KeyringOptions){0});
    r->catalog = catalog_new();
    BusOptions bus = {.url = "nats://127.0.0.1:1", .name = "test", .service = "stentor-ingest"};
    r->bus = bus_open(loop, &bus, NULL);
    r->publisher = row_publisher_new(r->bus, r->pool, &r->metrics);
    r->share = fair_share_new(SHARE);
    r->accept = accept_new(&(AcceptOptions){
        .loop = loop,
        .pool = r->pool,
        .keyring = r->keyring,
        .catalog = r->catalog,
        .publisher = r->publisher,
        .share = r->share,
        .metrics = &r->metrics,
        .on_broken = on_accept_broken,
    });
    uv_timer_init(loop, &r->tick);
    r->tick.data = r;
    uv_timer_start(&r->tick, on_timer_tick, TICK_MS, TICK_MS);
    return r;
}

static void on_part_closed(void *ctx)
{
    Replica *r = ctx;
    r->gone = --r->open == 0;
}

static void on_tick_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

static void replica_free(Replica *r)
{
    r->open = 3;
    accept_free(r->accept, on_part_closed, r);
    uv_close((uv_handle_t *)&r->tick, on_tick_closed);
    bus_close(r->bus, on_part_closed, r);
    assert_true(run_for(r->loop, &r->gone, true, WAIT_MS));
    row_publisher_free(r->publisher);
    fair_share_free(r->share);
    keyring_free(r->keyring);
    catalog_free(r->catalog);
    r->gone = false;
    r->open = 1;
    db_pool_close(r->pool, on_part_closed, r);
    assert_true(run_for(r->loop, &r->gone, true, WAIT_MS));
    master_key_free(r->master);
    metrics_free(r->registry);
    free(r);
}

typedef struct Scene {
    uv_loop_t loop;
    PGconn *admin;
    char url[512];
    Replica *replica;
    Arena *arena;
} Scene;

static int migrate_once(void **state)
{
    (void)state;
    master_key_generate(master_text);
    migrate_these(migrate_schemas);
    return 0;
}

static int set_up(void **state)
{
    Scene *s = calloc(1, sizeof *s);
    uv_loop_init(&s->loop);
    s->admin = admin_connect();
    admin_exec(
        s->admin, "TRUNCATE ingest.accept_log, ingest.idempotency_keys, keys.data_keys, "
                  "people.recipients, people.addresses");
    url_with("&user=stentor_ingest", s->url, sizeof s->url);
    s->replica = replica_new(&s->loop, s->url);
    s->arena = arena_new(0);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    Scene *s = *state;
    replica_free(s->replica);
    PQfinish(s->admin);
    arena_free(s->arena);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    free(s);
    return 0;
}

static void on_accept_done(void *ctx, const AcceptResult *result)
{
    Try *t = ctx;
    assert_false(t->done);
    t->done = true;
    t->verdict = result->verdict;
    t->error = result->error;
    snprintf(t->answer, sizeof t->answer, "%.*s", STR_ARG(result->answer));
    if (t->breaker != NULL) {
        admin_exec(t->breaker, END_CONNECTIONS);
    }
}

static void prepare(Scene *s, Try *t, const char *tenant, const char *key, const char *body)
{
    memset(t, 0, sizeof *t);
    for (size_t i = 0; i < 2; i++) {
        t->requests[i] = (Request){
            .to = str_from(arena_printf(s->arena, "%s%zu@example.com", tenant, i)),
            .channel = CHANNEL_EMAIL,
            .category = CATEGORY_BILLING,
            .priority = PRIORITY_NORMAL,
            .template_key = STR("welcome"),
            .template_version = STR("1.0.0"),
        };
    }
    t->submission = (Submission){
        .tenant = str_from(tenant),
        .scope = STR("test"),
        .key = str_from(key),
        .requests = t->requests,
        .count = 2,
        .bytes = 100,
        .done = on_accept_done,
        .ctx = t,
    };
    sha256(str_from(body), t->submission.body_hash);
}

static void hand_in(Scene *s, Replica *r, Try *t)
{
    Error err = {0};
    if (!accept_submit(r->accept, &t->submission, s->arena, &err)) {
        fail_msg("%s", err.text);
    }
    assert_false(t->done); // never inside the call
}

static void submit(
    Scene *s, Replica *r, Try *t, const char *tenant, const char *key, const char *body)
{
    prepare(s, t, tenant, key, body);
    hand_in(s, r, t);
}

static void wait_for(Scene *s, const Try *t)
{
    if (!run_for(&s->loop, &t->done, true, WAIT_MS)) {
        fail_msg("no answer");
    }
}

static void submissions_of_one_tenant_share_a_row(void **state)
{
    Scene *s = *state;
    Try a;
    Try b;
    Try c;
    submit(s, s->replica, &a, "acme", "", "a");
    submit(s, s->replica, &b, "other", "", "b");
    submit(s, s->replica, &c, "acme", "", "c");
    wait_for(s, &a);
    wait_for(s, &b);
    wait_for(s, &c);
    assert_int_equal(a.verdict, ACCEPT_STORED);
    assert_int_equal(b.verdict, ACCEPT_STORED);
    assert_int_equal(c.verdict, ACCEPT_STORED);
    assert_string_equal(
        admin_value(
            s->admin, "SELECT string_agg(tenant_id || cardinality(notification_ids), ',' "
                      "ORDER BY tenant_id) FROM ingest.accept_log WHERE published_at IS NULL"),
        "acme4,other2");
    assert_string_equal(admin_value(s->admin, "SELECT count(*) FROM keys.data_keys"), "4");
}

// The frames of the only accept row.
static Frame *read_frames(Scene *s, size_t *ret_count)
{
    PGresult *res = PQexecParams(
        s->admin, "SELECT events FROM ingest.accept_log", 0, NULL, NULL, NULL, NULL, 1);
    assert_int_equal(PQntuples(res), 1);
    Str bytes = arena_str(s->arena, db_get_text(res, 0, 0));
    PQclear(res);
    Frame *frames = NULL;
    assert_true(frames_unpack(bytes, s->arena, &frames, ret_count, NULL));
    return frames;
}

static const Stentor__V1__Meta *meta_of(Scene *s, const Frame *frame)
{
    const Stentor__V1__NotificationRequest *event =
        (const Stentor__V1__NotificationRequest *)event_unpack(
            &stentor__v1__notification_request__descriptor, frame->out.payload, s->arena, NULL);
    assert_non_null(event);
    return event->meta;
}

static void submissions_whose_key_is_new_share_the_row_too(void **state)
{
    static const char *const KEYS[] = {"k1", "old", "k2", "", "k3", ""};
    enum { COUNT = sizeof KEYS / sizeof KEYS[0], STORED = 2 * (COUNT - 1) };
    Scene *s = *state;
    Try old;
    submit(s, s->replica, &old, "acme", "old", "body");
    wait_for(s, &old);
    admin_exec(s->admin, "TRUNCATE ingest.accept_log");
    Try tries[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        submit(s, s->replica, &tries[i], "acme", KEYS[i], "body");
    }
    for (size_t i = 0; i < COUNT; i++) {
        wait_for(s, &tries[i]);
        assert_int_equal(tries[i].verdict, i == 1 ? ACCEPT_REPLAYED : ACCEPT_STORED);
    }
    assert_string_equal(tries[1].answer, old.answer);
    size_t count = 0;
    const Frame *frames = read_frames(s, &count); // of the only row
    assert_int_equal(count, 2 * STORED);
    for (size_t i = 0; i < STORED; i++) {
        const char *sql =
            arena_printf(s->arena, "SELECT notification_ids[%zu] FROM ingest.accept_log", i + 1);
        assert_string_equal(
            meta_of(s, &frames[2 * i])->notification_id, admin_value(s->admin, sql));
        assert_int_equal(frames[2 * i + 1].kind, FRAME_STATUS);
    }
}

// "ntf.request.<lane>.<tenant>" of the tenant's requests, one of each.
static const char *lanes_of(Scene *s, const char *tenant)
{
    return admin_value(
        s->admin, arena_printf(
                      s->arena,
                      "SELECT string_agg(DISTINCT lane[1], ',' ORDER BY lane[1]) FROM "
                      "ingest.accept_log, regexp_matches(encode(events, 'escape'), "
                      "'ntf\\.request\\.([a-z]+)\\.', 'g') AS lane WHERE tenant_id = '%s'",
                      tenant));
}

static void what_is_beyond_a_tenants_share_takes_the_lowest_lane(void **state)
{
    enum { COUNT = SHARE * FAIR_SHARE_SAVED_MS / 1000 + 20 }; // submissions of two
    Scene *s = *state;
    static Try flood[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        submit(s, s->replica, &flood[i], "flood", "", "body");
    }
    Try urgent;
    prepare(s, &urgent, "flood", "", "body");
    urgent.requests[0].priority = urgent.requests[1].priority = PRIORITY_CRITICAL;
    hand_in(s, s->replica, &urgent);
    Try other;
    submit(s, s->replica, &other, "other", "", "body");
    wait_for(s, &urgent);
    wait_for(s, &other);
    wait_for(s, &flood[COUNT - 1]);
    assert_string_equal(lanes_of(s, "other"), "normal");
    assert_string_equal(lanes_of(s, "flood"), "critical,low,normal");
}

// What a tenant has handed in is not begun before what another one handed in behind it.
static void tenants_take_turns(void **state)
{
    enum { COUNT = ACCEPT_WAITING_MAX / ACCEPT_TENANT_SHARE / 2 };
    Scene *s = *state;
    Try *flood = calloc(COUNT, sizeof *flood);
    for (size_t i = 0; i < COUNT; i++) {
        submit(s, s->replica, &flood[i], "flood", "", "body");
    }
    Try one;
    Error err = {0};
    prepare(s, &one, "flood", "", "body");
    assert_false(accept_submit(s->replica->accept, &one.submission, s->arena, &err));
    assert_int_equal(err.kind, ERROR_TRANSIENT);
    assert_string_equal(
        err.text, "5000 notifications of tenant 'flood' wait to be committed already");
    Try other;
    submit(s, s->replica, &other, "other", "", "body");
    wait_for(s, &other);
    size_t done = 0;
    for (size_t i = 0; i < COUNT; i++) {
        done += flood[i].done;
    }
    assert_true(done < COUNT / 2);
    for (size_t i = 0; i < COUNT; i++) {
        wait_for(s, &flood[i]);
    }
    free(flood);
}

static void each_lane_has_its_row_and_so_has_what_waits(void **state)
{
    static const struct {
        const char *key;
        Priority priority;
        int64_t in_days;
    } SENT[] = {{"k1", PRIORITY_CRITICAL, 0}, {"k2", PRIORITY_LOW, 0}, {"k3", PRIORITY_CRITICAL, 0},
                {"", PRIORITY_LOW, 0},        {"k4", PRIORITY_LOW, 9}, {"", PRIORITY_CRITICAL, 9}};
    enum { COUNT = sizeof SENT / sizeof SENT[0] };
    Scene *s = *state;
    Try tries[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        prepare(s, &tries[i], "acme", SENT[i].key, "body");
        for (size_t n = 0; n < tries[i].submission.count; n++) {
            tries[i].requests[n].priority = SENT[i].priority;
            tries[i].requests[n].scheduled_for_us =
                SENT[i].in_days == 0 ? 0 : clock_now_us() + SENT[i].in_days * 86400 * 1000000;
        }
        hand_in(s, s->replica, &tries[i]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        wait_for(s, &tries[i]);
        assert_int_equal(tries[i].verdict, ACCEPT_STORED);
    }
    static const size_t TOGETHER[][2] = {{0, 2}, {1, 3}, {4, 5}};
    for (size_t i = 0; i < sizeof TOGETHER / sizeof TOGETHER[0]; i++) {
        const char *sql = arena_printf(
            s->arena,
            "SELECT cardinality(notification_ids) FROM ingest.accept_log WHERE "
            "'%.30s' = ANY (notification_ids) AND '%.30s' = ANY (notification_ids)",
            strstr(tries[TOGETHER[i][0]].answer, "ntf_"),
            strstr(tries[TOGETHER[i][1]].answer, "ntf_"));
        assert_string_equal(admin_value(s->admin, sql), "4");
    }
    assert_string_equal(admin_value(s->admin, "SELECT count(*) FROM ingest.accept_log"), "3");
}

// No data key can be made for what is no tenant's id: such a group is built again and again.
static void a_key_that_is_not_found_is_asked_for_again_and_then_reported(void **state)
{
    static const char *const TENANTS[] = {"acme", "other", "No Tenant", "acme"};
    enum { COUNT = sizeof TENANTS / sizeof TENANTS[0] };
    Scene *s = *state;
    Try tries[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        submit(s, s->replica, &tries[i], TENANTS[i], i == 1 ? "" : "k", TENANTS[i]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        wait_for(s, &tries[i]);
        assert_int_equal(tries[i].verdict, ACCEPT_UNAVAILABLE);
    }
    assert_string_equal(admin_value(s->admin, "SELECT count(*) FROM ingest.accept_log"), "0");
}

static void on_db_committed(void *ctx, DbTxn *txn, const Error *err)
{
    Parts *parts = ctx;
    assert_null(err);
    assert_true(accept_sql_read(txn, parts->items, parts->count, NULL));
    parts->done = true;
}

static void on_db_found(void *ctx, DbTxn *txn, const Error *err)
{
    Parts *parts = ctx;
    assert_null(err);
    accept_sql_found(txn, parts->items, parts->count, parts->arena);
    parts->done = true;
}

static void commit(Scene *s, AcceptPart *items, size_t count)
{
    Parts parts = {.items = items, .count = count, .arena = s->arena};
    DbTxn *txn = db_txn_new(s->replica->pool);
    accept_sql_add(txn, items, count, FRAMES_HEAD, clock_now_us());
    db_txn_submit(txn, on_db_committed, &parts);
    assert_true(run_for(&s->loop, &parts.done, true, WAIT_MS));
}

static void find_answers(Scene *s, AcceptPart *items, size_t count)
{
    Parts parts = {.items = items, .count = count, .arena = s->arena};
    DbTxn *txn = db_txn_new(s->replica->pool);
    accept_sql_find(txn, items, count);
    db_txn_submit(txn, on_db_found, &parts);
    assert_true(run_for(&s->loop, &parts.done, true, WAIT_MS));
}

// A commit whose answer was lost, and one key that another replica has stored meanwhile.
static void parts_that_are_committed_twice_are_stored_once_where_they_have_a_key(void **state)
{
    static const uint8_t hash[SHA256_LEN] = {7};
    Scene *s = *state;
    AcceptPart parts[] = {
        {.tenant = STR("acme"), .row = 0, .ids = STR("ntf_a,ntf_b"), .events = STR("x")},
        {.tenant = STR("other"), .row = 1, .ids = STR("ntf_c"), .events = STR("y")},
        {.tenant = STR("acme"), .row = 0, .ids = STR("ntf_d"), .events = STR("z")},
        {.tenant = STR("other"), .row = 1, .ids = STR("ntf_e,ntf_f"), .events = STR("w")},
    };
    enum { COUNT = sizeof parts / sizeof parts[0] };
    for (size_t i = 1; i < COUNT; i++) {
        parts[i].scope = STR("test");
        parts[i].key = str_from(arena_printf(s->arena, "key-%zu", i));
        parts[i].hash = hash;
        parts[i].answer = str_from(arena_printf(s->arena, "answer-%zu", i));
    }
    parts[0].next = &parts[2];
    parts[1].next = &parts[3];
    commit(s, parts, 3); // the fourth is not known yet
    assert_true(parts[0].accept_id != 0 && parts[0].accept_id == parts[2].accept_id);
    assert_true(parts[1].accept_id != 0 && parts[1].accept_id != parts[0].accept_id);
    int64_t first_id = parts[0].accept_id;
    for (size_t i = 0; i < COUNT; i++) {
        parts[i].accept_id = 0;
    }
    commit(s, parts, COUNT);
    assert_true(parts[0].accept_id > first_id);
    assert_true(parts[3].accept_id > first_id && parts[3].accept_id != parts[0].accept_id);
    find_answers(s, parts, COUNT);
    assert_int_equal(parts[3].stored_status, 0); // it is new: its key is not looked up
    for (size_t i = 1; i < 3; i++) {
        assert_int_equal(parts[i].accept_id, 0);
        assert_int_equal(parts[i].stored_status, 202);
        assert_true(str_eq(parts[i].stored_hash, str_of(hash, sizeof hash)));
        assert_true(str_eq(parts[i].stored_answer, parts[i].answer));
    }
    assert_string_equal(
        admin_value(
            s->admin, "SELECT string_agg(array_to_string(notification_ids, ',') || "
                      "encode(events, 'escape'), ' ' ORDER BY accept_id) FROM ingest.accept_log"),
        "ntf_a,ntf_b,ntf_d\001xz ntf_c\001y ntf_a,ntf_b\001x ntf_e,ntf_f\001w");
}

static void of_a_row_only_what_is_new_is_published(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Frame frames[6] = {{.kind = FRAME_REQUEST}};
    for (size_t i = 0; i < 6; i++) {
        frames[i].out.event_id = str_from(arena_printf(arena, "%zu", i));
    }
    AcceptPart parts[] = {
        {.tenant = STR("a"), .row = 0, .frames = frames, .frame_count = 2, .accept_id = 7},
        {.tenant = STR("b"), .row = 1, .frames = frames + 2, .frame_count = 1},
        {.tenant = STR("a"), .row = 0, .frames = frames + 3, .frame_count = 1},
        {.tenant = STR("a"), .row = 0, .frames = frames + 4, .frame_count = 2, .accept_id = 7},
    };
    Group group = {.arena = arena, .parts = parts, .part_count = 4, .row_count = 2};
    const PublishedRow *rows = group_published_rows(&group);
    assert_int_equal(rows[0].accept_id, 7);
    assert_true(str_eq(rows[0].tenant, STR("a")));
    assert_int_equal(rows[0].count, 4);
    static const char *const WANTED[] = {"0", "1", "4", "5"};
    for (size_t i = 0; i < 4; i++) {
        assert_true(str_eq(rows[0].frames[i].out.event_id, str_from(WANTED[i])));
    }
    assert_int_equal(rows[1].accept_id, 0);
    arena_free(arena);
}

static void the_answer_names_what_the_row_holds(void **state)
{
    Scene *s = *state;
    Try t;
    submit(s, s->replica, &t, "acme", "", "a");
    wait_for(s, &t);
    assert_string_equal(
        admin_value(
            s->admin, "SELECT '{\"notifications\":[{\"id\":\"' || notification_ids[1] || "
                      "'\",\"status\":\"queued\"},{\"id\":\"' || notification_ids[2] || "
                      "'\",\"status\":\"queued\"}]}' FROM ingest.accept_log"),
        t.answer);
}

static void the_stored_events_can_be_published_by_a_sweep(void **state)
{
    Scene *s = *state;
    Try t;
    submit(s, s->replica, &t, "acme", "", "a");
    wait_for(s, &t);
    PGresult *res = PQexecParams(
        s->admin, "SELECT events FROM ingest.claim_unpublished('0', '1 min', 10)", 0, NULL, NULL,
        NULL, NULL, 1);
    assert_int_equal(PQntuples(res), 1);
    Frame *frames = NULL;
    size_t count = 0;
    assert_true(frames_unpack(db_get_text(res, 0, 0), s->arena, &frames, &count, NULL));
    assert_int_equal(count, 4);
    assert_string_equal(frames[0].out.subject, "ntf.request.normal.acme");
    assert_string_equal(frames[3].out.subject, "ntf.status.acme.email.queued");
    PQclear(res);
}

static void the_same_key_and_body_get_the_same_answer_once_stored(void **state)
{
    Scene *s = *state;
    Try first;
    Try again;
    Try other_tenant;
    submit(s, s->replica, &first, "acme", "k1", "body");
    wait_for(s, &first);
    submit(s, s->replica, &again, "acme", "k1", "body");
    submit(s, s->replica, &other_tenant, "other", "k1", "body");
    wait_for(s, &again);
    wait_for(s, &other_tenant);
    assert_int_equal(first.verdict, ACCEPT_STORED);
    assert_int_equal(again.verdict, ACCEPT_REPLAYED);
    assert_string_equal(again.answer, first.answer);
    assert_int_equal(other_tenant.verdict, ACCEPT_STORED);
    assert_string_equal(admin_value(s->admin, "SELECT count(*) FROM ingest.accept_log"), "2");
}

static void the_same_key_with_another_body_is_refused(void **state)
{
    Scene *s = *state;
    Try first;
    Try other;
    Try without;
    submit(s, s->replica, &first, "acme", "k1", "body");
    wait_for(s, &first);
    submit(s, s->replica, &other, "acme", "k1", "another body");
    submit(s, s->replica, &without, "acme", "", "x"); // in the same group, and not held back by it
    wait_for(s, &other);
    wait_for(s, &without);
    assert_int_equal(other.verdict, ACCEPT_OTHER_BODY);
    assert_int_equal(without.verdict, ACCEPT_STORED);
    assert_string_equal(admin_value(s->admin, "SELECT count(*) FROM ingest.accept_log"), "2");
}

// What is new of a group is answered by its commit; only the look at what the repeat's key holds is
// tried again.
static void a_repeat_whose_look_fails_is_answered_and_nothing_is_stored_twice(void **state)
{
    Scene *s = *state;
    Try first;
    Try fresh;
    Try again;
    submit(s, s->replica, &first, "acme", "k1", "body");
    wait_for(s, &first);
    prepare(s, &fresh, "acme", "", "x");
    fresh.breaker = s->admin;
    submit(s, s->replica, &again, "acme", "k1", "body");
    hand_in(s, s->replica, &fresh);
    wait_for(s, &fresh);
    assert_false(again.done);
    assert_int_equal(fresh.verdict, ACCEPT_STORED);
    wait_for(s, &again);
    assert_int_equal(again.verdict, ACCEPT_REPLAYED);
    assert_string_equal(again.answer, first.answer);
    assert_string_equal(admin_value(s->admin, "SELECT count(*) FROM ingest.accept_log"), "2");
    assert_true(accept_idle(s->replica->accept));
}

// Its row is dropped in the moment between the refusal and the look.
static void a_repeat_whose_key_is_dropped_meanwhile_is_to_be_sent_again(void **state)
{
    Scene *s = *state;
    AcceptPart part = {
        .tenant = STR("acme"),
        .ids = STR("ntf_a"),
        .events = STR("x"),
        .scope = STR("test"),
        .key = STR("k1"),
        .hash = (const uint8_t[SHA256_LEN]){7},
        .answer = STR("answer")};
    commit(s, &part, 1);
    part.accept_id = 0;
    commit(s, &part, 1);
    assert_int_equal(part.accept_id, 0);
    admin_exec(s->admin, "DELETE FROM ingest.idempotency_keys");
    find_answers(s, &part, 1);
    assert_int_equal(part.stored_status, 0);
    Submission submission = {.answer = STR("another answer")};
    AcceptResult result = accept_result_of(&submission, &part);
    assert_int_equal(result.verdict, ACCEPT_UNAVAILABLE);
    assert_int_equal(result.error.kind, ERROR_TRANSIENT);
}

static void a_repeat_in_flight_waits_for_the_first(void **state)
{
    Scene *s = *state;
    Try first;
    Try again;
    Try other;
    submit(s, s->replica, &first, "acme", "k1", "body");
    submit(s, s->replica, &again, "acme", "k1", "body");
    submit(s, s->replica, &other, "acme", "k1", "another body");
    wait_for(s, &first);
    wait_for(s, &again);
    wait_for(s, &other);
    assert_int_equal(first.verdict, ACCEPT_STORED);
    assert_int_equal(again.verdict, ACCEPT_REPLAYED);
    assert_string_equal(again.answer, first.answer);
    assert_int_equal(other.verdict, ACCEPT_OTHER_BODY);
    assert_string_equal(admin_value(s->admin, "SELECT count(*) FROM ingest.accept_log"), "1");
}

static void two_replicas_that_race_for_a_key_store_it_once(void **state)
{
    Scene *s = *state;
    Replica *twin = replica_new(&s->loop, s->url);
    Try a[TRIES_MAX];
    Try b[TRIES_MAX];
    for (size_t i = 0; i < TRIES_MAX; i++) {
        char *key = arena_printf(s->arena, "race-%zu", i);
        submit(s, s->replica, &a[i], "acme", key, "body");
        submit(s, twin, &b[i], "acme", key, "body");
        wait_for(s, &a[i]);
        wait_for(s, &b[i]);
        assert_int_equal(a[i].verdict + b[i].verdict, ACCEPT_STORED + ACCEPT_REPLAYED);
        assert_string_equal(a[i].answer, b[i].answer);
    }
    assert_string_equal(admin_value(s->admin, "SELECT count(*) FROM ingest.accept_log"), "4");
    replica_free(twin);
}

static void a_key_is_free_again_after_a_day(void **state)
{
    Scene *s = *state;
    Try first;
    Try later;
    submit(s, s->replica, &first, "acme", "k1", "body");
    wait_for(s, &first);
    admin_exec(
        s->admin, "UPDATE ingest.idempotency_keys SET created_at = now() - interval '25 hours'");
    submit(s, s->replica, &later, "acme", "k1", "another body");
    wait_for(s, &later);
    assert_int_equal(later.verdict, ACCEPT_STORED);
    assert_string_not_equal(later.answer, first.answer);
    assert_string_equal(admin_value(s->admin, "SELECT count(*) FROM ingest.accept_log"), "2");
}

static void a_commit_whose_connection_dies_is_repeated_with_the_same_ids(void **state)
{
    Scene *s = *state;
    Try t;
    PGconn *holder = admin_connect();
    admin_exec(holder, "BEGIN");
    admin_exec(holder, "LOCK TABLE ingest.accept_log IN ACCESS EXCLUSIVE MODE");
    submit(s, s->replica, &t, "acme", "k1", "body");
    run_ms(&s->loop, 300);
    assert_false(t.done);
    admin_exec(s->admin, END_CONNECTIONS);
    admin_exec(holder, "ROLLBACK");
    PQfinish(holder);
    wait_for(s, &t);
    assert_int_equal(t.verdict, ACCEPT_STORED);
    assert_string_equal(admin_value(s->admin, "SELECT count(*) FROM ingest.accept_log"), "1");
    const char *id = admin_value(s->admin, "SELECT notification_ids[2] FROM ingest.accept_log");
    assert_non_null(strstr(t.answer, id));
}

static void too_many_that_wait_are_refused_at_once(void **state)
{
    Scene *s = *state;
    static Request requests[ACCEPT_WAITING_MAX];
    Submission submission = {
        .tenant = STR("acme"), .requests = requests, .count = ACCEPT_WAITING_MAX + 1};
    Error err = {0};
    assert_false(accept_submit(s->replica->accept, &submission, s->arena, &err));
    assert_int_equal(err.kind, ERROR_TRANSIENT);
    assert_true(accept_idle(s->replica->accept));
}

static void postgres_that_stays_away_is_reported_after_five_seconds(void **state)
{
    Scene *s = *state;
    Replica *r = replica_new(&s->loop, "postgresql:///postgres?host=/nonexistent&user=unknown");
    Try t;
    submit(s, r, &t, "acme", "k1", "body");
    run_ms(&s->loop, 3000);
    assert_false(t.done);
    wait_for(s, &t);
    assert_int_equal(t.verdict, ACCEPT_UNAVAILABLE);
    assert_int_equal(t.error.kind, ERROR_TRANSIENT);
    assert_true(accept_idle(r->accept));
    replica_free(r);
}

// ---- stored addresses ----

#define CHILD "rcp_01ARZ3NDEKTSV4RRFFQ69G5FA0"
#define PARENT "rcp_01ARZ3NDEKTSV4RRFFQ69G5FA1"

static void insert(Scene *s, const char *sql, const char *id, Str bytes, Str more)
{
    const char *values[] = {id, bytes.ptr, more.ptr};
    int lengths[] = {0, (int)bytes.len, (int)more.len};
    int formats[] = {0, 1, 1};
    PGresult *res = PQexecParams(s->admin, sql, 3, NULL, values, lengths, formats, 0);
    if (PQresultStatus(res) != PGRES_COMMAND_OK) {
        fail_msg("%s", PQerrorMessage(s->admin));
    }
    PQclear(res);
}

// A recipient with a sealed address, as people.* holds it.
static DataKey *add_recipient(Scene *s, const char *id, const char *address)
{
    MasterKey *master = s->replica->master;
    uint8_t subject[KEY_SUBJECT_LEN];
    uint8_t wrapped[WRAPPED_KEY_LEN];
    uint8_t hash[ADDRESS_HASH_LEN];
    key_subject(master_hash_key(master), DATA_KEY_ORDINARY, STR("acme"), str_from(id), subject);
    address_hash(master_hash_key(master), STR("acme"), CHANNEL_EMAIL, str_from(address), hash);
    DataKey *key = data_key_new(master, subject, 1, wrapped);
    insert(
        s,
        "INSERT INTO keys.data_keys (tenant_id, subject, generation, wrapped) "
        "SELECT 'acme', $2::bytea, 1, $3::bytea WHERE $1::text <> ''",
        id, str_of(subject, sizeof subject), str_of(wrapped, sizeof wrapped));
    Stentor__V1__Address plain;
    stentor__v1__address__init(&plain);
    plain.address = arena_cstr(s->arena, str_from(address));
    Str packed = STR_EMPTY;
    assert_true(event_pack(&plain.base, s->arena, &packed, NULL));
    Stentor__V1__Sealed *sealed = seal(key, STR("acme"), str_from(id), "address", packed, s->arena);
    assert_true(event_pack(&sealed->base, s->arena, &packed, NULL));
    admin_exec(
        s->admin, arena_printf(
                      s->arena,
                      "INSERT INTO people.recipients (tenant_id, recipient_id, updated_at, "
                      "sequence) VALUES ('acme', '%s', now(), 1)",
                      id));
    insert(
        s,
        "INSERT INTO people.addresses (tenant_id, recipient_id, channel, address_hash, address, "
        "status, verified, is_primary, position) "
        "VALUES ('acme', $1, 'email', $2::bytea, $3::bytea, 'active', true, true, 0)",
        id, str_of(hash, sizeof hash), packed);
    return key;
}

static void submit_of_class(
    Scene *s, Replica *r, Try *t, const char *recipient, RetentionClass retention)
{
    memset(t, 0, sizeof *t);
    t->requests[0] = (Request){
        .recipient_id = str_from(recipient),
        .retention = retention,
        .channel = CHANNEL_EMAIL,
        .category = CATEGORY_BILLING,
        .priority = PRIORITY_NORMAL,
        .template_key = STR("welcome"),
        .template_version = STR("1.0.0"),
    };
    t->submission = (Submission){
        .tenant = STR("acme"),
        .requests = t->requests,
        .count = 1,
        .single = true,
        .done = on_accept_done,
        .ctx = t,
    };
    Error err = {0};
    if (!accept_submit(r->accept, &t->submission, s->arena, &err)) {
        fail_msg("%s", err.text);
    }
    wait_for(s, t);
    assert_int_equal(t->verdict, ACCEPT_STORED);
}

static void submit_for(Scene *s, Replica *r, Try *t, const char *recipient)
{
    submit_of_class(s, r, t, recipient, RETENTION_STANDARD);
}

static void check_address(Scene *s, const Frame *frame, DataKey *key, const char *wanted)
{
    const Stentor__V1__NotificationRequest *event =
        (const Stentor__V1__NotificationRequest *)event_unpack(
            &stentor__v1__notification_request__descriptor, frame->out.payload, s->arena, NULL);
    assert_non_null(event);
    Str plain = STR_EMPTY;
    assert_true(unseal(
        key, STR("acme"), str_from(event->meta->notification_id), "address", event->address,
        s->arena, &plain, NULL));
    const Stentor__V1__Address *address = (const Stentor__V1__Address *)event_unpack(
        &stentor__v1__address__descriptor, plain, s->arena, NULL);
    assert_string_equal(address->address, wanted);
}

static void a_recipients_stored_address_is_sealed_again_for_the_notification(void **state)
{
    Scene *s = *state;
    DataKey *key = add_recipient(s, PARENT, "parent@example.com");
    Try t;
    submit_for(s, s->replica, &t, PARENT);
    size_t count = 0;
    const Frame *frames = read_frames(s, &count);
    assert_int_equal(count, 2);
    assert_string_equal(frames[0].out.subject, "ntf.request.normal.acme");
    check_address(s, &frames[0], key, "parent@example.com");
    data_key_free(key);
}

// An erasure destroys the ordinary key at once, and may have to keep the other one.
static void what_the_law_may_keep_is_sealed_under_a_key_of_its_own(void **state)
{
    Scene *s = *state;
    data_key_free(add_recipient(s, PARENT, "parent@example.com"));
    Try t;
    submit_of_class(s, s->replica, &t, PARENT, RETENTION_RECORD);
    size_t count = 0;
    const Frame *frames = read_frames(s, &count);
    const Stentor__V1__NotificationRequest *event =
        (const Stentor__V1__NotificationRequest *)event_unpack(
            &stentor__v1__notification_request__descriptor, frames[0].out.payload, s->arena, NULL);
    uint8_t subject[KEY_SUBJECT_LEN];
    key_subject(
        master_hash_key(s->replica->master), DATA_KEY_RECORD, STR("acme"), STR(PARENT), subject);
    assert_int_equal(event->address->key_subject.len, KEY_SUBJECT_LEN);
    assert_memory_equal(event->address->key_subject.data, subject, KEY_SUBJECT_LEN);
    assert_string_equal(admin_value(s->admin, "SELECT count(*) FROM keys.data_keys"), "2");
}

static void an_erased_recipients_address_is_none(void **state)
{
    Scene *s = *state;
    data_key_free(add_recipient(s, PARENT, "parent@example.com"));
    admin_exec(s->admin, "UPDATE keys.data_keys SET wrapped = NULL, destroyed_at = now()");
    Try t;
    submit_for(s, s->replica, &t, PARENT);
    assert_non_null(strstr(t.answer, "\"suppressed\""));
    size_t count = 0;
    const Frame *frames = read_frames(s, &count);
    assert_int_equal(count, 1);
    assert_string_equal(frames[0].out.subject, "ntf.status.acme.email.suppressed");
}

static void a_guardians_copy_is_in_the_row_and_not_in_the_answer(void **state)
{
    Scene *s = *state;
    DataKey *childs = add_recipient(s, CHILD, "child@example.com");
    DataKey *parents = add_recipient(s, PARENT, "parent@example.com");
    admin_exec(
        s->admin, "UPDATE people.recipients SET minor = true, guardian_id = '" PARENT
                  "', guardian_routing = 'copy' WHERE recipient_id = '" CHILD "'");
    Try t;
    submit_for(s, s->replica, &t, CHILD);
    assert_string_equal(
        admin_value(
            s->admin, "SELECT '{\"id\":\"' || notification_ids[1] || "
                      "'\",\"status\":\"queued\"}' || cardinality(notification_ids) "
                      "FROM ingest.accept_log"),
        arena_printf(s->arena, "%s2", t.answer));
    size_t count = 0;
    const Frame *frames = read_frames(s, &count);
    assert_int_equal(count, 4);
    check_address(s, &frames[0], childs, "child@example.com");
    check_address(s, &frames[2], parents, "parent@example.com");
    data_key_free(childs);
    data_key_free(parents);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_recipients_stored_address_is_sealed_again_for_the_notification, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_the_law_may_keep_is_sealed_under_a_key_of_its_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_erased_recipients_address_is_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_guardians_copy_is_in_the_row_and_not_in_the_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(submissions_of_one_tenant_share_a_row, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            submissions_whose_key_is_new_share_the_row_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_is_beyond_a_tenants_share_takes_the_lowest_lane, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tenants_take_turns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            each_lane_has_its_row_and_so_has_what_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_key_that_is_not_found_is_asked_for_again_and_then_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            parts_that_are_committed_twice_are_stored_once_where_they_have_a_key, set_up,
            tear_down),
        cmocka_unit_test(of_a_row_only_what_is_new_is_published),
        cmocka_unit_test_setup_teardown(the_answer_names_what_the_row_holds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_stored_events_can_be_published_by_a_sweep, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_same_key_and_body_get_the_same_answer_once_stored, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_same_key_with_another_body_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_repeat_whose_look_fails_is_answered_and_nothing_is_stored_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_repeat_whose_key_is_dropped_meanwhile_is_to_be_sent_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_repeat_in_flight_waits_for_the_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            two_replicas_that_race_for_a_key_store_it_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_key_is_free_again_after_a_day, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_commit_whose_connection_dies_is_repeated_with_the_same_ids, set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_many_that_wait_are_refused_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            postgres_that_stays_away_is_reported_after_five_seconds, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
