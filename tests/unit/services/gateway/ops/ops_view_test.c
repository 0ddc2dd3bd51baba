// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "services/gateway/ops/ops_view.h"

#define SECOND INT64_C(1000000)
#define NOW (1000 * SECOND)

static OpsPicture picture;
static OpsProcesses *processes;

static int begin(void **state)
{
    (void)state;
    ops_picture_init(&picture);
    picture.at_us = NOW;
    processes = ops_processes_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    ops_processes_free(processes);
    return 0;
}

static OpsStream *stream_of(const char *name)
{
    size_t i = 0;
    while (strcmp(picture.streams[i].spec->name, name) != 0) {
        i++;
    }
    return &picture.streams[i];
}

static OpsConsumer *consumer_of(const char *stream, const char *name)
{
    size_t i = 0;
    while (strcmp(picture.consumers[i].spec->stream, stream) != 0 ||
           strcmp(picture.consumers[i].spec->name, name) != 0) {
        i++;
    }
    return &picture.consumers[i];
}

static json_t *row_of(json_t *list, const char *field, const char *value)
{
    size_t i = 0;
    json_t *row = NULL;
    json_array_foreach(list, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, field)), value) == 0) {
            return row;
        }
    }
    fail_msg("no %s '%s'", field, value);
    return NULL;
}

static double real(const json_t *row, const char *name)
{
    assert_non_null(json_object_get(row, name));
    return json_number_value(json_object_get(row, name));
}

static void read(OpsStream *stream, OpsConsumer *consumer, const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    assert_true(stream != NULL ? ops_stream_read(stream, json) : ops_consumer_read(consumer, json));
    json_decref(json);
}

static void an_answer_is_read_and_a_refusal_is_none(void **state)
{
    (void)state;
    OpsStream *stream = stream_of("STATUS");
    read(
        stream, NULL,
        "{\"config\":{\"max_bytes\":100,\"num_replicas\":3},\"state\":{\"messages\":2,\"bytes\":50,"
        "\"first_seq\":4,\"last_seq\":9,\"first_ts\":\"1970-01-01T00:00:01Z\",\"last_ts\":\"1970-"
        "01-"
        "01T00:00:02Z\"}}");
    assert_int_equal(stream->messages, 2);
    assert_int_equal(stream->last, 9);
    assert_int_equal(stream->first_at_us, SECOND);
    assert_int_equal(stream->replicas, 3);
    OpsConsumer *consumer = consumer_of("REQUEST_NORMAL", "renderer");
    read(
        NULL, consumer,
        "{\"num_pending\":5,\"num_ack_pending\":2,\"num_redelivered\":1,\"ack_floor\":{\"stream_"
        "seq\":30,\"consumer_seq\":31}}");
    assert_int_equal(ops_lag(consumer), 7);
    assert_int_equal(consumer->floor, 30);
    json_t *refusal = json_loads("{\"error\":{\"code\":404}}", 0, NULL);
    assert_false(ops_stream_read(stream_of("FEED"), refusal));
    assert_false(ops_consumer_read(consumer, NULL));
    assert_false(stream_of("FEED")->there);
    json_decref(refusal);
}

static void rates_are_over_the_last_moments(void **state)
{
    (void)state;
    OpsHistory history = {0};
    OpsStream *stream = stream_of("REQUEST_NORMAL");
    OpsConsumer *consumer = consumer_of("REQUEST_NORMAL", "renderer");
    stream->there = consumer->there = true;
    for (uint64_t second = 0; second < 10; second++) {
        picture.at_us = NOW + (int64_t)second * SECOND;
        stream->last = 100 * second;
        consumer->floor = second < 5 ? 0 : 40 * (second - 5);
        ops_history_add(&history, &picture);
        assert_true(second > 0 || stream->per_s < 0);
    }
    assert_true(stream->per_s > 99.9 && stream->per_s < 100.1);
    assert_true(consumer->per_s > 26 && consumer->per_s < 27); // 160 in six seconds
    stream->last = 5;                                          // another stream of the name
    picture.at_us += SECOND;
    ops_history_add(&history, &picture);
    assert_true(stream->per_s < 0);
}

