// SPDX-License-Identifier: Apache-2.0
#include "common/base/clock.h"
#include "common/bus/consume/reader_internal.h"
#include "tests/unit/common/base/states/states_walk.h"
#include "tests/unit/common/bus/bus_tools.h"

typedef struct Seen {
    uint64_t sequences[20000];
    size_t count;
    int64_t last_at_us;
    size_t caught_up_at;
    bool caught_up, failed;
    Error error;
} Seen;

static Rig rig;

static void note_messages(void *ctx, const BusMessage *messages, size_t count)
{
    Seen *seen = ctx;
    for (size_t i = 0; i < count; i++) {
        seen->sequences[seen->count++] = messages[i].sequence;
        seen->last_at_us = messages[i].stored_at_us;
    }
}

static void note_caught_up(void *ctx)
{
    Seen *seen = ctx;
    seen->caught_up = true;
    seen->caught_up_at = seen->count;
}

static void note_failed(void *ctx, const Error *err)
{
    Seen *seen = ctx;
    seen->failed = true;
    seen->error = *err;
}

static const ReaderHandlers handlers = {note_messages, note_caught_up, note_failed};

static Reader *read_from(Rig *on, Seen *seen, uint64_t start, int64_t created_us)
{
    memset(seen, 0, sizeof *seen);
    return reader_new(
        on->bus,
        &(ReaderOptions){
            .stream = "STATUS", .start_sequence = start, .expect_created_us = created_us},
        &handlers, seen);
}

static void end(Rig *on, Reader *reader)
{
    on->done = false;
    reader_free(reader, on_rig_done, on);
    WAIT_FLAG(on, on->done);
}

static void assert_in_order(const Seen *seen, uint64_t first)
{
    for (size_t i = 0; i < seen->count; i++) {
        assert_int_equal(seen->sequences[i], first + i);
    }
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

static void everything_comes_in_order_and_then_what_is_new(void **state)
{
    (void)state;
    static Seen seen;
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 3000);
    Reader *reader = read_from(&rig, &seen, 0, 0);
    WAIT(&rig, seen.caught_up);
    assert_int_equal(seen.caught_up_at, 3000);
    publish_many(&rig, "ntf.status.acme.email.sent", "t", 100);
    WAIT(&rig, seen.count == 3100);
    assert_in_order(&seen, 1);
    assert_int_equal(reader_lag(reader), 0);
    end(&rig, reader);
}

static void a_read_resumes_from_a_sequence(void **state)
{
    (void)state;
    static Seen seen;
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 100);
    Reader *reader = read_from(&rig, &seen, 61, 0);
    WAIT(&rig, seen.caught_up);
    assert_int_equal(seen.count, 40);
    assert_in_order(&seen, 61);
    end(&rig, reader);
}

static void an_empty_stream_is_caught_up_at_once(void **state)
{
    (void)state;
    static Seen seen;
    Reader *reader = read_from(&rig, &seen, 0, 0);
    WAIT(&rig, seen.caught_up);
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 2);
    WAIT(&rig, seen.count == 2);
    end(&rig, reader);
}

static void only_new_passes_over_the_past(void **state)
{
    (void)state;
    static Seen seen;
    memset(&seen, 0, sizeof seen);
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 50);
    Reader *reader = reader_new(
        rig.bus, &(ReaderOptions){.stream = "STATUS", .only_new = true}, &handlers, &seen);
    WAIT(&rig, seen.caught_up);
    publish_many(&rig, "ntf.status.acme.email.sent", "t", 3);
    WAIT(&rig, seen.count == 3);
    assert_in_order(&seen, 51);
    end(&rig, reader);
}

static void a_filter_takes_only_its_subjects(void **state)
{
    (void)state;
    static Seen seen;
    memset(&seen, 0, sizeof seen);
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 5);
    publish_many(&rig, "ntf.status.other.email.sent", "o", 5);
    Reader *reader = reader_new(
        rig.bus, &(ReaderOptions){.stream = "STATUS", .filter = "ntf.status.acme.>"}, &handlers,
        &seen);
    WAIT(&rig, seen.caught_up);
    assert_int_equal(seen.count, 5);
    end(&rig, reader);
}

