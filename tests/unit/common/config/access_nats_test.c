// SPDX-License-Identifier: Apache-2.0
// A server with the generated authorization block: what each user may and may not do.
#include "common/bus/consume/reader.h"
#include "common/bus/consume/worker.h"
#include "common/bus/jetstream/serve.h"
#include "common/bus/topology/accounts.h"
#include "common/bus/topology/nats_rights.h"
#include "tests/unit/common/bus/bus_tools.h"

static Rig rig;
static Server server;
static Arena *arena;

// Our own users, an application and a relay of two tenants, one each of all, and two subscribers.
static void build_table(Buf *out)
{
    size_t count;
    const NatsRights *access = nats_rights(&count);
    buf_cstr(
        out,
        "# who else is there\napplication shop tenants=acme,gamma\napplication desk tenants=*\n"
        "relay drain tenants=acme,gamma\nrelay sink tenants=*\n"
        "subscriber board tenant=acme\nsubscriber other tenant=beta\n\n"
        "shop=secret\ndesk=secret\ndrain=secret\nsink=secret\nboard=secret\nother=secret\n");
    for (size_t i = 0; i < count; i++) {
        bool admin = str_eq(str_from(access[i].service), STR("stentor-admin"));
        buf_printf(out, "%s=%s\n", access[i].service, admin ? "admin-secret" : "secret");
    }
}

static int open_rig(void **state)
{
    (void)state;
    Buf config, table;
    Error err = {0};
    static Accounts accounts;
    arena = arena_new(0);
    buf_init(&config, 4 * 1024 * 1024);
    buf_init(&table, 16 * 1024);
    build_table(&table);
    if (!accounts_read(arena_str(arena, buf_view(&table)), arena, &accounts, &err)) {
        fail_msg("%s", err.text);
    }
    assert_true(accounts_write(&config, &accounts));
    server_init(&server);
    snprintf(server.config, sizeof server.config, "%s/nats.conf", server.folder);
    FILE *file = fopen(server.config, "w");
    assert_non_null(file);
    fwrite(config.ptr, 1, config.len, file);
    fclose(file);
    buf_done(&config);
    buf_done(&table);
    server_start(&server);
    rig_open(&rig, NULL);
    rig.bus = rig_bus(&rig, server.url, "stentor-admin", "admin-secret");
    rig.accounts = &accounts;
    rig_apply(&rig, 0);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    server_done(&server);
    arena_free(arena);
    return 0;
}

static Acks publish_as(Bus *bus, const char *subject, bool wait)
{
    static int number;
    static Acks acks;
    char id[24];
    memset(&acks, 0, sizeof acks);
    snprintf(id, sizeof id, "id%d", number++);
    bus_publish(
        bus, &(BusOut){.subject = subject, .event_id = str_from(id), .payload = STR("x")}, on_acks,
        &acks);
    if (wait) {
        WAIT(&rig, acks.stored == 1);
    } else {
        pass_ms(&rig, 200);
    }
    return acks;
}

// The connection is the service's own; a refusal shows as its permission error.
static void assert_refused(const char *service, const char *subject)
{
    Bus *bus = rig_bus(&rig, server.url, service, "secret");
    assert_int_equal(publish_as(bus, subject, false).stored, 0);
    const char *text = bus_permission_error(bus);
    if (text == NULL || strstr(text, subject) == NULL) {
        fail_msg("%s may publish on %s", service, subject);
    }
    rig_close_bus(&rig, bus);
}

static void assert_allowed(const char *service, const char *subject)
{
    Bus *bus = rig_bus(&rig, server.url, service, "secret");
    assert_int_equal(publish_as(bus, subject, true).stored, 1);
    assert_null(bus_permission_error(bus));
    rig_close_bus(&rig, bus);
}

