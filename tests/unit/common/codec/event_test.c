// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/codec/event.h"
#include "stentor/v1/config.pb-c.h"
#include "stentor/v1/request.pb-c.h"

typedef struct World {
    Arena *arena;
    Error err;
} World;

static int make_world(void **state)
{
    static World world;
    world.arena = arena_new(0);
    error_clear(&world.err);
    *state = &world;
    return 0;
}

static int end_world(void **state)
{
    World *world = *state;
    arena_free(world->arena);
    return 0;
}

static Stentor__V1__NotificationRequest *read_request(World *world, Str bytes)
{
    return (Stentor__V1__NotificationRequest *)event_unpack(
        &stentor__v1__notification_request__descriptor, bytes, world->arena, &world->err);
}

static Str pack_request(World *world)
{
    Stentor__V1__Meta meta;
    stentor__v1__meta__init(&meta);
    char tenant[] = "acme";
    meta.tenant = tenant;
    Stentor__V1__NotificationRequest request;
    stentor__v1__notification_request__init(&request);
    request.meta = &meta;
    request.channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    char template[] = "Gr\xc3\xbc\xc3\x9f";
    request.template_ = template;
    request.address_hash = pb_data(STR("a\0b"));
    Str bytes;
    assert_true(event_pack(&request.base, world->arena, &bytes, &world->err));
    return bytes;
}

static void what_was_packed_unpacks_the_same(void **state)
{
    World *world = *state;
    Stentor__V1__NotificationRequest *back = read_request(world, pack_request(world));
    assert_non_null(back);
    assert_string_equal(back->meta->tenant, "acme");
    assert_string_equal(back->template_, "Gr\xc3\xbc\xc3\x9f");
    assert_int_equal(back->channel, STENTOR__V1__CHANNEL__CHANNEL_EMAIL);
    assert_true(str_eq(pb_bytes(back->address_hash), str_of("a\0b", 3)));
    assert_null(back->address);
}

static void absent_strings_are_empty_not_null(void **state)
{
    World *world = *state;
    Stentor__V1__NotificationRequest *back = read_request(world, STR_EMPTY);
    assert_non_null(back);
    assert_string_equal(back->locale, "");
    assert_string_equal(back->template_, "");
    assert_null(back->meta);
}

static void a_newer_writers_fields_survive_a_relay(void **state)
{
    World *world = *state;
    Str known = pack_request(world);
    Buf bytes;
    buf_init(&bytes, 1000);
    buf_str(&bytes, known);
    buf_append(&bytes, "\xc2\x3e\x03new", 6); // field 1000, length 3
    Stentor__V1__NotificationRequest *back = read_request(world, buf_view(&bytes));
    assert_non_null(back);
    Str again;
    assert_true(event_pack(&back->base, world->arena, &again, &world->err));
    assert_true(str_eq(again, buf_view(&bytes)));
    buf_done(&bytes);
}

static void every_cut_parses_or_is_refused(void **state)
{
    World *world = *state;
    Str whole = pack_request(world);
    int refused = 0;
    for (size_t length = 0; length < whole.len; length++) {
        char *exact = malloc(length + 1); // the address sanitizer sees a read past it
        assert_non_null(exact);
        memcpy(exact, whole.ptr, length);
        exact = realloc(exact, length > 0 ? length : 1);
        error_clear(&world->err);
        if (read_request(world, str_of(exact, length)) == NULL) {
            assert_int_equal(world->err.kind, ERROR_PERMANENT);
            assert_string_equal(world->err.text, "not a stentor.v1.NotificationRequest");
            refused++;
        }
        free(exact);
    }
    assert_true(refused > 10);
}

static void a_string_that_is_not_utf8_is_refused_by_its_name(void **state)
{
    World *world = *state;
    static const struct {
        const char *bytes;
        size_t length;
        const char *field;
    } rows[] = {
        {"\x2a\x02\xff\xfe", 4, "'template'"},
        {"\x0a\x04\x12\x02\xc3(", 6, "'tenant'"}, // in Meta
        {"\x3a\x03"
         "a\0b",
         5, "'locale'"},                             // would read as "a"
        {"\x2a\x02ok\x2a\x01\x80", 7, "'template'"}, // twice: each is checked
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_null(read_request(world, str_of(rows[i].bytes, rows[i].length)));
        assert_int_equal(world->err.kind, ERROR_PERMANENT);
        assert_non_null(strstr(world->err.text, rows[i].field));
    }
    assert_non_null(read_request(world, str_of("\x4a\x02\xff\xfe", 4))); // address_hash is bytes
}

static void strings_in_repeated_messages_are_checked(void **state)
{
    World *world = *state;
    const char bytes[] = "\x3a\x04\x0a\x02"
                         "en"
                         "\x3a\x04\x22\x02<\xff"; // two locales
    assert_null(event_unpack(
        &stentor__v1__template_version__descriptor, str_of(bytes, sizeof bytes - 1), world->arena,
        &world->err));
    assert_non_null(strstr(world->err.text, "'html'"));
}

static void field_number_zero_is_refused_however_it_is_written(void **state)
{
    World *world = *state;
    const Str bad[] = {
        str_of("\x00\x0c", 2), str_of("\x80\x00\x0c", 3), str_of("\x0a\x03\x80\x00\x0c", 5)};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        error_clear(&world->err);
        assert_null(read_request(world, bad[i]));
        assert_string_equal(world->err.text, "not a stentor.v1.NotificationRequest");
    }
}

static void an_event_above_the_maximum_is_refused_both_ways(void **state)
{
    World *world = *state;
    static char large[EVENT_BYTES_MAX + 1];
    assert_null(read_request(world, str_of(large, sizeof large)));
    assert_int_equal(world->err.kind, ERROR_PERMANENT);
    Stentor__V1__NotificationRequest request;
    stentor__v1__notification_request__init(&request);
    request.address_hash = pb_data(str_of(large, sizeof large));
    Str bytes;
    assert_false(event_pack(&request.base, world->arena, &bytes, &world->err));
    assert_int_equal(world->err.kind, ERROR_PERMANENT);
}

// 400,000 empty locales: 800 KB on the wire, some 40 MB in memory.
static void a_small_event_cannot_fill_the_memory(void **state)
{
    World *world = *state;
    static char bomb[800 * 1000];
    for (size_t i = 0; i < sizeof bomb; i += 2) {
        bomb[i] = '\x3a';
    }
    assert_null(event_unpack(
        &stentor__v1__template_version__descriptor, str_of(bomb, sizeof bomb), world->arena,
        &world->err));
    assert_int_equal(world->err.kind, ERROR_PERMANENT);
    assert_true(arena_used(world->arena) <= 17 * 1024 * 1024);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_world, end_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_packed_unpacks_the_same),
        TEST(absent_strings_are_empty_not_null),
        TEST(a_newer_writers_fields_survive_a_relay),
        TEST(every_cut_parses_or_is_refused),
        TEST(a_string_that_is_not_utf8_is_refused_by_its_name),
        TEST(strings_in_repeated_messages_are_checked),
        TEST(field_number_zero_is_refused_however_it_is_written),
        TEST(an_event_above_the_maximum_is_refused_both_ways),
        TEST(a_small_event_cannot_fill_the_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
