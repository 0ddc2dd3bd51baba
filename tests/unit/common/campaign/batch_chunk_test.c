// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/campaign/batch_chunk.h"

typedef struct Stage {
    Arena *arena;
    MasterKey *master;
    DataKey *key;
    ChunkPlace place;
} Stage;

static int stage_up(void **state)
{
    Stage *s = xcalloc(1, sizeof *s);
    char text[132];
    master_key_generate(text);
    s->arena = arena_new(0);
    s->master = master_key_parse(str_from(text), NULL);
    s->key = data_key_for_tenant(s->master, STR("acme"));
    s->place = (ChunkPlace){
        .tenant = STR("acme"), .batch_id = STR("dbt_01HZZZZZZZZZZZZZZZZZZZZZZZ"), .part = 3};
    *state = s;
    return 0;
}

static int stage_down(void **state)
{
    Stage *s = *state;
    data_key_free(s->key);
    master_key_free(s->master);
    arena_free(s->arena);
    free(s);
    return 0;
}

static Member *make_members(Stage *s, size_t count)
{
    Member *members = arena_array(s->arena, count, sizeof *members);
    for (size_t i = 0; i < count; i++) {
        members[i] = (Member){
            .to = str_from(arena_printf(s->arena, "secret%zu@example.com", i)),
            .name = i % 2 == 0 ? STR("Größe") : STR_EMPTY,
            .recipient_id = STR_EMPTY,
            .locale = i % 3 == 0 ? STR("de-DE") : STR_EMPTY,
            .variables = str_from(arena_printf(s->arena, "{\"n\":%zu}", i)),
        };
    }
    return members;
}

static void what_was_packed_comes_back(void **state)
{
    Stage *s = *state;
    static const size_t counts[] = {1, 2, 127, 128, CHUNK_MEMBERS_MAX};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        Member *members = make_members(s, counts[c]);
        Member *back = NULL;
        size_t count = 0;
        Str blob;
        Error err = {0};
        assert_true(chunk_pack(s->key, &s->place, members, counts[c], s->arena, &blob, &err));
        assert_true(chunk_unpack(s->key, &s->place, blob, s->arena, &back, &count, &err));
        assert_int_equal(count, counts[c]);
        for (size_t i = 0; i < count; i++) {
            assert_true(str_eq(back[i].to, members[i].to) && str_eq(back[i].name, members[i].name));
            assert_true(str_eq(back[i].locale, members[i].locale));
            assert_true(str_eq(back[i].variables, members[i].variables));
            assert_int_equal(back[i].recipient_id.len, 0);
        }
    }
}

static void a_members_consent_comes_back(void **state)
{
    Stage *s = *state;
    Member *members = make_members(s, 3);
    members[1].consent_source = STR("form");
    members[1].consent_at_us = INT64_C(1777636800000001);
    Member *back = NULL;
    size_t count = 0;
    Error err = {0};
    assert_true(chunk_decode(chunk_encode(members, 3, s->arena), s->arena, &back, &count, &err));
    assert_true(str_eq(back[1].consent_source, STR("form")));
    assert_int_equal(back[1].consent_at_us, INT64_C(1777636800000001));
    assert_int_equal(back[0].consent_source.len, 0);
    assert_int_equal(back[2].consent_at_us, 0);
}

// A batch may wait for a year while Stentor is upgraded.
static void a_chunk_of_the_version_before_is_read(void **state)
{
    Stage *s = *state;
    static const char TEXT[] = "\x01\x00\x02\x05"
                               "a@b.c\x03"
                               "Ann\x00\x02"
                               "de\x02"
                               "{}\x05"
                               "d@e.f\x00\x00\x00\x00";
    Member *back = NULL;
    size_t count = 0;
    Error err = {0};
    assert_true(chunk_decode(str_of(TEXT, sizeof TEXT - 1), s->arena, &back, &count, &err));
    assert_int_equal(count, 2);
    assert_true(str_eq(back[0].name, STR("Ann")) && str_eq(back[0].locale, STR("de")));
    assert_true(str_eq(back[1].to, STR("d@e.f")));
    assert_int_equal(back[1].consent_source.len, 0);
}