static void services_publish_what_is_theirs(void **state)
{
    (void)state;
    assert_allowed("stentor-ingest", "ntf.request.normal.acme");
    assert_allowed("stentor-gateway", "cfg.template.acme.welcome");
    assert_allowed("stentor-gateway", "cfg.tenant.acme.self");
    assert_allowed("stentor-gateway", "cfg.trigger.acme.t");
    assert_allowed("stentor-gateway", "cfg.resolver.acme.r");
    assert_allowed("stentor-gateway", "cfg.suppression.acme.x");
    assert_allowed("stentor-gateway", "cfg.apikey.acme.k1");
    assert_allowed("stentor-gateway", "cfg.inbound.acme.sendgrid");
    assert_allowed("stentor-gateway", "cfg.asset.acme.logo.png");
    assert_allowed("stentor-gateway", "cfg.route.acme.main");
    assert_allowed("stentor-gateway", "cfg.credential.acme.sendgrid.main");
    assert_allowed("stentor-gateway", "cfg.channel_health.acme.email_sendgrid");
    assert_allowed("stentor-gateway", "ppl.acme");
    assert_allowed("stentor-ingest", "ntf.rendered.normal.acme"); // a failed mail, sent again
    assert_allowed("stentor-renderer", "ntf.rendered.low.acme");
    assert_allowed("stentor-dispatcher", "ntf.status.acme.email.sent");
    assert_allowed("stentor-dispatcher", "ntf.inhand.dispatcher.p1");
    assert_allowed("stentor-dispatcher", "cfg.suppression.acme.x");
    assert_allowed("stentor-dispatcher", "cfg.channel_health.platform.email_smtp");
    assert_allowed("stentor-webhook-receiver", "ntf.inbound.sendgrid");
    assert_allowed("stentor-gateway", "cfg.webhook.acme.whs_1");
    assert_allowed("stentor-gateway", "ntf.hook.acme"); // a delivery again
    assert_allowed("stentor-webhook", "ntf.hook.acme");
    assert_allowed("stentor-webhook", "ntf.deferred.hook.acme");
    assert_allowed("stentor-webhook", "cfg.webhook.acme.whs_1");
    assert_allowed("stentor-webhook", "evt.acme.notification.webhook.delivery_failed.v1");
    assert_allowed("stentor-digest-flusher", "ntf.hook.acme");
    assert_allowed("stentor-digest-flusher", "ntf.rendered.low.acme");
    assert_allowed("stentor-digest-flusher", "evt.acme.PlaceOrderTimeout");
    assert_allowed("stentor-digest-flusher", "evt.platform.CleanUpOrders");
    assert_allowed("stentor-order-saga", "ntf.deferred.saga.acme");
    assert_allowed("stentor-order-saga", "evt.acme.CompleteOrder");
    assert_allowed("stentor-order-saga", "evt.acme.OrderFailed");
    assert_allowed("stentor-ingest", "evt.acme.order.made");           // an application's
    assert_allowed("stentor-ingest", "aud.platform.erasure");          // the end of an epoch key
    assert_allowed("stentor-gateway", "evt.acme.ResendErrorEmail");    // asks ingest
    assert_allowed("stentor-gateway", "ntf.status.acme.email.failed"); // of a dropped letter
    assert_allowed("stentor-gateway", "aud.acme.dead_letter");
}

static void services_publish_nothing_else(void **state)
{
    (void)state;
    assert_refused("stentor-ingest", "cfg.apikey.acme.k1");
    assert_refused("stentor-renderer", "ntf.inhand.dispatcher.p1"); // another service's evidence
    assert_refused("stentor-renderer", "cfg.webhook.acme.whs_1");
    assert_refused("stentor-ingest", "ntf.hook.acme");
    assert_refused("stentor-webhook", "ntf.status.acme.email.sent");
    assert_refused("stentor-webhook", "ntf.deferred.retry.acme");
    assert_refused("stentor-webhook", "evt.acme.notify");
    assert_refused("stentor-digest-flusher", "evt.acme.PlaceOrder");
    assert_refused("stentor-order-saga", "evt.acme.UserCheckedOut");
    assert_refused("stentor-order-saga", "ntf.deferred.retry.acme");
    assert_refused("stentor-ingest", "ntf.inbound.sendgrid");
    assert_refused("stentor-ingest", "aud.acme.erasure");
    assert_refused("stentor-ingest", "aud.platform.hold");
    assert_refused("stentor-ingest", "$JS.API.STREAM.MSG.DELETE.STATUS");
    assert_refused("stentor-dispatcher", "ntf.rendered.normal.acme");
    assert_refused("stentor-renderer", "ntf.request.normal.acme");
    assert_refused("stentor-dispatcher", "cfg.template.acme.welcome");
    assert_refused("stentor-dispatcher", "cfg.route.acme.main");
    assert_refused("stentor-dispatcher", "cfg.credential.acme.sendgrid.main");
    assert_refused("stentor-archiver", "ntf.status.acme.email.sent");
    assert_refused("stentor-cli", "$JS.API.STREAM.PURGE.DEAD");
    // what goes through the API, or is the admin's
    static const char *const kinds[] = {
        "apikey.platform.k1",
        "tenant.acme.self",
        "template.acme.welcome.1_0_0",
        "trigger.acme.t",
        "suppression.acme.email.any.00",
        "inbound.acme.sendgrid",
        "asset.acme.logo.png",
        "route.acme.main",
        "credential.acme.sendgrid.main",
        "keys.platform.master"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char subject[128];
        (void)snprintf(subject, sizeof subject, "cfg.%s", kinds[i]);
        assert_refused("stentor-cli", subject);
    }
    assert_refused("stentor-cli", "$JS.API.STREAM.MSG.DELETE.CONFIG");
}