static void a_read_begins_at_a_time(void **state)
{
    (void)state;
    static Seen seen;
    memset(&seen, 0, sizeof seen);
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 40);
    pass_ms(&rig, 20);
    int64_t middle_us = clock_now_us();
    pass_ms(&rig, 20);
    publish_many(&rig, "ntf.status.acme.email.sent", "t", 10);
    ReaderOptions options = {.stream = "STATUS", .start_time_us = middle_us};
    Reader *reader = reader_new(rig.bus, &options, &handlers, &seen);
    WAIT(&rig, seen.caught_up);
    assert_int_equal(seen.count, 10);
    assert_in_order(&seen, 41);
    end(&rig, reader);
    memset(&seen, 0, sizeof seen);
    options.start_time_us = clock_now_us(); // nothing was stored since
    reader = reader_new(rig.bus, &options, &handlers, &seen);
    WAIT(&rig, seen.caught_up);
    assert_int_equal(seen.count, 0);
    publish_many(&rig, "ntf.status.acme.email.sent", "u", 1);
    WAIT(&rig, seen.count == 1);
    end(&rig, reader);
}

static void only_the_last_of_each_subject_comes(void **state)
{
    (void)state;
    static Seen seen;
    memset(&seen, 0, sizeof seen);
    publish_many(&rig, "ntf.status.acme.email.queued", "q", 10);
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 10);
    publish_many(&rig, "ntf.status.other.email.sent", "o", 10);
    ReaderOptions options = {.stream = "STATUS", .last_per_subject = true};
    Reader *reader = reader_new(rig.bus, &options, &handlers, &seen);
    WAIT(&rig, seen.caught_up);
    assert_int_equal(seen.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(seen.sequences[i], 10 * (i + 1));
    }
    publish_many(&rig, "ntf.status.acme.email.queued", "new", 1);
    WAIT(&rig, seen.count == 4);
    end(&rig, reader);
    memset(&seen, 0, sizeof seen);
    options.filter = "ntf.status.acme.>";
    reader = reader_new(rig.bus, &options, &handlers, &seen);
    WAIT(&rig, seen.caught_up);
    assert_int_equal(seen.count, 2);
    end(&rig, reader);
}

static void the_last_of_each_subject_comes_once_though_the_server_restarts(void **state)
{
    (void)state;
    Server server;
    Rig own;
    static Seen seen;
    memset(&seen, 0, sizeof seen);
    server_init(&server);
    server_start(&server);
    rig_open(&own, server.url);
    rig_apply(&own, 0);
    publish_many(&own, "ntf.status.acme.email.queued", "q", 5);
    publish_many(&own, "ntf.status.acme.email.sent", "s", 5);
    ReaderOptions options = {.stream = "STATUS", .last_per_subject = true};
    Reader *reader = reader_new(own.bus, &options, &handlers, &seen);
    WAIT(&own, seen.caught_up && seen.count == 2);
    server_kill(&server, SIGKILL);
    server_start(&server);
    WAIT(&own, bus_connected(own.bus));
    publish_many(&own, "ntf.status.acme.email.failed", "f", 3);
    WAIT(&own, seen.count == 3 || seen.count > 3);
    pass_ms(&own, 300);
    // 3 when the reader was back only after the last of them, up to 5 when it saw each.
    assert_true(seen.count >= 3 && seen.count <= 5);
    assert_int_equal(seen.sequences[0], 5);
    assert_int_equal(seen.sequences[1], 10);
    assert_int_equal(seen.sequences[seen.count - 1], 13);
    end(&own, reader);
    rig_close(&own);
    server_done(&server);
}

static void a_paused_reader_hands_nothing_over_and_loses_nothing(void **state)
{
    (void)state;
    static Seen seen;
    Reader *reader = read_from(&rig, &seen, 0, 0);
    WAIT(&rig, seen.caught_up);
    reader_pause(reader, true);
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 2000);
    pass_ms(&rig, 100);
    assert_int_equal(seen.count, 0);
    reader_pause(reader, false);
    WAIT(&rig, seen.count == 2000);
    assert_in_order(&seen, 1);
    end(&rig, reader);
}

