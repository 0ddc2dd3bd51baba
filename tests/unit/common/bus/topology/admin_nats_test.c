// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/common/bus/bus_tools.h"

typedef struct Steps {
    size_t created, updated, present, differs;
    char differs_text[256];
    bool done;
    Error error;
} Steps;

static Rig rig;

static void note_step(void *ctx, const char *what, const char *result)
{
    Steps *steps = ctx;
    steps->created += strcmp(result, "created") == 0 ? 1 : 0;
    steps->updated += strcmp(result, "updated") == 0 ? 1 : 0;
    steps->present += strcmp(result, "present") == 0 ? 1 : 0;
    if (strncmp(result, "differs", 7) == 0) {
        steps->differs++;
        snprintf(steps->differs_text, sizeof steps->differs_text, "%s %s", what, result);
    }
}

static void note_done(void *ctx, const Error *err)
{
    Steps *steps = ctx;
    steps->done = true;
    steps->error = err != NULL ? *err : (Error){0};
}

static Steps apply(TopologyOptions options)
{
    static Steps steps;
    memset(&steps, 0, sizeof steps);
    topology_apply(rig.bus, &options, note_step, note_done, &steps);
    WAIT_FLAG(&rig, steps.done);
    return steps;
}

static const TopologyOptions usual = {.replicas = 1, .bytes_scale = 0.005};

static size_t total(void)
{
    size_t streams, consumers;
    topology_streams(&streams);
    topology_consumers(&consumers);
    return streams + consumers;
}