// What accepts cannot manage, and what manages cannot make a mail, an event or a status.
static void gateway_and_ingest_share_no_right_to_publish(void **state)
{
    (void)state;
    static const char *const managing[] = {
        "ppl.acme",
        "cfg.template.acme.welcome",
        "cfg.trigger.acme.t",
        "cfg.resolver.acme.r",
        "cfg.tenant.acme.self",
        "cfg.suppression.acme.x",
        "cfg.apikey.acme.k1",
        "cfg.inbound.acme.sendgrid",
        "cfg.route.acme.main",
        "cfg.credential.acme.sendgrid.main",
        "cfg.asset.acme.logo.png"};
    for (size_t i = 0; i < sizeof managing / sizeof managing[0]; i++) {
        assert_refused("stentor-ingest", managing[i]);
    }
    static const char *const accepting[] = {
        "ntf.request.normal.acme",
        "ntf.rendered.normal.acme",
        "ntf.deferred.schedule.acme",
        "ntf.status.acme.email.queued",
        "ntf.dead.ingest.acme",
        "ntf.inbound.sendgrid",
        "ntf.inhand.ingest.p1",
        "evt.acme.PlaceOrder",
        "cfg.keys.platform.master",
        "ntf.status.acme.email.sent",
        "evt.acme.notify",
        "aud.acme.erasure",
        "$JS.API.STREAM.PURGE.DEAD",
        "$JS.API.STREAM.MSG.DELETE.CONFIG",
        "$JS.API.STREAM.PURGE.PEOPLE",
        "$JS.API.CONSUMER.MSG.NEXT.EVENTS.ingest",
        "$JS.API.CONSUMER.CREATE.PEOPLE.stentor-gateway-0"};
    for (size_t i = 0; i < sizeof accepting / sizeof accepting[0]; i++) {
        assert_refused("stentor-gateway", accepting[i]);
    }
}

static void services_cannot_administer(void **state)
{
    (void)state;
    assert_refused("stentor-ingest", "$JS.API.STREAM.DELETE.STATUS");
    assert_refused("stentor-renderer", "$JS.API.CONSUMER.DURABLE.CREATE.REQUEST_LOW.renderer");
    assert_refused("stentor-archiver", "$JS.API.CONSUMER.DELETE.REQUEST_LOW.renderer");
}

// nats-server 2.9 takes the name of the legacy create from the request, and so changes any consumer
// of the stream. The right is for names of the reader's own.
static void finding_14_a_reader_reaches_no_other_consumer(void **state)
{
    (void)state;
    assert_refused("stentor-archiver", "$JS.API.CONSUMER.CREATE.REQUEST_LOW");
    assert_refused("stentor-archiver", "$JS.API.CONSUMER.CREATE.REQUEST_LOW.renderer");
    assert_refused("stentor-archiver", "$JS.API.CONSUMER.CREATE.REQUEST_LOW.stentor-cli-0");
    assert_refused("stentor-archiver", "$JS.API.CONSUMER.MSG.NEXT.REQUEST_LOW.renderer");
    assert_refused("stentor-archiver", "$JS.API.CONSUMER.MSG.NEXT.EVENTS.ingest");
    assert_refused("stentor-dispatcher", "$JS.API.CONSUMER.MSG.NEXT.EVENTS.order-saga");
    assert_refused("stentor-dispatcher", "$JS.API.CONSUMER.DELETE.EVENTS.ingest");
    assert_refused("stentor-ingest", "$JS.API.CONSUMER.MSG.NEXT.CONFIG.stentor-renderer-0");
}

