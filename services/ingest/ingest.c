// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/ingest.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/api/api.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/codec/attachment.h"
#include "common/configured/configured.h"
#include "common/recipients/people_projector.h"
#include "common/service/cleanup.h"
#include "common/service/http_rows.h"
#include "common/service/storage_rows.h"
#include "common/ticks/ticks.h"
#include "services/ingest/accept/sweep.h"
#include "services/ingest/batches/batches_api.h"
#include "services/ingest/canary/canary.h"
#include "services/ingest/intake/commands.h"
#include "services/ingest/intake/event_intake.h"
#include "services/ingest/intake/notifications_api.h"
#include "services/ingest/key_work.h"

enum { TICK_MS = 50, REST_MS = 500, KEYS_BULK_MIN = 100000 };

typedef struct IngestOptions {
    const char *bind;
    int64_t port;
    int64_t body_max;
    const char *channels;
    const char *console_url;
    HttpLimits limits;
    int64_t sweep_ms;
    int64_t sweep_age_ms;
    int64_t batch_lease_ms;
    int64_t canary_s;
    int64_t kept_days;
    const char *unknown_tenants;
    const char *retention_classes;
    int64_t share_per_s;
    int64_t cleanup_every_s;
    int64_t epoch_days;
    int64_t epoch_keep_days;
    int64_t epoch_settle_s;
    const char *keys_dump_dir;
    int64_t keys_dump_days;
    StorageOptions storage;
    bool events_sealed;
    bool requests_packed;
    int64_t attachments_max;
    int64_t reseal_ms;
} IngestOptions;

// Stopping goes through these in order; each begins when the one before has ended.
typedef enum Phase {
    PHASE_RUNNING,
    PHASE_DRAINING,   // no new requests and commands; those taken are committed and answered
    PHASE_PUBLISHING, // what is committed is published and marked, while NATS and Postgres are
                      // there
    PHASE_FREEING,    // handles close
    PHASE_STOPPED,
} Phase;

typedef struct Ingest {
    Service *service;
    IngestOptions options;
    ChannelSet delivered;
    IngestMetrics metrics;
    Configured configured;
    Keyring *keyring;
    EventKeys *event_keys;
    RowPublisher *publisher;
    FairShare *share;
    Accept *accept;
    Sweep *sweep;
    Commands *commands;
    Reseal *reseal;
    EventIntake *intake;
    HttpServer *server;
    Api api;
    NotificationsApi notifications;
    People *people;
    BatchRunner *batch_runner;
    BatchesApi batches;
    KeyUsage *key_usage;
    AuditLog *audit;
    Str console_origin; // a part of the options
    Cleanup *cleanup;
    KeyWork *key_work;
    Canary *canary;
    char keep[32];
    uv_timer_t tick;
    int64_t database_seen_us; // when it was last ready
    bool commands_started;
    Phase phase;
    int closing; // parts that are not drained, then not closed yet
} Ingest;