static void a_long_value_needs_more_bytes_of_length(void **state)
{
    Stage *s = *state;
    Member member = *make_members(s, 1);
    char *text = arena_alloc(s->arena, REQUEST_VARIABLES_MAX);
    memset(text, 'x', REQUEST_VARIABLES_MAX);
    member.variables = str_of(text, REQUEST_VARIABLES_MAX);
    Member *back = NULL;
    size_t count = 0;
    Error err = {0};
    Str plain = chunk_encode(&member, 1, s->arena);
    assert_true(plain.len <= chunk_member_bytes(&member) + 3);
    assert_true(chunk_decode(plain, s->arena, &back, &count, &err));
    assert_true(str_eq(back->variables, member.variables));
}

static void a_thousand_members_are_small_and_not_readable(void **state)
{
    Stage *s = *state;
    Str blob;
    Error err = {0};
    Member *members = make_members(s, 1000);
    assert_true(chunk_pack(s->key, &s->place, members, 1000, s->arena, &blob, &err));
    assert_true(blob.len < 16 * 1024);
    for (size_t i = 0; i + 6 <= blob.len; i++) {
        assert_true(memcmp(blob.ptr + i, "secret", 6) != 0);
    }
}

static void a_blob_does_not_open_elsewhere_or_altered(void **state)
{
    Stage *s = *state;
    Str blob;
    Error err = {0};
    Member *back = NULL;
    size_t count = 0;
    assert_true(chunk_pack(s->key, &s->place, make_members(s, 3), 3, s->arena, &blob, &err));
    ChunkPlace others[] = {s->place, s->place, s->place, s->place};
    others[0].tenant = STR("rival");
    others[1].batch_id = STR("dbt_01HZZZZZZZZZZZZZZZZZZZZZZY");
    others[2].part = 4;
    others[3].ordinal = 1;
    for (size_t i = 0; i < 4; i++) {
        Error refused = {0};
        assert_false(chunk_unpack(s->key, &others[i], blob, s->arena, &back, &count, &refused));
        assert_int_equal(refused.kind, ERROR_PERMANENT);
    }
    char *altered = arena_copy(s->arena, blob.ptr, blob.len);
    altered[blob.len - 5] ^= 1;
    Str bad = str_of(altered, blob.len);
    assert_false(chunk_unpack(s->key, &s->place, bad, s->arena, &back, &count, &err));
}

static void every_cut_is_refused(void **state)
{
    Stage *s = *state;
    Str plain = chunk_encode(make_members(s, 5), 5, s->arena);
    for (size_t len = 0; len < plain.len; len++) {
        Member *back = NULL;
        size_t count = 0;
        Error err = {0};
        assert_false(chunk_decode(str_slice(plain, 0, len), s->arena, &back, &count, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
    }
    char *longer = arena_alloc(s->arena, plain.len + 1);
    memcpy(longer, plain.ptr, plain.len);
    longer[plain.len] = 0;
    Member *back = NULL;
    size_t count = 0;
    Error err = {0};
    assert_false(chunk_decode(str_of(longer, plain.len + 1), s->arena, &back, &count, &err));
}

int main(void)
{
#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, stage_up, stage_down)
    const struct CMUnitTest tests[] = {
        ON_STAGE(what_was_packed_comes_back),
        ON_STAGE(a_members_consent_comes_back),
        ON_STAGE(a_chunk_of_the_version_before_is_read),
        ON_STAGE(a_long_value_needs_more_bytes_of_length),
        ON_STAGE(a_thousand_members_are_small_and_not_readable),
        ON_STAGE(a_blob_does_not_open_elsewhere_or_altered),
        ON_STAGE(every_cut_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