// The name in the subject counts, whatever the request says.
static void finding_14_a_readers_create_cannot_name_another(void **state)
{
    (void)state;
    Bus *bus = rig_bus(&rig, server.url, "stentor-archiver", "secret");
    rig.done = false;
    bus_request(
        bus, "$JS.API.CONSUMER.CREATE.REQUEST_LOW.stentor-archiver-0",
        STR("{\"stream_name\":\"REQUEST_LOW\",\"config\":{\"name\":\"renderer\",\"durable_name\":"
            "\"renderer\",\"ack_policy\":\"explicit\",\"max_ack_pending\":1}}"),
        3000, on_rig_reply, &rig);
    WAIT_FLAG(&rig, rig.done);
    rig_close_bus(&rig, bus);
    assert_non_null(strstr(
        rig_ask(&rig, "$JS.API.CONSUMER.INFO.REQUEST_LOW.renderer", ""),
        "\"max_ack_pending\":8192"));
    rig_ask(&rig, "$JS.API.CONSUMER.DELETE.REQUEST_LOW.stentor-archiver-0", "");
}

// As many as the service has names, however long they are to live.
static void finding_14_the_consumers_of_a_service_are_counted(void **state)
{
    (void)state;
    Bus *bus = rig_bus(&rig, server.url, "stentor-archiver", "secret");
    unsigned names = topology_reader_names("STATUS");
    for (unsigned i = 0; i <= names; i++) {
        char subject[128], name[READER_NAME_SIZE], body[256];
        topology_reader_name(name, "stentor-archiver", i);
        snprintf(subject, sizeof subject, "$JS.API.CONSUMER.CREATE.STATUS.%s", name);
        snprintf(
            body, sizeof body,
            "{\"stream_name\":\"STATUS\",\"config\":{\"name\":\"%s\",\"ack_policy\":\"none\","
            "\"inactive_threshold\":31536000000000000}}",
            name);
        rig.done = false;
        bus_request(bus, subject, str_from(body), 1000, on_rig_reply, &rig);
        WAIT_FLAG(&rig, rig.done);
    }
    assert_non_null(strstr(bus_permission_error(bus), "CREATE.STATUS.stentor-archiver-8"));
    rig_close_bus(&rig, bus);
    assert_non_null(strstr(rig_ask(&rig, "$JS.API.CONSUMER.NAMES.STATUS", ""), "\"total\":11,"));
    for (unsigned i = 0; i < names; i++) {
        char subject[128];
        snprintf(subject, sizeof subject, "$JS.API.CONSUMER.DELETE.STATUS.stentor-archiver-%u", i);
        rig_ask(&rig, subject, "");
    }
}

static void settle_all(void *ctx, Delivery **deliveries, size_t count)
{
    size_t *seen = ctx;
    *seen += count;
    for (size_t i = 0; i < count; i++) {
        delivery_settle(deliveries[i], NULL);
    }
}

static void a_worker_pulls_and_acks_with_its_rights(void **state)
{
    (void)state;
    size_t seen = 0;
    publish_many(&rig, "ntf.request.normal.acme", "m", 20);
    Bus *bus = rig_bus(&rig, server.url, "stentor-renderer", "secret");
    WorkerOptions options = {.consumer = topology_consumer("stentor-renderer", "REQUEST_NORMAL")};
    Worker *worker = worker_new(bus, &options, settle_all, &seen);
    worker_start(worker);
    WAIT(&rig, seen >= 20);
    pass_ms(&rig, 100);
    assert_non_null(strstr(
        rig_ask(&rig, "$JS.API.CONSUMER.INFO.REQUEST_NORMAL.renderer", ""),
        "\"num_ack_pending\":0"));
    assert_null(bus_permission_error(bus));
    rig.done = false;
    worker_free(worker, on_rig_done, &rig);
    WAIT_FLAG(&rig, rig.done);
    rig_close_bus(&rig, bus);
}

static void count_messages(void *ctx, const BusMessage *messages, size_t count)
{
    (void)messages;
    *(size_t *)ctx += count;
}

static void note_caught_up(void *ctx)
{
    (void)ctx;
}

static void note_failed(void *ctx, const Error *err)
{
    (void)ctx;
    fail_msg("%s", err->text);
}