// clang-format off
static const Option OPTIONS[] = {
    {"STENTOR_INGEST_BIND", OPTION_TEXT, offsetof(IngestOptions, bind),
     "127.0.0.1", 0, 0, false,
     "address to listen on, for /v1/notifications and /v1/batches"},
    {"STENTOR_INGEST_PORT", OPTION_INT, offsetof(IngestOptions, port),
     "8082", 0, 65535, false,
     "its port; 0: any free one, named in the log"},
    {"STENTOR_INGEST_BODY_MAX", OPTION_INT, offsetof(IngestOptions, body_max),
     "4194304", 1024, 33554432, false,
     "largest request body in bytes; beyond it 413"},
    {"STENTOR_INGEST_ATTACHMENTS_MAX", OPTION_INT, offsetof(IngestOptions, attachments_max),
     "26214400", 1, ATTACHMENT_BYTES_MAX, false,
     "most bytes of all attachments of one mail"},
    {"STENTOR_CONSOLE_URL", OPTION_TEXT, offsetof(IngestOptions, console_url),
     "", 0, 0, false,
     "the same as the gateway's: whose sessions are taken in place of a key"},
    HTTP_LIMIT_ROWS("STENTOR_INGEST", IngestOptions),
    ACCESS_LOG_ROW("STENTOR_INGEST", IngestOptions, "100"),
    {"STENTOR_INGEST_CHANNELS", OPTION_TEXT, offsetof(IngestOptions, channels),
     "email", 0, 0, false,
     "channels that have a vendor, with commas between; a request for another channel is answered 422"},
    {"STENTOR_INGEST_SWEEP_MS", OPTION_INT, offsetof(IngestOptions, sweep_ms),
     "5000", 100, 3600000, false,
     "how often the sweep looks for accept rows that are not published, in milliseconds"},
    {"STENTOR_INGEST_SWEEP_AGE_MS", OPTION_INT, offsetof(IngestOptions, sweep_age_ms),
     "15000", 0, 3600000, false,
     "how old such a row must be, in milliseconds"},
    {"STENTOR_INGEST_BATCH_LEASE_MS", OPTION_INT, offsetof(IngestOptions, batch_lease_ms),
     "15000", 1000, 3600000, false,
     "after so many milliseconds another process goes on with the batch of one that died"},
    {"STENTOR_CANARY_S", OPTION_INT, offsetof(IngestOptions, canary_s),
     "0", 0, 3600, false,
     "every so many seconds a notification of `platform` goes the whole way and is measured; 0: none"},
    {"STENTOR_INGEST_KEPT_DAYS", OPTION_INT, offsetof(IngestOptions, kept_days),
     "35", 31, 36500, false,
     "days that ended requests, and the members of ended batches, are kept; an audit looks back so far"},
    {"STENTOR_INGEST_UNKNOWN_TENANTS", OPTION_TEXT, offsetof(IngestOptions, unknown_tenants),
     "refuse", 0, 0, false,
     "what is sent for a tenant without settings: refuse, or accept: as before there was this option"},
    {"STENTOR_RETENTION_CLASSES", OPTION_TEXT, offsetof(IngestOptions, retention_classes),
     "", 0, 0, false,
     "retention class (record, standard, brief) by category: marketing=brief,social=brief; a tenant's setting wins"},
    {"STENTOR_TENANT_SHARE", OPTION_INT, offsetof(IngestOptions, share_per_s),
     "100", 0, FAIR_SHARE_PER_S_MAX, false,
     "notifications a second of a tenant that keep their lane, for each lane and process; the rest take a lower one; 0: all"},
    {"STENTOR_CLEANUP_EVERY_S", OPTION_INT, offsetof(IngestOptions, cleanup_every_s),
     "86400", 1, 604800, false,
     "how often rows past their retention are dropped, in seconds"},
    {"STENTOR_EPOCH_DAYS", OPTION_INT, offsetof(IngestOptions, epoch_days),
     "7", 1, 365, false,
     "days after which the next epoch key is made, and all data keys are wrapped by it"},
    {"STENTOR_EPOCH_KEEP_DAYS", OPTION_INT, offsetof(IngestOptions, epoch_keep_days),
     "7", 1, 365, false,
     "days that an epoch key is kept when it wraps nothing any more; then it is destroyed"},
    {"STENTOR_EPOCH_SETTLE_S", OPTION_INT, offsetof(IngestOptions, epoch_settle_s),
     "60", 0, 3600, false,
     "seconds from the making of an epoch key to its use: until a shared folder shows it on every machine"},
    STORAGE_ROWS(IngestOptions, "dumps of the keys stay in their folder"),
    {"STENTOR_KEYS_DUMP_DIR", OPTION_TEXT, offsetof(IngestOptions, keys_dump_dir),
     "", 0, 0, false,
     "folder for a daily dump of the data keys, apart from Postgres's backups (deploy/KEYS.md); empty: none is made"},
    {"STENTOR_KEYS_DUMP_DAYS", OPTION_INT, offsetof(IngestOptions, keys_dump_days),
     "14", 1, 365, false,
     "days that such a dump is kept"},
    {"STENTOR_EVENTS_SEALED", OPTION_BOOL, offsetof(IngestOptions, events_sealed),
     "true", 0, 0, false,
     "events and their dead letters are kept encrypted (deploy/ERASURE.md); false: for a rollback to a release that opens none"},
    {"STENTOR_REQUESTS_PACKED", OPTION_BOOL, offsetof(IngestOptions, requests_packed),
     "true", 0, 0, false,
     "variables are compressed before they are sealed, and accept rows; false: until all other programs can read them"},
    {"STENTOR_INGEST_RESEAL_MS", OPTION_INT, offsetof(IngestOptions, reseal_ms),
     "5000", 20, 3600000, false,
     "how often what came into EVENTS in clear is stored again, sealed, and erased behind every reader, in milliseconds"},
};
// clang-format on

