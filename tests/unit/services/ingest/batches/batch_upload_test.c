// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "services/ingest/batches/batch_upload.h"

static const int64_t NOW_US = INT64_C(1795199136000000);

typedef struct Stage {
    Arena *arena;
    MasterKey *master;
    DataKey *key;
    MemberRules rules;
    ChunkPlace place;
    Upload upload;
    Error err;
    int steps;
} Stage;

static int stage_up(void **state)
{
    Stage *s = xcalloc(1, sizeof *s);
    char text[132];
    master_key_generate(text);
    s->arena = arena_new(0);
    s->master = master_key_parse(str_from(text), NULL);
    s->key = data_key_for_tenant(s->master, STR("acme"));
    s->rules = (MemberRules){
        .model = {.template_key = STR("welcome"), .channel = CHANNEL_EMAIL},
        .variables_max = REQUEST_VARIABLES_MAX,
        .now_us = NOW_US,
    };
    s->place = (ChunkPlace){.tenant = STR("acme"), .batch_id = STR("dbt_x"), .part = 1};
    *state = s;
    return 0;
}

static int stage_down(void **state)
{
    Stage *s = *state;
    upload_done(&s->upload);
    data_key_free(s->key);
    master_key_free(s->master);
    arena_free(s->arena);
    free(s);
    return 0;
}

static bool read_all(Stage *s, Str body)
{
    upload_init(&s->upload, &s->rules, s->key, &s->place, body, s->arena);
    bool ended = false;
    while (!ended) {
        if (!upload_step(&s->upload, &ended, &s->err)) {
            return false;
        }
        s->steps++;
    }
    return true;
}

static Str lines(Stage *s, size_t count, const char *variables)
{
    Buf out;
    buf_init(&out, 64 * 1024 * 1024);
    for (size_t i = 0; i < count; i++) {
        buf_printf(&out, "{\"to\":\"m%zu@example.com\",\"variables\":%s}\n", i, variables);
    }
    Str copy = arena_str(s->arena, buf_view(&out));
    buf_done(&out);
    return copy;
}

static void lines_become_chunks_of_a_thousand_in_their_order(void **state)
{
    Stage *s = *state;
    assert_true(read_all(s, lines(s, 2500, "{}")));
    assert_int_equal(s->upload.chunks, 3);
    assert_int_equal(s->upload.members, 2500);
    assert_int_equal(s->upload.counts[0], 1000);
    assert_int_equal(s->upload.counts[2], 500);
    assert_true(s->steps >= 2500 / UPLOAD_SLICE_LINES); // the loop turned in between
    for (size_t i = 0; i < 3; i++) {
        ChunkPlace place = s->place;
        Member *members = NULL;
        size_t count = 0;
        place.ordinal = (int64_t)i;
        assert_true(
            chunk_unpack(s->key, &place, s->upload.blobs[i], s->arena, &members, &count, &s->err));
        char first[64];
        snprintf(first, sizeof first, "m%zu@example.com", i * 1000);
        assert_true(str_eq(members[0].to, str_from(first)));
    }
}

static void a_chunk_closes_before_it_is_too_long(void **state)
{
    Stage *s = *state;
    char *long_text = arena_alloc(s->arena, 20001);
    memset(long_text, 'x', 20000);
    long_text[20000] = '\0';
    assert_true(read_all(s, lines(s, 100, arena_printf(s->arena, "{\"text\":\"%s\"}", long_text))));
    assert_int_equal(s->upload.members, 100);
    assert_int_equal(s->upload.chunks, 4); // 25 of them fit into 500 KiB
    int64_t sum = 0;
    for (size_t i = 0; i < s->upload.chunks; i++) {
        sum += s->upload.counts[i];
    }
    assert_int_equal(sum, 100);
}

static void broken_lines_are_named_and_the_others_taken(void **state)
{
    Stage *s = *state;
    assert_true(read_all(
        s, STR("{\"to\":\"a@b.test\"}\r\n\n{oops\n{\"to\":\"no\"}\n"
               "{\"to\":\"a@b.test\",\"name\":\"x\\ny\"}\n{\"name\":\"x\"}\n5")));
    assert_int_equal(s->upload.members, 1);
    assert_int_equal(s->upload.broken, 5);
    const char *named = buf_c(&s->upload.lines);
    assert_non_null(strstr(named, "{\"line\":3,\"field\":\"\",\"detail\":\"not JSON"));
    assert_non_null(strstr(named, "{\"line\":4,\"field\":\"to\""));
    assert_non_null(strstr(named, "{\"line\":5,\"field\":\"name\""));
    assert_non_null(strstr(named, "{\"line\":6,\"field\":\"to\""));
    assert_non_null(
        strstr(named, "{\"line\":7,\"field\":\"\",\"detail\":\"must be a JSON object\""));
}

static void a_part_of_too_many_lines_is_refused_as_a_whole(void **state)
{
    Stage *s = *state;
    assert_false(read_all(s, lines(s, UPLOAD_LINES_MAX + 1, "{}")));
    assert_int_equal(s->err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(s->err.text, "10000"));
}

static void the_last_line_end_is_no_line(void **state)
{
    Stage *s = *state;
    assert_true(read_all(s, lines(s, UPLOAD_LINES_MAX, "{}")));
    assert_int_equal(s->upload.members, UPLOAD_LINES_MAX);
}

static void nothing_is_nothing(void **state)
{
    Stage *s = *state;
    assert_true(read_all(s, STR("\n\n")));
    assert_int_equal(s->upload.chunks, 0);
    assert_int_equal(s->upload.broken, 0);
}

int main(void)
{
#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, stage_up, stage_down)
    const struct CMUnitTest tests[] = {
        ON_STAGE(lines_become_chunks_of_a_thousand_in_their_order),
        ON_STAGE(a_chunk_closes_before_it_is_too_long),
        ON_STAGE(broken_lines_are_named_and_the_others_taken),
        ON_STAGE(a_part_of_too_many_lines_is_refused_as_a_whole),
        ON_STAGE(the_last_line_end_is_no_line),
        ON_STAGE(nothing_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