static void a_recreated_stream_is_refused(void **state)
{
    (void)state;
    static Seen seen;
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 10);
    Reader *reader = read_from(&rig, &seen, 0, 0);
    WAIT(&rig, seen.caught_up);
    int64_t created = reader_stream_created_us(reader);
    assert_true(created > 0);
    end(&rig, reader);
    rig_fresh(&rig, 0);
    reader = read_from(&rig, &seen, 11, created);
    WAIT(&rig, seen.failed);
    assert_int_equal(seen.error.kind, ERROR_CONFIG);
    assert_non_null(strstr(seen.error.text, "was recreated"));
    end(&rig, reader);
}

static void a_stream_recreated_while_reading_is_refused(void **state)
{
    (void)state;
    static Seen seen;
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 10);
    Reader *reader = read_from(&rig, &seen, 0, 0);
    WAIT(&rig, seen.caught_up);
    Rig other; // the reader's own loop stands still while there is no stream, which is permanent
    rig_open(&other, getenv("STENTOR_TEST_NATS_URL"));
    rig_ask(&other, "$JS.API.STREAM.DELETE.STATUS", "");
    rig_apply(&other, 0);
    rig_close(&other);
    WAIT(&rig, seen.failed);
    assert_int_equal(seen.error.kind, ERROR_CONFIG);
    assert_non_null(strstr(seen.error.text, "was recreated"));
    end(&rig, reader);
}

static void a_start_past_the_streams_age_is_refused(void **state)
{
    (void)state;
    static Seen seen;
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 10);
    rig_ask(&rig, "$JS.API.STREAM.PURGE.STATUS", "{\"seq\":8}");
    Reader *reader = read_from(&rig, &seen, 5, 0);
    WAIT(&rig, seen.failed);
    assert_int_equal(seen.error.kind, ERROR_CONFIG);
    assert_non_null(strstr(seen.error.text, "begins at 8, but 5 was not read yet"));
    end(&rig, reader);
}

static void a_stream_shorter_than_what_was_read_is_refused(void **state)
{
    (void)state;
    static Seen seen;
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 10);
    Reader *reader = read_from(&rig, &seen, 15, 0);
    WAIT(&rig, seen.failed);
    assert_int_equal(seen.error.kind, ERROR_CONFIG);
    end(&rig, reader);
}

static void a_missing_stream_is_permanent(void **state)
{
    (void)state;
    static Seen seen;
    memset(&seen, 0, sizeof seen);
    Reader *reader = reader_new(rig.bus, &(ReaderOptions){.stream = "NOTHING"}, &handlers, &seen);
    WAIT(&rig, seen.failed);
    assert_int_equal(seen.error.kind, ERROR_PERMANENT);
    end(&rig, reader);
}

static void a_lost_consumer_is_made_again(void **state)
{
    (void)state;
    static Seen seen;
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 10);
    Reader *reader = read_from(&rig, &seen, 0, 0);
    WAIT(&rig, seen.caught_up);
    char name[32] = "", subject[128];
    const char *at =
        strstr(rig_ask(&rig, "$JS.API.CONSUMER.NAMES.STATUS", ""), "\"consumers\":[\"");
    assert_non_null(at);
    sscanf(at + strlen("\"consumers\":[\""), "%31[A-Za-z0-9]", name);
    snprintf(subject, sizeof subject, "$JS.API.CONSUMER.DELETE.STATUS.%s", name);
    rig_ask(&rig, subject, "");
    publish_many(&rig, "ntf.status.acme.email.sent", "t", 10);
    WAIT(&rig, seen.count == 20);
    assert_in_order(&seen, 1);
    end(&rig, reader);
}

static void the_last_of_each_subject_does_not_come_twice_with_a_new_consumer(void **state)
{
    (void)state;
    static Seen seen;
    memset(&seen, 0, sizeof seen);
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 10);
    publish_many(&rig, "ntf.status.acme.email.failed", "f", 10);
    Reader *reader = reader_new(
        rig.bus, &(ReaderOptions){.stream = "STATUS", .last_per_subject = true}, &handlers, &seen);
    WAIT(&rig, seen.count == 2);
    char name[32] = "", subject[128];
    const char *at =
        strstr(rig_ask(&rig, "$JS.API.CONSUMER.NAMES.STATUS", ""), "\"consumers\":[\"");
    assert_non_null(at);
    sscanf(at + strlen("\"consumers\":[\""), "%31[A-Za-z0-9]", name);
    snprintf(subject, sizeof subject, "$JS.API.CONSUMER.DELETE.STATUS.%s", name);
    rig_ask(&rig, subject, "");
    publish_many(&rig, "ntf.status.acme.email.sent", "t", 1);
    WAIT(&rig, seen.sequences[2] == 21);
    assert_int_equal(seen.count, 3);
    assert_int_equal(reader_tails_lost(reader), 0);
    end(&rig, reader);
}