// ---- readiness ----

static bool database_is_near(Ingest *in)
{
    int64_t now_us = clock_mono_us();
    if (db_pool_ready(service_pool(in->service))) {
        in->database_seen_us = now_us;
    }
    return now_us - in->database_seen_us <= ACCEPT_PATIENCE_MS * INT64_C(1000);
}

static const char *unready(void *ctx)
{
    Ingest *in = ctx;
    const char *why = configured_unready(&in->configured);
    return why != NULL || database_is_near(in) ? why : "Postgres cannot be reached";
}

static bool is_ready(void *state, Buf *reason)
{
    const char *why = unready(state);
    return why == NULL || (buf_cstr(reason, why) && false);
}

static void on_bus_changed(void *ctx, bool connected)
{
    Ingest *in = ctx;
    if (connected && in->phase == PHASE_RUNNING) {
        sweep_now(in->sweep);
    }
}

static void on_accept_broken(void *ctx, const Error *err)
{
    Ingest *in = ctx;
    service_fail(in->service, err);
}

// ---- retention ----

#define DROP(function)                                                                             \
    "SELECT dropped, go_on FROM ingest." function "($1::text, $2::text, $3::text, $4::int4)"

// What else has its time: idempotency keys and counters of limits go with the sweep, every minute.
static void build_cleanup(Ingest *in)
{
    static const DbStatement ACCEPTED = {
        "ingest_drop_accepted", "SELECT dropped, go_on, unknown FROM ingest.drop_accepted("
                                "$1::text, $2::text, $3::text, $4::int4)"};
    static const DbStatement MEMBERS = {"ingest_drop_batch_members", DROP("drop_batch_members")};
    static const DbStatement BATCHES = {"ingest_drop_batches", DROP("drop_batches")};
    static const DbStatement RESENDS = {"ingest_drop_resends", DROP("drop_resends")};
    (void)snprintf(in->keep, sizeof in->keep, "%lld days", (long long)in->options.kept_days);
    // Batches as long as history may have notifications of them; notes of resends longer than dead
    // letters.
    const CleanupRule rules[] = {
        {"accept_log", &ACCEPTED, in->keep, 1000},
        {"batch_members", &MEMBERS, in->keep, 500},
        {"batches", &BATCHES, "84 months", 500},
        {"resends", &RESENDS, "100 days", 1000},
    };
    in->cleanup = cleanup_new(&(CleanupOptions){
        .bus = service_bus(in->service),
        .pool = service_pool(in->service),
        .metrics = service_metrics(in->service),
        .rules = rules,
        .rule_count = sizeof rules / sizeof rules[0],
        .every_s = in->options.cleanup_every_s,
    });
}

// ---- keys ----

static void build_key_work(Ingest *in)
{
    static const int64_t SECOND_US = 1000000;
    static const int64_t DAY_US = 86400 * 1000000LL;
    in->key_work = key_work_new(
        service_loop(in->service), service_bus(in->service),
        &(KeyworkOptions){
            .database_url = service_database_url(in->service),
            .application_name = "stentor-ingest-keys",
            .master_key_file = service_master_key_file(in->service),
            .epoch_folder = service_epoch_folder(in->service),
            .epoch_us = in->options.epoch_days * DAY_US,
            .keep_us = in->options.epoch_keep_days * DAY_US,
            .settle_us = in->options.epoch_settle_s * SECOND_US,
            .dump_folder = in->options.keys_dump_dir,
            .dump_keep_us = in->options.keys_dump_days * DAY_US,
            .storage = in->options.storage,
            .bulk_min = KEYS_BULK_MIN,
        },
        service_metrics(in->service));
}