static void every_service_reads_config_with_its_rights(void **state)
{
    (void)state;
    static const ReaderHandlers handlers = {count_messages, note_caught_up, note_failed};
    static const char *const services[] = {"stentor-ingest",           "stentor-gateway",
                                           "stentor-renderer",         "stentor-dispatcher",
                                           "stentor-webhook-receiver", "stentor-digest-flusher",
                                           "stentor-archiver",         "stentor-cli",
                                           "stentor-webhook"};
    Acks acks = {0};
    BusOut removal = {.subject = "cfg.trigger.acme.r", .event_id = STR("removed")};
    bus_publish(rig.bus, &removal, on_acks, &acks);
    WAIT(&rig, acks.stored == 1);
    for (size_t i = 0; i < sizeof services / sizeof services[0]; i++) {
        size_t changes = 0;
        Bus *bus = rig_bus(&rig, server.url, services[i], "secret");
        ReaderOptions options = {.stream = "CONFIG"};
        Reader *reader = reader_new(bus, &options, &handlers, &changes);
        WAIT(&rig, changes > 0);
        assert_null(bus_permission_error(bus));
        rig.done = false;
        reader_free(reader, on_rig_done, &rig);
        WAIT_FLAG(&rig, rig.done);
        rig_close_bus(&rig, bus);
    }
}

static void one_users_inbox_is_closed_to_others(void **state)
{
    (void)state;
    Error err;
    BusOptions options = {
        .url = server.url,
        .user = "stentor-archiver",
        .password = "secret",
        .service = "stentor-ingest"};
    Bus *bus = bus_open(&rig.loop, &options, &err);
    WAIT(&rig, bus_connected(bus));
    rig.done = false; // the inbox is subscribed when there is something to ask
    bus_request(bus, "$JS.API.STREAM.INFO.STATUS", STR_EMPTY, 300, on_rig_reply, &rig);
    WAIT(&rig, bus_permission_error(bus) != NULL);
    assert_non_null(strstr(bus_permission_error(bus), "_INBOX.stentor-ingest."));
    WAIT_FLAG(&rig, rig.done);
    assert_int_equal(rig.error.kind, ERROR_TRANSIENT);
    rig_close_bus(&rig, bus);
}

// ---- accounts of others ----

static uint64_t last_of(const char *stream)
{
    return rig_last(&rig, stream);
}

// What this user publishes reaches no stream of ours; no error says so, and no subscriber gets it.
static void assert_reaches_nothing(const char *user, const char *subject, const char *reply)
{
    static const char *const streams[] = {"CONFIG",      "EVENTS", "STATUS", "DEAD",
                                          "REQUEST_LOW", "PEOPLE", "SETTLE"};
    enum { COUNT = sizeof streams / sizeof streams[0] };
    uint64_t before[COUNT];
    Bus *bus = rig_bus(&rig, server.url, user, "secret");
    WAIT(&rig, bus_connected(bus));
    for (size_t i = 0; i < COUNT; i++) {
        before[i] = last_of(streams[i]);
    }
    assert_true(bus_send(bus, subject, reply, STR("1")));
    pass_ms(&rig, 150);
    for (size_t i = 0; i < COUNT; i++) {
        if (last_of(streams[i]) != before[i]) {
            fail_msg("%s reaches %s: '%s' (reply '%s')", user, streams[i], subject, reply);
        }
    }
    rig_close_bus(&rig, bus);
}

static void finding_14_an_application_speaks_for_its_tenants_only(void **state)
{
    (void)state;
    // Their own go to ingest: finding_12_an_applications_events_reach_ingest_alone.
    static const char *const others[] = {
        "evt.beta.order.made",
        "evt.platform.CleanUpSentEmail",
        "cfg.apikey.acme.x",
        "ntf.status.acme.email.sent",
        "ntf.dead.ingest.acme",
        "ntf.request.low.acme",
        "ppl.acme",
        "$JS.API.STREAM.PURGE.EVENTS",
        "$JS.API.STREAM.DELETE.STATUS",
        "$JS.ACK.REQUEST_LOW.renderer.1.1.1.1.1"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_reaches_nothing("shop", others[i], "answers");
        assert_reaches_nothing("drain", others[i], "answers");
        assert_reaches_nothing("board", others[i], "answers");
    }
    assert_reaches_nothing("board", "evt.acme.order.made", "answers");
    assert_reaches_nothing("board", "live.status.acme.email.sent", "answers");
}