static int open_rig(void **state)
{
    (void)state;
    rig_open(&rig, getenv("STENTOR_TEST_NATS_URL"));
    rig_fresh(&rig, 0);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static void everything_is_made(void **state)
{
    (void)state;
    rig_ask(&rig, "$JS.API.STREAM.DELETE.STATUS", "");
    rig_ask(&rig, "$JS.API.STREAM.DELETE.EVENTS", "");
    Steps steps = apply(usual);
    assert_int_equal(steps.error.kind, ERROR_NONE);
    assert_int_equal(steps.created, 6); // and the consumers: three of EVENTS, one of STATUS
    if (steps.differs > 0) {
        fail_msg("%s", steps.differs_text);
    }
}

static void a_second_time_changes_nothing(void **state)
{
    (void)state;
    Steps steps = apply(usual);
    if (steps.differs > 0) {
        fail_msg("%s", steps.differs_text);
    }
    assert_int_equal(steps.present, total());
}

static void a_changed_option_is_updated(void **state)
{
    (void)state;
    TopologyOptions options = usual;
    options.ack_wait_ms = 5000;
    options.duplicate_window_s = 60;
    Steps steps = apply(options);
    assert_int_equal(steps.error.kind, ERROR_NONE);
    assert_int_equal(steps.updated, total() - 3); // but the windows of EVENTS, INBOUND, REPLIES
    assert_non_null(strstr(
        rig_ask(&rig, "$JS.API.CONSUMER.INFO.EVENTS.ingest", ""), "\"ack_wait\":5000000000"));
}

static void assert_bytes(const char *stream, const char *expected)
{
    char subject[64];
    snprintf(subject, sizeof subject, "$JS.API.STREAM.INFO.%s", stream);
    assert_non_null(strstr(rig_ask(&rig, subject, ""), expected));
}

static void what_no_option_names_stays_as_it_is(void **state)
{
    (void)state;
    assert_int_equal(apply((TopologyOptions){.replicas = 1, .bytes_scale = 0.01}).differs, 0);
    rig_ask(&rig, "$JS.API.STREAM.DELETE.REQUEST_CRITICAL", "");
    rig_ask(&rig, "$JS.API.STREAM.DELETE.SETTLE", "");
    Steps steps = apply((TopologyOptions){0});
    assert_int_equal(steps.error.kind, ERROR_NONE);
    assert_int_equal(steps.updated + steps.differs, 0);
    assert_bytes("STATUS", "\"max_bytes\":85899345,");           // a hundredth of 8 GiB
    assert_bytes("REQUEST_CRITICAL", "\"max_bytes\":21474836,"); // as the largest that was there
}

static void a_new_installation_has_the_sizes_of_the_table(void **state)
{
    (void)state;
    size_t count;
    const StreamSpec *streams = topology_streams(&count);
    for (size_t i = 0; i < count; i++) {
        char subject[128];
        snprintf(subject, sizeof subject, "$JS.API.STREAM.DELETE.%s", streams[i].name);
        rig_ask(&rig, subject, "");
    }
    Steps steps = apply((TopologyOptions){.replicas = 1});
    // Whether so much fits on this disk is the server's to say, at the first stream that does not.
    if (steps.error.kind == ERROR_NONE || steps.created > 0) {
        assert_bytes(streams[0].name, "\"max_bytes\":2147483648,");
    } else {
        assert_non_null(strstr(steps.error.text, "insufficient storage"));
    }
}

static void the_servers_refusal_names_the_object(void **state)
{
    (void)state;
    TopologyOptions options = usual;
    options.replicas = 3; // one server cannot
    rig_ask(&rig, "$JS.API.STREAM.DELETE.REQUEST_CRITICAL", "");
    Steps steps = apply(options);
    assert_int_equal(steps.error.kind, ERROR_CONFIG);
    assert_non_null(strstr(steps.error.text, "stream REQUEST_CRITICAL: "));
}

static void config_keeps_the_last_eight_of_each_subject(void **state)
{
    (void)state;
    publish_many(&rig, "cfg.template.acme.a", "c", 10);
    publish_many(&rig, "cfg.template.acme.b", "d", 1);
    assert_int_equal(rig_count(&rig, "CONFIG"), 9);
}

static void status_is_republished_live(void **state)
{
    (void)state;
    rig_ask(&rig, "$JS.API.STREAM.CREATE.LIVE", "{\"name\":\"LIVE\",\"subjects\":[\"live.>\"]}");
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 2);
    WAIT(&rig, rig_count(&rig, "LIVE") == 2);
    publish_many(&rig, "feed.acme", "f", 1);
    WAIT(&rig, rig_count(&rig, "LIVE") == 3);
    const char *last =
        rig_ask(&rig, "$JS.API.STREAM.MSG.GET.LIVE", "{\"last_by_subj\":\"live.feed.acme\"}");
    assert_non_null(strstr(last, "\"subject\":\"live.feed.acme\""));
    rig_ask(&rig, "$JS.API.STREAM.DELETE.LIVE", "");
}

// The server's window is one for all tenants and types, and answers as if all were well: it is
// short for who publishes bare ids, and ids as ingest makes them of an application's never meet.
static void finding_12_one_tenants_id_does_not_take_anothers_event(void **state)
{
    (void)state;
    static const char *const subjects[] = {"evt.acme.notify", "evt.beta.notify", "evt.beta.paid"};
    static const char *const ids[] = {
        "acme/notify/order-17", "beta/notify/order-17", "beta/paid/order-17"};
    Acks acks = {0};
    for (size_t i = 0; i < 3; i++) {
        publish_id(&rig, subjects[i], ids[i], "x", &acks);
    }
    WAIT(&rig, acks.stored == 3);
    assert_int_equal(acks.duplicates, 0);
    assert_int_equal(rig_count(&rig, "EVENTS"), 3);
    assert_non_null(
        strstr(rig_ask(&rig, "$JS.API.STREAM.INFO.EVENTS", ""), "\"duplicate_window\":100000000"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(everything_is_made),
        TEST(a_second_time_changes_nothing),
        TEST(a_changed_option_is_updated),
        TEST(what_no_option_names_stays_as_it_is),
        TEST(a_new_installation_has_the_sizes_of_the_table),
        TEST(the_servers_refusal_names_the_object),
        TEST(config_keeps_the_last_eight_of_each_subject),
        TEST(finding_12_one_tenants_id_does_not_take_anothers_event),
        TEST(status_is_republished_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