// ---- stopping ----

static void on_part_closed(void *ctx)
{
    Ingest *in = ctx;
    in->closing--;
}

static void on_uv_closed(uv_handle_t *handle)
{
    Ingest *in = handle->data;
    service_stopped(in->service);
}

static void free_parts(Ingest *in)
{
    in->phase = PHASE_FREEING;
    in->closing = 10;
    reseal_free(in->reseal, on_part_closed, in);
    event_intake_free(in->intake);
    people_stop(in->people, on_part_closed, in);
    batches_api_close(&in->batches, on_part_closed, in);
    configured_stop(&in->configured, on_part_closed, in);
    http_server_free(in->server, on_part_closed, in);
    commands_free(in->commands, on_part_closed, in);
    accept_free(in->accept, on_part_closed, in);
    sweep_free(in->sweep, on_part_closed, in);
    cleanup_stop(in->cleanup, on_part_closed, in);
    key_work_free(in->key_work, on_part_closed, in);
}

static void advance_stop(Ingest *in)
{
    if (in->phase == PHASE_DRAINING && in->closing == 0 && batch_runner_idle(in->batch_runner) &&
        accept_idle(in->accept)) {
        in->phase = PHASE_PUBLISHING;
    }
    // What NATS or Postgres cannot take now is left to the next process's sweep: it is in the
    // accept log. A connection that was open before may still bring its last request.
    bool there =
        bus_connected(service_bus(in->service)) && db_pool_ready(service_pool(in->service));
    if (in->phase == PHASE_PUBLISHING && sweep_idle(in->sweep) &&
        (row_publisher_idle(in->publisher) || !there) && accept_idle(in->accept) &&
        reseal_idle(in->reseal) && http_server_idle(in->server)) {
        free_parts(in);
    }
    if (in->phase == PHASE_FREEING && in->closing == 0) {
        in->phase = PHASE_STOPPED;
        uv_close((uv_handle_t *)&in->tick, on_uv_closed);
    }
}

static void on_timer_tick(uv_timer_t *timer);

static void begin_stop(void *state)
{
    Ingest *in = state;
    in->phase = PHASE_DRAINING;
    (void)uv_timer_start(&in->tick, on_timer_tick, TICK_MS, TICK_MS);
    key_usage_flush(in->key_usage);
    in->closing = 3;
    event_intake_stop(in->intake, on_part_closed, in);
    http_server_stop(in->server, on_part_closed, in);
    commands_stop(in->commands, on_part_closed, in);
    batch_runner_stop(in->batch_runner);
    sweep_stop(in->sweep);
    reseal_stop(in->reseal);
}

// ---- life ----

static void turn(Ingest *in)
{
    (void)database_is_near(in);
    if (!in->commands_started && in->phase == PHASE_RUNNING &&
        configured_unready(&in->configured) == NULL) {
        in->commands_started = true;
        commands_start(in->commands);
    }
    if (in->phase < PHASE_FREEING) {
        batch_runner_tick(in->batch_runner);
        accept_tick(in->accept);
        row_publisher_tick(in->publisher);
        key_usage_tick(in->key_usage, uv_now(service_loop(in->service)));
    }
    if (in->phase == PHASE_RUNNING && in->commands_started) {
        canary_tick(in->canary, clock_now_us());
    }
    if (in->phase == PHASE_RUNNING && row_publisher_take_left(in->publisher)) {
        sweep_now(in->sweep);
    }
    advance_stop(in);
}

// Slowly while nothing is under way: what is accepted is written and published without a tick,
// which marks it then, and tries again what failed.
static void set_pace(Ingest *in)
{
    bool rests = in->phase == PHASE_RUNNING && in->commands_started && accept_idle(in->accept) &&
                 row_publisher_idle(in->publisher) && batch_runner_idle(in->batch_runner);
    uint64_t pace_ms = rests ? REST_MS : TICK_MS;
    if (in->phase < PHASE_STOPPED) {
        ticks_start(&in->tick, on_timer_tick, pace_ms);
    }
}

static void on_timer_tick(uv_timer_t *timer)
{
    Ingest *in = timer->data;
    turn(in);
    set_pace(in);
}