static void lag_is_said_in_events_and_in_age(void **state)
{
    (void)state;
    OpsConsumer *consumer = consumer_of("RENDERED_LOW", "dispatcher");
    *consumer = (OpsConsumer){
        .spec = consumer->spec,
        .there = true,
        .waiting = 600,
        .in_hand = 12,
        .oldest_at_us = NOW - 90 * SECOND,
        .per_s = 20,
    };
    json_t *all = ops_consumers_json(&picture);
    json_t *row = row_of(json_object_get(all, "data"), "stream", "RENDERED_LOW");
    assert_int_equal(json_integer_value(json_object_get(row, "lag")), 612);
    assert_true(real(row, "age_s") == 90);
    assert_true(real(row, "per_s") == 20);
    row = row_of(json_object_get(all, "data"), "stream", "INBOUND");
    assert_true(json_is_false(json_object_get(row, "there")));
    assert_null(json_object_get(row, "lag"));
    json_decref(all);
    all = ops_pipeline_json(&picture, processes, NOW);
    row = row_of(json_object_get(all, "lanes"), "lane", "low");
    assert_int_equal(json_integer_value(json_object_get(row, "lag")), 612);
    assert_true(real(row, "age_s") == 90);
    row = row_of(json_object_get(all, "stages"), "stage", "send");
    assert_int_equal(json_integer_value(json_object_get(row, "lag")), 612);
    assert_true(real(row, "out_per_s") == 20);
    json_decref(all);
}

static void a_stage_has_its_processes_and_what_comes_in(void **state)
{
    (void)state;
    stream_of("REQUEST_NORMAL")->per_s = 30;
    stream_of("REQUEST_HIGH")->per_s = 3;
    assert_true(ops_processes_heard(
        processes,
        STR("{\"service\":\"renderer\",\"instance\":\"a\",\"ready\":true,\"p99_ms\":{\"stentor_"
            "loop_"
            "lag_seconds\":900,\"stentor_renderer_batch_seconds\":25}}"),
        NOW));
    assert_true(ops_processes_heard(
        processes, STR("{\"service\":\"renderer\",\"instance\":\"b\",\"ready\":false}"), NOW));
    assert_true(ops_processes_heard(
        processes, STR("{\"service\":\"renderer\",\"instance\":\"c\",\"ready\":true}"),
        NOW - 10 * SECOND));
    assert_true(ops_processes_heard(
        processes,
        STR("{\"service\":\"archiver\",\"instance\":\"d\",\"ready\":true,\"values\":{\"stentor_"
            "archiver_lag\":17}}"),
        NOW));
    json_t *all = ops_pipeline_json(&picture, processes, NOW);
    json_t *stages = json_object_get(all, "stages");
    json_t *row = row_of(stages, "stage", "render");
    const json_t *replicas = json_object_get(row, "replicas");
    assert_true(real(replicas, "ready") == 1 && real(replicas, "not_ready") == 1);
    assert_true(real(replicas, "down") == 1);
    assert_true(real(row, "in_per_s") == 33);
    assert_true(real(row, "p99_ms") == 25);
    assert_true(real(row_of(stages, "stage", "accept"), "out_per_s") == 33);
    assert_true(real(row_of(stages, "stage", "record"), "lag") == 17);
    json_decref(all);
}

static void a_process_that_is_silent_is_down_and_then_forgotten(void **state)
{
    (void)state;
    Str beat =
        STR("{\"service\":\"ingest\",\"instance\":\"a\",\"ready\":true,\"started_at_us\":1}");
    assert_true(ops_processes_heard(processes, beat, NOW));
    static const struct {
        int64_t later_s;
        const char *state; // NULL: it is gone
    } rows[] = {{0, "ready"}, {6, "ready"}, {7, "down"}, {60, "down"}, {61, NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t now_us = NOW + rows[i].later_s * SECOND;
        ops_processes_forget(processes, now_us);
        json_t *list = ops_processes_json(processes, now_us);
        const json_t *said = json_object_get(json_array_get(list, 0), "state");
        assert_true(
            rows[i].state == NULL ? said == NULL
                                  : strcmp(json_string_value(said), rows[i].state) == 0);
        json_decref(list);
    }
}

static void what_is_no_heartbeat_is_not_taken(void **state)
{
    (void)state;
    static const char *const none[] = {
        "",
        "[]",
        "{}",
        "{\"service\":\"a\",\"instance\":\"b\"}",
        "{\"service\":1,\"instance\":\"b\",\"ready\":true}",
        "{\"service\":\"a\",\"instance\":\"\",\"ready\":true}"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_false(ops_processes_heard(processes, str_from(none[i]), NOW));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(an_answer_is_read_and_a_refusal_is_none),
        TEST(rates_are_over_the_last_moments),
        TEST(lag_is_said_in_events_and_in_age),
        TEST(a_stage_has_its_processes_and_what_comes_in),
        TEST(a_process_that_is_silent_is_down_and_then_forgotten),
        TEST(what_is_no_heartbeat_is_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