static void a_read_goes_on_after_the_server_restarted(void **state)
{
    (void)state;
    static Seen seen;
    Rig own;
    Server server;
    server_init(&server);
    server_start(&server);
    rig_open(&own, server.url);
    rig_apply(&own, 0);
    publish_many(&own, "ntf.status.acme.email.sent", "s", 5000);
    Reader *reader = read_from(&own, &seen, 0, 0);
    WAIT(&own, seen.count > 1000);
    server_kill(&server, SIGKILL);
    pass_ms(&own, 200);
    server_start(&server);
    WAIT(&own, bus_connected(own.bus));
    publish_many(&own, "ntf.status.acme.email.sent", "t", 1000);
    WAIT(&own, seen.count == 6000);
    assert_in_order(&seen, 1);
    end(&own, reader);
    rig_close(&own);
    server_done(&server);
}

// ---- a stream whose creation time the server changes (nats-server 2.9.10) ----

static void restart_server(Rig *on, Server *server)
{
    server_kill(server, SIGTERM);
    pass_ms(on, 100);
    server_start(server);
    WAIT(on, bus_connected(on->bus));
}

static void apply_scale(Rig *on, double scale)
{
    rig_apply_options(on, &(TopologyOptions){.replicas = 1, .bytes_scale = scale});
}

static int64_t reported_creation(Rig *on, const char *stream)
{
    char subject[64], text[CLOCK_RFC3339_SIZE + 8];
    int64_t created_us = 0;
    snprintf(subject, sizeof subject, "$JS.API.STREAM.INFO.%s", stream);
    const char *at = strstr(rig_ask(on, subject, ""), "\"created\":\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\"created\":\"%35[^\"]", text), 1);
    assert_true(clock_parse(str_from(text), &created_us));
    return created_us;
}

// The operator's story: a restart, `stentor migrate` with another scale, a restart. A server
// without the fault passes what follows too.
static void creation_changes(Rig *on, Server *server)
{
    int64_t before_us = reported_creation(on, "STATUS");
    restart_server(on, server);
    apply_scale(on, 0.006);
    restart_server(on, server);
    if (reported_creation(on, "STATUS") == before_us) {
        print_message("this nats-server keeps a stream's creation time\n");
    }
}

static void own_server(Rig *own, Server *server)
{
    server_init(server);
    server_start(server);
    rig_open(own, server->url);
    apply_scale(own, 0.005);
}

static void own_end(Rig *own, Server *server)
{
    rig_close(own);
    server_done(server);
}

static Reader *read_on(Rig *on, Seen *seen, const ReaderOptions *options)
{
    memset(seen, 0, sizeof *seen);
    return reader_new(on->bus, options, &handlers, seen);
}

static void a_reader_goes_on_where_the_server_changed_the_creation_time(void **state)
{
    (void)state;
    static Seen seen, entries, fresh;
    Server server;
    Rig own;
    own_server(&own, &server);
    publish_many(&own, "ntf.status.acme.email.sent", "s", 10);
    publish_many(&own, "cfg.tenant.acme.self", "c", 2);
    Reader *tail = read_on(&own, &fresh, &(ReaderOptions){.stream = "STATUS", .only_new = true});
    WAIT(&own, fresh.caught_up);
    Reader *reader = read_from(&own, &seen, 0, 0);
    Reader *config = read_on(&own, &entries, &(ReaderOptions){.stream = "CONFIG"});
    WAIT(&own, seen.count == 10 && entries.count == 2);
    creation_changes(&own, &server);
    publish_many(&own, "ntf.status.acme.email.sent", "t", 5);
    publish_many(&own, "cfg.tenant.acme.self", "d", 1);
    WAIT(&own, seen.count == 15 && entries.sequences[entries.count - 1] == 3);
    assert_in_order(&seen, 1);
    assert_int_equal(reader_stream_created_us(reader), reported_creation(&own, "STATUS"));
    assert_int_equal(reader_tails_lost(reader) + reader_tails_lost(config), 0);
    assert_false(seen.failed || entries.failed || fresh.failed);
    WAIT(&own, fresh.count == 5);
    end(&own, tail);
    end(&own, config);
    end(&own, reader);
    own_end(&own, &server);
}