static void build_batches(Ingest *in)
{
    Service *service = in->service;
    in->batch_runner = batch_runner_new(&(BatchRunnerOptions){
        .pool = service_pool(service),
        .bus = service_bus(service),
        .master = service_master_key(service),
        .accept = in->accept,
        .catalog = in->configured.catalog,
        .metrics = service_metrics(service),
        .holder = service_instance(service),
        .lease_ms = in->options.batch_lease_ms,
        .unready = unready,
        .unready_ctx = in,
    });
    in->batches = (BatchesApi){
        .pool = service_pool(service),
        .master = service_master_key(service),
        .catalog = in->configured.catalog,
        .delivered = in->delivered,
        .routes = in->configured.routes,
        .runner = in->batch_runner,
    };
    batches_api_add(&in->api, &in->batches, service_loop(service));
}

static void build_api(Ingest *in)
{
    in->api = (Api){
        .auth = in->configured.auth,
        .catalog = in->configured.catalog,
        .metrics = &in->metrics.api,
        .unready = unready,
        .unready_ctx = in,
        .usage = in->key_usage,
        .sessions = {service_pool(in->service), in->console_origin},
    };
    page_keys_derive(service_master_key(in->service), &in->api.page_keys);
    api_audit_init(&in->api.audit, in->audit, service_master_key(in->service), "stentor-ingest");
    in->notifications = (NotificationsApi){
        .accept = in->accept,
        .pool = service_pool(in->service),
        .catalog = in->configured.catalog,
        .delivered = in->delivered,
        .routes = in->configured.routes,
        .metrics = &in->metrics,
        .master = service_master_key(in->service),
        .attachments_max = in->options.attachments_max,
    };
    notifications_api_add(&in->api, &in->notifications);
    build_batches(in);
}

// What reads EVENTS, and what stores there. Without sealing `keys` still open what was sealed
// before.
static void build_events(Ingest *in)
{
    Bus *bus = service_bus(in->service);
    DbPool *pool = service_pool(in->service);
    EventKeys *sealing = in->options.events_sealed ? in->event_keys : NULL;
    in->reseal = reseal_new(&(ResealOptions){
        .bus = bus,
        .pool = pool,
        .keys = sealing,
        .catalog = in->configured.catalog,
        .metrics = &in->metrics,
        .every_ms = in->options.reseal_ms,
    });
    in->commands = commands_new(
        bus, in->configured.suppressions, in->reseal,
        &(TriggersOptions){
            .pool = pool,
            .accept = in->accept,
            .catalog = in->configured.catalog,
            .map = in->configured.triggers,
            .resolvers = in->configured.resolvers,
            .metrics = &in->metrics,
            .keys = in->event_keys,
        });
    in->intake = event_intake_new(&(EventIntakeOptions){
        .bus = bus,
        .metrics = &in->metrics,
        .catalog = in->configured.catalog,
        .keys = sealing,
    });
}

static void build_parts(Ingest *in)
{
    Service *service = in->service;
    Bus *bus = service_bus(service);
    DbPool *pool = service_pool(service);
    configured_init(&in->configured, bus, service_metrics(service), "ingest");
    in->key_usage = key_usage_new(pool);
    in->audit = audit_log_new(bus);
    in->keyring = keyring_new(pool, service_master_key(service), &(KeyringOptions){0});
    in->event_keys = event_keys_new(service_master_key(service));
    in->publisher = row_publisher_new(bus, pool, &in->metrics);
    in->share = fair_share_new(in->options.share_per_s);
    in->accept = accept_new(&(AcceptOptions){
        .loop = service_loop(service),
        .pool = pool,
        .keyring = in->keyring,
        .catalog = in->configured.catalog,
        .suppressions = in->configured.suppressions,
        .publisher = in->publisher,
        .share = in->share,
        .metrics = &in->metrics,
        .tracer = service_tracer(service),
        .packed = in->options.requests_packed,
        .on_broken = on_accept_broken,
        .ctx = in,
    });
    in->sweep = sweep_new(&(SweepOptions){
        .loop = service_loop(service),
        .pool = pool,
        .publisher = in->publisher,
        .metrics = &in->metrics,
        .every_ms = in->options.sweep_ms,
        .older_than_ms = in->options.sweep_age_ms,
    });
    build_events(in);
    bus_watch(bus, on_bus_changed, in);
    build_api(in);
    in->people = people_new(&(PeopleOptions){
        .bus = bus,
        .pool = pool,
        .database_url = service_database_url(service),
        .metrics = service_metrics(service),
    });
    build_cleanup(in);
    build_key_work(in);
}