// The review's commands: the server's answer, and a stored message, on a subject of ours.
static void finding_02_no_reply_of_another_account_reaches_a_subject_of_ours(void **state)
{
    (void)state;
    static const char *const replies[] = {
        "cfg.tenant.acme.self", "evt.platform.CleanUpSentEmail", "evt.acme.x",
        "ntf.status.acme.a.b"};
    static const char *const calls[][2] = {
        {"board", "$JS.stentor.API.CONSUMER.INFO.STATUS.board"},
        {"board", "$JS.stentor.API.CONSUMER.MSG.NEXT.STATUS.board"},
        {"board", "$JS.API.CONSUMER.MSG.NEXT.STATUS.board"},
        {"board", "$JS.API.STREAM.INFO.STATUS"},
        {"board", "$JS.API.INFO"},
        {"board", "$JS.stentor.API.INFO"},
        {"board", "$JS.stentor.API.CONSUMER.CREATE.STATUS.board-0.ntf.status.acme.>"},
        {"shop", "$JS.stentor.API.STREAM.INFO.STATUS"},
        {"shop", "$JS.stentor.API.CONSUMER.MSG.NEXT.STATUS.shop-0"},
        {"shop", "$JS.API.STREAM.INFO.EVENTS"},
    };
    publish_many(&rig, "ntf.status.acme.email.sent", "reply", 3);
    for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
        for (size_t j = 0; j < sizeof calls / sizeof calls[0]; j++) {
            assert_reaches_nothing(calls[j][0], calls[j][1], replies[i]);
        }
    }
}

static const char *ask_as(const char *user, const char *subject, const char *body)
{
    Bus *bus = rig_bus(&rig, server.url, user, "secret");
    WAIT(&rig, bus_connected(bus));
    rig.done = false;
    rig.reply[0] = '\0';
    bus_request(bus, subject, str_from(body), 1000, on_rig_reply, &rig);
    WAIT_FLAG(&rig, rig.done);
    rig_close_bus(&rig, bus);
    return rig.reply;
}

static void answer_with_subject(void *ctx, Asked *asked)
{
    *(size_t *)ctx += 1;
    asked_answer(asked, asked->subject);
}

// Not straight into the stream, where ids are one for all tenants; and without ingest it has no
// answer.
static void finding_12_an_applications_events_reach_ingest_alone(void **state)
{
    (void)state;
    size_t seen = 0;
    ServeOptions options = {
        .subject = SUBJECT_INTAKE, .queue = QUEUE_INTAKE, .in_hand_max = 9, .bytes_max = 999};
    uint64_t before = last_of("EVENTS");
    assert_string_equal(ask_as("shop", "evt.acme.order.made", "x"), "");
    // 2.9 says nothing across accounts, so its time ends; 2.10 has no responder.
    assert_true(
        strstr(rig.error.text, "answer") != NULL || strstr(rig.error.text, "no responder") != NULL);
    Bus *ingest = rig_bus(&rig, server.url, "stentor-ingest", "secret");
    Serve *serve = serve_new(ingest, &options, answer_with_subject, &seen);
    pass_ms(&rig, 50);
    assert_string_equal(ask_as("shop", "evt.acme.order.made", "x"), "in.evt.acme.order.made");
    assert_string_equal(ask_as("shop", "evt.gamma.notify", "x"), "in.evt.gamma.notify");
    assert_string_equal(ask_as("desk", "evt.platform.notify", "x"), "in.evt.platform.notify");
    assert_string_equal(ask_as("drain", "evt.gamma.notify", "x"), "in.evt.gamma.notify"); // a relay
    assert_string_equal(ask_as("sink", "evt.platform.notify", "x"), "in.evt.platform.notify");
    assert_string_equal(ask_as("shop", "evt.beta.notify", "x"), "");
    assert_string_equal(ask_as("shop", "in.evt.beta.notify", "x"), "");
    assert_string_equal(ask_as("board", "evt.acme.notify", "x"), "");
    assert_int_equal(seen, 5);
    assert_int_equal(last_of("EVENTS"), before);
    assert_null(bus_permission_error(ingest));
    rig.done = false;
    serve_stop(serve, on_rig_done, &rig);
    WAIT_FLAG(&rig, rig.done);
    serve_free(serve);
    rig_close_bus(&rig, ingest);
}

// Another service cannot take what is ingest's to answer.
static void finding_12_no_other_service_serves_applications(void **state)
{
    (void)state;
    size_t seen = 0;
    ServeOptions options = {
        .subject = SUBJECT_INTAKE, .queue = QUEUE_INTAKE, .in_hand_max = 9, .bytes_max = 999};
    Bus *bus = rig_bus(&rig, server.url, "stentor-renderer", "secret");
    Serve *serve = serve_new(bus, &options, answer_with_subject, &seen);
    WAIT(&rig, bus_permission_error(bus) != NULL);
    assert_non_null(strstr(bus_permission_error(bus), "in.evt.>"));
    rig.done = false;
    serve_stop(serve, on_rig_done, &rig);
    WAIT_FLAG(&rig, rig.done);
    serve_free(serve);
    rig_close_bus(&rig, bus);
}