static void a_stored_place_goes_on_where_the_server_changed_the_creation_time(void **state)
{
    (void)state;
    static Seen seen;
    Server server;
    Rig own;
    own_server(&own, &server);
    publish_many(&own, "ntf.status.acme.email.sent", "s", 10);
    Reader *reader = read_from(&own, &seen, 0, 0);
    WAIT(&own, seen.count == 10);
    ReaderOptions place = {
        .stream = "STATUS",
        .start_sequence = 11,
        .expect_created_us = reader_stream_created_us(reader),
        .last_stored_at_us = seen.last_at_us};
    end(&own, reader);
    creation_changes(&own, &server);
    for (int more = 0; more <= 5; more += 5) {
        publish_many(&own, "ntf.status.acme.email.sent", "t", more);
        reader = read_on(&own, &seen, &place);
        WAIT(&own, seen.caught_up);
        assert_int_equal(seen.count, more);
        assert_in_order(&seen, 11);
        assert_int_equal(reader_stream_created_us(reader), reported_creation(&own, "STATUS"));
        assert_int_equal(reader_tails_lost(reader), 0);
        end(&own, reader);
    }
    place.last_stored_at_us =
        0; // of before positions had a time: nothing shows that it is the same
    reader = read_on(&own, &seen, &place);
    WAIT(&own, seen.failed);
    assert_non_null(strstr(seen.error.text, "was recreated"));
    end(&own, reader);
    own_end(&own, &server);
}

static void what_was_read_and_has_aged_is_no_other_stream(void **state)
{
    (void)state;
    static Seen seen;
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 10);
    Reader *reader = read_from(&rig, &seen, 0, 0);
    WAIT(&rig, seen.count == 10);
    ReaderOptions place = {
        .stream = "STATUS",
        .start_sequence = 11,
        .expect_created_us = reader_stream_created_us(reader) - 3600 * INT64_C(1000000),
        .last_stored_at_us = 1}; // before what the server reports
    end(&rig, reader);
    rig_ask(&rig, "$JS.API.STREAM.PURGE.STATUS", "");
    reader = read_on(&rig, &seen, &place);
    WAIT(&rig, seen.caught_up);
    publish_many(&rig, "ntf.status.acme.email.sent", "t", 5);
    WAIT(&rig, seen.count == 5);
    assert_in_order(&seen, 11);
    end(&rig, reader);
    place.start_sequence = 10; // which no reader has read
    reader = read_on(&rig, &seen, &place);
    WAIT(&rig, seen.failed);
    end(&rig, reader);
}

static void an_entry_that_was_replaced_is_no_other_stream(void **state)
{
    (void)state;
    static Seen seen;
    publish_many(&rig, "cfg.tenant.acme.self", "a", 1);
    publish_many(&rig, "cfg.tenant.other.self", "b", 1);
    ReaderOptions place = {
        .stream = "CONFIG",
        .start_sequence = 3,
        .expect_created_us = reported_creation(&rig, "CONFIG") - 3600 * INT64_C(1000000),
        .last_stored_at_us = 1};
    publish_many(&rig, "cfg.tenant.other.self", "c", 8); // as many as are kept: 2, read last, goes
    Reader *reader = read_on(&rig, &seen, &place);
    WAIT(&rig, seen.caught_up && seen.count == 9); // all entries, once more
    assert_int_equal(seen.sequences[0], 1);
    assert_int_equal(seen.sequences[1], 3);
    assert_int_equal(reader_tails_lost(reader), 0);
    end(&rig, reader);
    place.start_sequence = 2; // the message is there and has another time
    reader = read_on(&rig, &seen, &place);
    WAIT(&rig, seen.failed);
    assert_non_null(strstr(seen.error.text, "was recreated"));
    end(&rig, reader);
}