static bool unknown_tenants_read(const char *text, bool *ret_accepts, Error *err)
{
    *ret_accepts = str_eq(str_from(text), STR("accept"));
    return *ret_accepts || str_eq(str_from(text), STR("refuse")) ||
           error_set(
               err, ERROR_CONFIG,
               "STENTOR_INGEST_UNKNOWN_TENANTS: '%.40s' is neither refuse nor accept", text);
}

static bool start(Service *service, const void *options, void **ret_state, Error *err)
{
    const IngestOptions *o = options;
    RetentionClasses classes;
    bool accepts_unknown = false;
    if (!unknown_tenants_read(o->unknown_tenants, &accepts_unknown, err)) {
        service_wrong_options(service);
        return false;
    }
    Str origin = STR_EMPTY;
    if (!sessions_origin(o->console_url, &origin, err)) {
        service_wrong_options(service);
        return false;
    }
    if (!retention_classes_parse(str_from(o->retention_classes), &classes, err)) {
        service_wrong_options(service);
        return error_wrap(err, "STENTOR_RETENTION_CLASSES");
    }
    Ingest *in = xcalloc(1, sizeof *in);
    in->service = service;
    in->options = *o;
    in->console_origin = origin;
    HttpServerOptions http = {
        .bind = o->bind,
        .port = (int)o->port,
        .body_max = (size_t)o->body_max,
        .limits = o->limits,
        .option_prefix = "STENTOR_INGEST",
        .admit = api_admit,
        .handler = api_handle,
        .ctx = &in->api,
    };
    // Before anything else, for it is what may fail; nothing is handled before the loop runs.
    bool known = channel_set_parse(str_from(o->channels), &in->delivered, err) ||
                 error_wrap(err, "STENTOR_INGEST_CHANNELS");
    in->server = known ? http_server_new(service_loop(service), &http, err) : NULL;
    if (in->server == NULL) {
        free(in);
        return false;
    }
    ingest_metrics_init(&in->metrics, service_metrics(service));
    build_parts(in);
    catalog_set_classes(in->configured.catalog, &classes);
    if (accepts_unknown) {
        catalog_accept_unknown(in->configured.catalog);
    }
    in->canary =
        canary_new(in->accept, in->configured.catalog, service_metrics(service), o->canary_s);
    in->database_seen_us = clock_mono_us();
    in->tick.data = in;
    (void)uv_timer_init(service_loop(service), &in->tick);
    (void)uv_timer_start(&in->tick, on_timer_tick, TICK_MS, TICK_MS);
    LOG(LOG_INFO, "listening for requests", log_text("bind", o->bind),
        log_int("port", http_server_port(in->server)));
    *ret_state = in;
    return true;
}

static void free_ingest(void *state)
{
    Ingest *in = state;
    canary_free(in->canary);
    cleanup_free(in->cleanup);
    people_free(in->people);
    batch_runner_free(in->batch_runner);
    row_publisher_free(in->publisher);
    keyring_free(in->keyring);
    event_keys_free(in->event_keys);
    fair_share_free(in->share);
    key_usage_free(in->key_usage);
    audit_log_free(in->audit);
    configured_done(&in->configured);
    free(in);
}

static void print_routes(void *state, Buf *out)
{
    api_print_routes(&((const Ingest *)state)->api, out);
}

const ServiceSpec ingest_service = {
    .name = "stentor-ingest",
    .summary = "accepts notifications over HTTP and NATS, commits and publishes them",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof OPTIONS[0],
    .options_size = sizeof(IngestOptions),
    .wants_database = true,
    .wants_master_key = true,
    .start = start,
    .ready = is_ready,
    .routes = print_routes,
    .stop = begin_stop,
    .free = free_ingest,
};