// The create's subject says name and filter, and the server compares.
static void finding_14_an_applications_reader_sees_its_tenants_only(void **state)
{
    (void)state;
    const char *call = "$JS.stentor.API.CONSUMER.CREATE.STATUS.shop-0.ntf.status.acme.>";
    assert_non_null(strstr(
        ask_as(
            "shop", call,
            "{\"stream_name\":\"STATUS\",\"config\":{\"name\":\"shop-0\",\"ack_policy\":\"none\","
            "\"filter_subject\":\"ntf.status.>\"}}"),
        "\"error\""));
    assert_non_null(strstr(
        ask_as(
            "shop", call,
            "{\"stream_name\":\"CONFIG\",\"config\":{\"name\":\"shop-0\",\"ack_policy\":\"none\","
            "\"filter_subject\":\"ntf.status.acme.>\"}}"),
        "\"error\""));
    assert_string_equal(
        ask_as("shop", "$JS.stentor.API.CONSUMER.CREATE.STATUS.shop-0.ntf.status.beta.>", "{}"),
        "");
    assert_string_equal(ask_as("shop", "$JS.stentor.API.CONSUMER.CREATE.STATUS.shop-0", "{}"), "");
    assert_string_equal(ask_as("shop", "$JS.stentor.API.CONSUMER.INFO.STATUS.board", ""), "");
    assert_string_equal(ask_as("other", "$JS.stentor.API.CONSUMER.INFO.STATUS.board", ""), "");
    const char *mine = ask_as("board", "$JS.stentor.API.CONSUMER.INFO.STATUS.board", "");
    assert_non_null(strstr(mine, "\"filter_subject\":\"ntf.status.acme."));
}

#define BOARD_0                                                                                    \
    "{\"stream_name\":\"STATUS\",\"config\":{\"name\":\"board-0\",\"ack_policy\":\"explicit\","    \
    "\"filter_subject\":\"%s\",\"inactive_threshold\":31536000000000000}}"

// It made 2,000 that lived a year. Now there are as many as it has names, and the subject of the
// create says name and filter (audit, finding 4, row 33d).
static void finding_14_a_subscriber_makes_consumers_of_its_names_and_tenant_only(void **state)
{
    (void)state;
    static const char *const calls[] = {
        "$JS.API.CONSUMER.CREATE.STATUS",
        "$JS.stentor.API.CONSUMER.CREATE.STATUS",
        "$JS.stentor.API.CONSUMER.CREATE.STATUS.board",
        "$JS.stentor.API.CONSUMER.CREATE.STATUS.board-0",
        "$JS.stentor.API.CONSUMER.CREATE.STATUS.board-0.>",
        "$JS.stentor.API.CONSUMER.CREATE.STATUS.board-0.ntf.status.beta.>",
        "$JS.stentor.API.CONSUMER.CREATE.STATUS.board-8.ntf.status.acme.>",
        "$JS.stentor.API.CONSUMER.CREATE.STATUS.other.ntf.status.acme.>",
        "$JS.stentor.API.CONSUMER.CREATE.STATUS.stentor-archiver-0.ntf.status.acme.>",
        "$JS.stentor.API.CONSUMER.CREATE.CONFIG.board-0.ntf.status.acme.>",
        "$JS.stentor.API.CONSUMER.DURABLE.CREATE.STATUS.board",
        "$JS.stentor.API.CONSUMER.DELETE.STATUS.other",
    };
    const char *create = "$JS.stentor.API.CONSUMER.CREATE.STATUS.board-0.ntf.status.acme.>";
    char before[sizeof rig.reply];
    snprintf(before, sizeof before, "%s", rig_ask(&rig, "$JS.API.CONSUMER.NAMES.STATUS", ""));
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        (void)ask_as("board", calls[i], arena_printf(arena, BOARD_0, "ntf.status.acme.>"));
        assert_string_equal(rig_ask(&rig, "$JS.API.CONSUMER.NAMES.STATUS", ""), before);
    }
    const char *wide = ask_as("board", create, arena_printf(arena, BOARD_0, "ntf.status.>"));
    assert_non_null(strstr(wide, "\"error\""));
    assert_string_equal(rig_ask(&rig, "$JS.API.CONSUMER.NAMES.STATUS", ""), before);
    const char *made = ask_as("board", create, arena_printf(arena, BOARD_0, "ntf.status.acme.>"));
    assert_non_null(strstr(made, "\"filter_subject\":\"ntf.status.acme."));
    made = ask_as(
        "board", "$JS.stentor.API.CONSUMER.CREATE.STATUS.board-0.ntf.status.acme.email.failed",
        arena_printf(arena, BOARD_0, "ntf.status.acme.email.failed"));
    assert_non_null(strstr(made, "\"filter_subject\":\"ntf.status.acme.email.failed\""));
    assert_string_equal(ask_as("other", "$JS.stentor.API.CONSUMER.INFO.STATUS.board-0", ""), "");
    assert_string_equal(
        ask_as("other", "$JS.stentor.API.CONSUMER.MSG.NEXT.STATUS.board-0", ""), "");
    assert_non_null(
        strstr(ask_as("board", "$JS.stentor.API.CONSUMER.DELETE.STATUS.board-0", ""), "true"));
    assert_string_equal(rig_ask(&rig, "$JS.API.CONSUMER.NAMES.STATUS", ""), before);
}