static void a_filters_last_message_that_is_gone_shows_nothing(void **state)
{
    (void)state;
    static Seen seen;
    publish_many(&rig, "ntf.status.acme.email.sent", "a", 3);
    publish_many(&rig, "ntf.status.other.email.sent", "o", 3);
    rig_ask(&rig, "$JS.API.STREAM.PURGE.STATUS", "{\"filter\":\"ntf.status.other.>\"}");
    ReaderOptions place = {
        .stream = "STATUS",
        .filter = "ntf.status.other.>",
        .start_sequence = 7,
        .expect_created_us = reported_creation(&rig, "STATUS") - 3600 * INT64_C(1000000),
        .last_stored_at_us = 1};
    Reader *reader = read_on(&rig, &seen, &place);
    WAIT(&rig, seen.failed);
    assert_int_equal(seen.error.kind, ERROR_CONFIG);
    end(&rig, reader);
}

static void another_stream_that_has_grown_past_is_refused(void **state)
{
    (void)state;
    static Seen seen;
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 10);
    Reader *reader = read_from(&rig, &seen, 0, 0);
    WAIT(&rig, seen.count == 10);
    ReaderOptions place = {
        .stream = "STATUS",
        .start_sequence = 11,
        .expect_created_us = reader_stream_created_us(reader),
        .last_stored_at_us = seen.last_at_us};
    end(&rig, reader);
    rig_fresh(&rig, 0);
    publish_many(&rig, "ntf.status.acme.email.sent", "t", 30);
    reader = read_on(&rig, &seen, &place);
    WAIT(&rig, seen.failed);
    assert_int_equal(seen.error.kind, ERROR_CONFIG);
    assert_non_null(strstr(seen.error.text, "was recreated"));
    assert_int_equal(seen.count, 0);
    end(&rig, reader);
}

static void an_empty_place_takes_the_stream_that_is_there(void **state)
{
    (void)state;
    static Seen seen;
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 3);
    Reader *reader = read_from(&rig, &seen, 1, 1);
    WAIT(&rig, seen.count == 3);
    assert_int_equal(reader_stream_created_us(reader), reported_creation(&rig, "STATUS"));
    end(&rig, reader);
}

// ---- a log that lost its tail ----

// A server whose store was copied after the first ten messages.
typedef struct Loss {
    Rig rig;
    Server server;
} Loss;

static void loss_open(Loss *loss)
{
    server_init(&loss->server);
    server_start(&loss->server);
    rig_open(&loss->rig, loss->server.url);
    rig_apply(&loss->rig, 0);
    publish_many(&loss->rig, "ntf.status.acme.email.sent", "old", 10);
    server_kill(&loss->server, SIGTERM);
    server_keep_copy(&loss->server);
    server_start(&loss->server);
    pass_ms(&loss->rig, 100);
    WAIT(&loss->rig, bus_connected(loss->rig.bus));
    publish_many(&loss->rig, "ntf.status.acme.email.sent", "lost", 10);
}

static void loss_happens(Loss *loss)
{
    server_kill(&loss->server, SIGKILL);
    server_put_copy_back(&loss->server);
    pass_ms(&loss->rig, 100);
    server_start(&loss->server);
    WAIT(&loss->rig, bus_connected(loss->rig.bus));
}

static void loss_close(Loss *loss)
{
    rig_close(&loss->rig);
    server_done(&loss->server);
}

static void a_lost_tail_is_read_again(void **state)
{
    (void)state;
    static Seen seen;
    Loss loss;
    loss_open(&loss);
    log_level_set(LOG_ERROR);
    Reader *reader = read_from(&loss.rig, &seen, 0, 0);
    WAIT(&loss.rig, seen.count == 20);
    loss_happens(&loss);
    WAIT(&loss.rig, reader_tails_lost(reader) == 1);
    publish_many(&loss.rig, "ntf.status.acme.email.sent", "new", 5);
    WAIT(&loss.rig, seen.count == 35); // the ten of the last minute again, and the new ones
    for (size_t i = 20; i < seen.count; i++) {
        assert_int_equal(seen.sequences[i], i - 19);
    }
    assert_int_equal(reader_tails_lost(reader), 1);
    assert_false(seen.failed);
    end(&loss.rig, reader);
    loss_close(&loss);
}