// As nats.js' jetstreamManager() asks: figures of the account, and no name in it.
static void a_subscriber_learns_that_there_is_a_jetstream(void **state)
{
    (void)state;
    const char *info = ask_as("board", "$JS.stentor.API.INFO", "");
    assert_non_null(strstr(info, "\"streams\":"));
    assert_null(strstr(info, "STATUS"));
}

typedef struct Statuses {
    size_t seen;
    bool caught_up;
} Statuses;

static void note_statuses(void *ctx, const BusMessage *messages, size_t count)
{
    Statuses *statuses = ctx;
    for (size_t i = 0; i < count; i++) {
        assert_true(str_starts(messages[i].subject, STR("ntf.status.acme.")));
        statuses->seen++;
    }
}

static void note_no_more(void *ctx)
{
    Statuses *statuses = ctx;
    statuses->caught_up = true;
}

// As the relay reads: by the API's other name, its own consumers, its tenant's filter.
static void an_application_reads_its_statuses_in_order(void **state)
{
    (void)state;
    static const ReaderHandlers handlers = {note_statuses, note_no_more, note_failed};
    Statuses statuses = {0};
    publish_many(&rig, "ntf.status.acme.email.sent", "read", 5);
    publish_many(&rig, "ntf.status.beta.email.sent", "read-beta", 5);
    Bus *bus = rig_bus(&rig, server.url, "shop", "secret");
    bus_use_domain(bus, ACCOUNT_DOMAIN);
    ReaderOptions options = {.stream = "STATUS", .filter = "ntf.status.acme.>"};
    Reader *reader = reader_new(bus, &options, &handlers, &statuses);
    WAIT(&rig, statuses.caught_up); // earlier tests left statuses too
    assert_true(statuses.seen >= 5);
    size_t before = statuses.seen;
    publish_many(&rig, "ntf.status.acme.email.sent", "later", 5);
    WAIT(&rig, statuses.seen == before + 5);
    rig.done = false;
    reader_free(reader, on_rig_done, &rig);
    WAIT_FLAG(&rig, rig.done);
    rig_close_bus(&rig, bus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(services_publish_what_is_theirs),
        cmocka_unit_test(services_publish_nothing_else),
        cmocka_unit_test(gateway_and_ingest_share_no_right_to_publish),
        cmocka_unit_test(services_cannot_administer),
        cmocka_unit_test(finding_14_a_reader_reaches_no_other_consumer),
        cmocka_unit_test(finding_14_a_readers_create_cannot_name_another),
        cmocka_unit_test(finding_14_the_consumers_of_a_service_are_counted),
        cmocka_unit_test(a_worker_pulls_and_acks_with_its_rights),
        cmocka_unit_test(every_service_reads_config_with_its_rights),
        cmocka_unit_test(one_users_inbox_is_closed_to_others),
        cmocka_unit_test(finding_14_an_application_speaks_for_its_tenants_only),
        cmocka_unit_test(finding_02_no_reply_of_another_account_reaches_a_subject_of_ours),
        cmocka_unit_test(finding_12_an_applications_events_reach_ingest_alone),
        cmocka_unit_test(finding_12_no_other_service_serves_applications),
        cmocka_unit_test(finding_14_an_applications_reader_sees_its_tenants_only),
        cmocka_unit_test(finding_14_a_subscriber_makes_consumers_of_its_names_and_tenant_only),
        cmocka_unit_test(a_subscriber_learns_that_there_is_a_jetstream),
        cmocka_unit_test(an_application_reads_its_statuses_in_order),
    };
    return cmocka_run_group_tests(tests, open_rig, close_rig);
}