static void one_that_has_grown_past_is_noticed(void **state)
{
    (void)state;
    static Seen seen;
    Loss loss;
    loss_open(&loss);
    Reader *reader = read_from(&loss.rig, &seen, 0, 0);
    WAIT(&loss.rig, seen.count == 20);
    int64_t last_at_us = seen.last_at_us;
    end(&loss.rig, reader);
    loss_happens(&loss);
    publish_many(&loss.rig, "ntf.status.acme.email.sent", "new", 30); // 11..40: past the 20 read
    memset(&seen, 0, sizeof seen);
    reader = reader_new(
        loss.rig.bus,
        &(ReaderOptions){.stream = "STATUS", .start_sequence = 21, .last_stored_at_us = last_at_us},
        &handlers, &seen);
    WAIT(&loss.rig, seen.count == 40 && seen.caught_up);
    assert_in_order(&seen, 1);
    assert_int_equal(reader_tails_lost(reader), 1);
    end(&loss.rig, reader);
    loss_close(&loss);
}

static void the_message_read_last_is_not_read_again(void **state)
{
    (void)state;
    static Seen seen;
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 60);
    Reader *reader = read_from(&rig, &seen, 0, 0);
    WAIT(&rig, seen.count == 60);
    int64_t last_at_us = seen.last_at_us;
    end(&rig, reader);
    for (int more = 0; more <= 40; more += 40) {
        publish_many(&rig, "ntf.status.acme.email.sent", "t", more);
        memset(&seen, 0, sizeof seen);
        reader = reader_new(
            rig.bus,
            &(ReaderOptions){
                .stream = "STATUS", .start_sequence = 61, .last_stored_at_us = last_at_us},
            &handlers, &seen);
        WAIT(&rig, seen.caught_up);
        assert_int_equal(seen.count, more);
        assert_in_order(&seen, 61);
        assert_int_equal(reader_tails_lost(reader), 0);
        assert_int_equal(reader_lag(reader), 0);
        end(&rig, reader);
    }
}

static void what_the_last_of_each_subject_replaced_is_no_loss_of_entries(void **state)
{
    (void)state;
    static Seen seen;
    memset(&seen, 0, sizeof seen);
    Loss loss;
    loss_open(&loss);
    publish_many(&loss.rig, "cfg.tenant.acme.a", "a", 1);
    publish_many(&loss.rig, "cfg.tenant.acme.b", "b", 1);
    Reader *reader =
        reader_new(loss.rig.bus, &(ReaderOptions){.stream = "CONFIG"}, &handlers, &seen);
    WAIT(&loss.rig, seen.count == 2);
    loss_happens(&loss); // before both
    publish_many(&loss.rig, "cfg.tenant.acme.c", "c", 1);
    WAIT(&loss.rig, seen.count == 3);
    assert_int_equal(seen.sequences[2], 1);
    end(&loss.rig, reader);
    loss_close(&loss);
}

static void a_start_by_time_passes_over_what_is_older(void **state)
{
    (void)state;
    static Seen seen;
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 10);
    Reader *reader = read_from(&rig, &seen, 0, 0);
    WAIT(&rig, seen.count == 10);
    int64_t last_at_us = seen.last_at_us;
    end(&rig, reader);
    pass_ms(&rig, 20);
    publish_many(&rig, "ntf.status.acme.email.sent", "t", 5);
    memset(&seen, 0, sizeof seen);
    reader = reader_new(
        rig.bus, &(ReaderOptions){.stream = "STATUS", .start_time_us = last_at_us + 1}, &handlers,
        &seen);
    WAIT(&rig, seen.caught_up && seen.count == 5);
    assert_in_order(&seen, 11);
    end(&rig, reader);
}

static void a_reader_can_be_freed_at_any_step(void **state)
{
    (void)state;
    static Seen seen;
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 2000);
    for (int turns = 0; turns < 12; turns++) {
        Reader *reader = read_from(&rig, &seen, 0, 0);
        for (int i = 0; i < turns; i++) {
            uv_run(&rig.loop, UV_RUN_ONCE);
        }
        end(&rig, reader);
    }
}

// Each has a consumer of its own, also when they begin at once, and gives its name back at the end.
// What a release build does with a bug: the read begins again, and nothing is lost or comes twice.
static void a_refused_move_begins_the_read_again(void **state)
{
    (void)state;
    static Seen seen;
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 20);
    Reader *reader = read_from(&rig, &seen, 0, 0);
    WAIT(&rig, seen.caught_up);
    assert_int_equal(reader->state, READER_READING);
    states_survive(true);
    assert_false(reader_move(reader, READER_CREATING));
    states_survive(false);
    assert_int_equal(reader->state, READER_WAITING);
    publish_many(&rig, "ntf.status.acme.email.sent", "t", 10);
    WAIT(&rig, seen.count >= 30);
    assert_int_equal(seen.count, 30);
    assert_in_order(&seen, 1);
    rig.done = false;
    reader_free(reader, on_rig_done, &rig);
    states_survive(true);
    reader_free(reader, NULL, NULL); // the first is answered
    states_survive(false);
    WAIT_FLAG(&rig, rig.done);
}

static void as_many_readers_as_names_read_at_once(void **state)
{
    (void)state;
    enum { COUNT = 8 };
    static Seen seen[COUNT];
    Reader *readers[COUNT];
    publish_many(&rig, "ntf.status.acme.email.sent", "many", 50);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++) {
            readers[i] = read_from(&rig, &seen[i], 0, 0);
        }
        for (int i = 0; i < COUNT; i++) {
            WAIT(&rig, seen[i].count == 50);
        }
        for (int i = 0; i < COUNT; i++) {
            end(&rig, readers[i]);
        }
    }
    pass_ms(&rig, 50);
    // That of the webhooks' process alone.
    assert_non_null(strstr(rig_ask(&rig, "$JS.API.CONSUMER.NAMES.STATUS", ""), "\"total\":1,"));
}

static void note_created(char created[64])
{
    const char *at = strstr(rig_ask(&rig, "$JS.API.CONSUMER.LIST.STATUS", ""), "\"created\":\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\"created\":\"%63[^\"]", created), 1);
}

// A consumer that no pull waits at ends after INACTIVE_S (reader.c); a reader's own never does.
static void a_reader_that_waits_keeps_its_consumer(void **state)
{
    (void)state;
    static Seen seen;
    char before[64], after[64];
    Reader *reader = read_from(&rig, &seen, 0, 0);
    WAIT(&rig, seen.caught_up);
    note_created(before);
    pass_ms(&rig, 7000);
    note_created(after);
    assert_string_equal(before, after);
    end(&rig, reader);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(everything_comes_in_order_and_then_what_is_new),
        TEST(a_read_resumes_from_a_sequence),
        TEST(an_empty_stream_is_caught_up_at_once),
        TEST(only_new_passes_over_the_past),
        TEST(a_filter_takes_only_its_subjects),
        TEST(a_read_begins_at_a_time),
        TEST(only_the_last_of_each_subject_comes),
        TEST(a_paused_reader_hands_nothing_over_and_loses_nothing),
        TEST(a_recreated_stream_is_refused),
        TEST(a_stream_recreated_while_reading_is_refused),
        TEST(a_start_past_the_streams_age_is_refused),
        TEST(a_stream_shorter_than_what_was_read_is_refused),
        TEST(a_missing_stream_is_permanent),
        TEST(a_lost_consumer_is_made_again),
        TEST(the_last_of_each_subject_does_not_come_twice_with_a_new_consumer),
        cmocka_unit_test(a_read_goes_on_after_the_server_restarted),
        cmocka_unit_test(a_reader_goes_on_where_the_server_changed_the_creation_time),
        cmocka_unit_test(a_stored_place_goes_on_where_the_server_changed_the_creation_time),
        TEST(what_was_read_and_has_aged_is_no_other_stream),
        TEST(an_entry_that_was_replaced_is_no_other_stream),
        TEST(a_filters_last_message_that_is_gone_shows_nothing),
        TEST(another_stream_that_has_grown_past_is_refused),
        TEST(an_empty_place_takes_the_stream_that_is_there),
        cmocka_unit_test(a_lost_tail_is_read_again),
        cmocka_unit_test(one_that_has_grown_past_is_noticed),
        TEST(the_message_read_last_is_not_read_again),
        cmocka_unit_test(what_the_last_of_each_subject_replaced_is_no_loss_of_entries),
        TEST(a_start_by_time_passes_over_what_is_older),
        cmocka_unit_test(the_last_of_each_subject_comes_once_though_the_server_restarts),
        TEST(as_many_readers_as_names_read_at_once),
        TEST(a_reader_that_waits_keeps_its_consumer),
        TEST(a_reader_can_be_freed_at_any_step),
        TEST(a_refused_move_begins_the_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
