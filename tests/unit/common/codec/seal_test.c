// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/base/id.h"
#include "common/codec/seal.h"

static const char key_text[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
                               "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n";
static const uint8_t subject[16] = "0123456789abcde";

typedef struct World {
    Arena *arena;
    MasterKey *master;
    DataKey *key;
    uint8_t wrapped[WRAPPED_KEY_LEN];
    Error err;
} World;

static int make_world(void **state)
{
    static World world;
    world.arena = arena_new(0);
    world.master = master_key_parse(str_from(key_text), &world.err);
    assert_non_null(world.master);
    world.key = data_key_new(world.master, subject, 3, world.wrapped);
    error_clear(&world.err);
    *state = &world;
    return 0;
}

static int end_world(void **state)
{
    World *world = *state;
    data_key_free(world->key);
    master_key_free(world->master);
    arena_free(world->arena);
    return 0;
}

static bool open_it(World *world, DataKey *key, const Stentor__V1__Sealed *sealed, Str *ret)
{
    return unseal(
        key, STR("acme"), STR("ntf_1"), "address", sealed, world->arena, ret, &world->err);
}

static Stentor__V1__Sealed *seal_it(World *world, Str plain)
{
    return seal(world->key, STR("acme"), STR("ntf_1"), "address", plain, world->arena);
}

static void what_was_sealed_opens_again(void **state)
{
    World *world = *state;
    static char large[70000];
    memset(large, 'x', sizeof large);
    const Str plains[] = {
        STR_EMPTY, STR("a"), STR("alice@example.com"), str_of(large, sizeof large)};
    for (size_t i = 0; i < sizeof plains / sizeof plains[0]; i++) {
        Stentor__V1__Sealed *sealed = seal_it(world, plains[i]);
        assert_int_equal(sealed->key_generation, 3);
        assert_int_equal(sealed->nonce.len, SEAL_NONCE_LEN);
        assert_int_equal(sealed->ciphertext.len, plains[i].len + SEAL_TAG_LEN);
        assert_memory_equal(sealed->key_subject.data, subject, sizeof subject);
        Str back = STR("?");
        assert_true(open_it(world, world->key, sealed, &back));
        assert_true(str_eq(back, plains[i]));
    }
}

static void each_sealing_has_its_own_nonce(void **state)
{
    World *world = *state;
    Stentor__V1__Sealed *one = seal_it(world, STR("alice"));
    Stentor__V1__Sealed *two = seal_it(world, STR("alice"));
    assert_memory_not_equal(one->nonce.data, two->nonce.data, SEAL_NONCE_LEN);
    assert_memory_not_equal(one->ciphertext.data, two->ciphertext.data, one->ciphertext.len);
}

static void one_changed_bit_is_seen(void **state)
{
    World *world = *state;
    Stentor__V1__Sealed *sealed = seal_it(world, STR("alice"));
    ProtobufCBinaryData parts[] = {sealed->nonce, sealed->ciphertext, sealed->key_subject};
    Str plain;
    for (size_t part = 0; part < 3; part++) {
        for (size_t bit = 0; bit < parts[part].len * 8; bit++) {
            parts[part].data[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_false(open_it(world, world->key, sealed, &plain));
            assert_int_equal(world->err.kind, ERROR_PERMANENT);
            parts[part].data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
    assert_true(open_it(world, world->key, sealed, &plain));
}

static void a_field_cannot_be_moved(void **state)
{
    World *world = *state;
    Stentor__V1__Sealed *sealed = seal_it(world, STR("alice"));
    static const char *const elsewhere[][3] = {
        {"other", "ntf_1", "address"},
        {"acme", "ntf_2", "address"},
        {"acme", "ntf_1", "variables"}};
    for (size_t i = 0; i < 3; i++) {
        Str plain = STR("untouched");
        assert_false(unseal(
            world->key, str_from(elsewhere[i][0]), str_from(elsewhere[i][1]), elsewhere[i][2],
            sealed, world->arena, &plain, &world->err));
        assert_int_equal(world->err.kind, ERROR_PERMANENT);
        assert_true(str_eq(plain, STR("untouched")));
    }
}

static void malformed_fields_are_refused(void **state)
{
    World *world = *state;
    Str plain;
    for (size_t cut = 0; cut < 3; cut++) {
        Stentor__V1__Sealed *sealed = seal_it(world, STR_EMPTY);
        sealed->nonce.len -= cut == 0;
        sealed->ciphertext.len -= cut == 1;
        sealed->key_subject.len -= cut == 2;
        assert_false(open_it(world, world->key, sealed, &plain));
        assert_int_equal(world->err.kind, ERROR_PERMANENT);
        assert_non_null(strstr(world->err.text, "'address'"));
    }
    Stentor__V1__Sealed empty;
    stentor__v1__sealed__init(&empty);
    assert_false(open_it(world, world->key, &empty, &plain));
}

static Stentor__V1__Sealed *pack_it(World *world, Str plain)
{
    return seal_packed(world->key, STR("acme"), STR("ntf_1"), "address", plain, world->arena);
}

static void a_text_is_packed_where_that_makes_it_smaller(void **state)
{
    World *world = *state;
    static char text[70000];
    static char noise[70000];
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = "to be or not to be, "[i % 20];
    }
    random_bytes(noise, sizeof noise);
    const struct {
        Str plain;
        bool packed;
    } cases[] = {
        {STR_EMPTY, false},
        {str_of(text, 127), false},
        {str_of(text, 128), true},
        {str_of(text, sizeof text), true},
        {str_of(noise, sizeof noise), false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Stentor__V1__Sealed *sealed = pack_it(world, cases[i].plain);
        assert_int_equal(sealed->packed, cases[i].packed);
        size_t size = sealed->ciphertext.len - SEAL_TAG_LEN;
        assert_true(cases[i].packed ? size < cases[i].plain.len : size == cases[i].plain.len);
        Str back = STR("?");
        assert_true(open_it(world, world->key, sealed, &back));
        assert_true(str_eq(back, cases[i].plain));
    }
}

// Whoever takes one for the other (a release that knows no packing does) opens neither.
static void what_is_packed_says_so_under_the_seal(void **state)
{
    World *world = *state;
    static char text[1000];
    memset(text, 'x', sizeof text);
    Stentor__V1__Sealed *both[] = {
        pack_it(world, str_of(text, sizeof text)), seal_it(world, str_of(text, sizeof text))};
    for (size_t i = 0; i < 2; i++) {
        Str plain = STR("untouched");
        both[i]->packed = !both[i]->packed;
        assert_false(open_it(world, world->key, both[i], &plain));
        assert_int_equal(world->err.kind, ERROR_PERMANENT);
        assert_true(str_eq(plain, STR("untouched")));
    }
}

// Sealed by a holder of the key, and no frame: refused by the field's name.
static void what_is_no_frame_is_refused(void **state)
{
    World *world = *state;
    Stentor__V1__Sealed *sealed = seal(
        world->key, STR("acme"), STR("ntf_1"), "address|zstd", STR("no frame at all"),
        world->arena);
    sealed->packed = true;
    Str plain = STR("untouched");
    assert_false(open_it(world, world->key, sealed, &plain));
    assert_int_equal(world->err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(world->err.text, "'address'"));
    assert_true(str_eq(plain, STR("untouched")));
}

static void a_wrapped_key_opens_what_its_twin_sealed(void **state)
{
    World *world = *state;
    Str wrapped = str_of(world->wrapped, WRAPPED_KEY_LEN);
    DataKey *twin = data_key_unwrap(world->master, subject, 3, wrapped, &world->err);
    assert_non_null(twin);
    assert_int_equal(data_key_generation(twin), 3);
    Str plain;
    assert_true(open_it(world, twin, seal_it(world, STR("alice")), &plain));
    assert_true(str_eq(plain, STR("alice")));
    data_key_free(twin);
    data_key_free(NULL);
}

static void a_wrapped_key_belongs_to_its_subject_generation_and_master(void **state)
{
    World *world = *state;
    Str wrapped = str_of(world->wrapped, WRAPPED_KEY_LEN);
    uint8_t other[16] = "0123456789abcdX";
    assert_null(data_key_unwrap(world->master, other, 3, wrapped, &world->err));
    assert_int_equal(world->err.kind, ERROR_PERMANENT);
    assert_null(data_key_unwrap(world->master, subject, 4, wrapped, &world->err));
    assert_null(data_key_unwrap(
        world->master, subject, 3, str_slice(wrapped, 0, WRAPPED_KEY_LEN - 1), &world->err));
    assert_int_equal(world->err.kind, ERROR_PERMANENT);
    char text[132];
    master_key_generate(text);
    MasterKey *another = master_key_parse(str_from(text), &world->err);
    assert_non_null(another);
    assert_null(data_key_unwrap(another, subject, 3, wrapped, &world->err));
    master_key_free(another);
}

static void a_new_generation_does_not_open_the_old(void **state)
{
    World *world = *state;
    uint8_t wrapped[WRAPPED_KEY_LEN];
    DataKey *next = data_key_new(world->master, subject, 4, wrapped);
    Stentor__V1__Sealed *sealed = seal_it(world, STR("alice"));
    Str plain;
    assert_false(open_it(world, next, sealed, &plain));
    sealed->key_generation = 4; // a lie
    assert_false(open_it(world, next, sealed, &plain));
    data_key_free(next);
}

static void a_tenants_key_needs_only_the_master_key(void **state)
{
    World *world = *state;
    DataKey *one = data_key_for_tenant(world->master, STR("acme"));
    DataKey *same = data_key_for_tenant(world->master, STR("acme"));
    DataKey *other = data_key_for_tenant(world->master, STR("other"));
    assert_int_equal(data_key_generation(one), 0);
    Stentor__V1__Sealed *sealed =
        seal(one, STR("acme"), STR("ntf_1"), "address", STR("x"), world->arena);
    Stentor__V1__Sealed *foreign =
        seal(other, STR("acme"), STR("ntf_1"), "address", STR("x"), world->arena);
    assert_memory_not_equal(sealed->key_subject.data, foreign->key_subject.data, 16);
    Str plain;
    assert_true(open_it(world, same, sealed, &plain));
    assert_false(open_it(world, other, sealed, &plain));
    memcpy(sealed->key_subject.data, foreign->key_subject.data, 16); // a lie
    assert_false(open_it(world, other, sealed, &plain));
    data_key_free(one);
    data_key_free(same);
    data_key_free(other);
}

static void a_master_key_file_is_two_lines_of_hex(void **state)
{
    World *world = *state;
    assert_int_equal(master_hash_key(world->master).len, 32);
    assert_memory_equal(master_hash_key(world->master).ptr, "\xff\x01\x02", 3);
    char generated[132];
    master_key_generate(generated);
    MasterKey *good = master_key_parse(str_from(generated), &world->err);
    assert_non_null(good);
    master_key_free(good);
    char windows[140];
    snprintf(windows, sizeof windows, "%.64s\r\n%.64s\r\n", key_text, key_text + 65);
    good = master_key_parse(str_from(windows), &world->err);
    assert_non_null(good);
    master_key_free(good);
    master_key_free(NULL);
}

static void another_master_key_file_is_refused(void **state)
{
    World *world = *state;
    char three[200];
    char one_bad[140];
    snprintf(three, sizeof three, "%s00", key_text);
    snprintf(one_bad, sizeof one_bad, "%s", key_text);
    one_bad[70] = 'g';
    const Str bad[] = {
        STR_EMPTY,
        STR("\n"),
        str_of(key_text, 64),
        str_of(key_text, 65),
        str_of(key_text, 128),
        str_of(key_text + 1, 128),
        str_from(three),
        str_from(one_bad)};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        error_clear(&world->err);
        assert_null(master_key_parse(bad[i], &world->err));
        assert_int_equal(world->err.kind, ERROR_CONFIG);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_world, end_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_sealed_opens_again),
        TEST(each_sealing_has_its_own_nonce),
        TEST(one_changed_bit_is_seen),
        TEST(a_field_cannot_be_moved),
        TEST(malformed_fields_are_refused),
        TEST(a_text_is_packed_where_that_makes_it_smaller),
        TEST(what_is_packed_says_so_under_the_seal),
        TEST(what_is_no_frame_is_refused),
        TEST(a_wrapped_key_opens_what_its_twin_sealed),
        TEST(a_wrapped_key_belongs_to_its_subject_generation_and_master),
        TEST(a_new_generation_does_not_open_the_old),
        TEST(a_tenants_key_needs_only_the_master_key),
        TEST(a_master_key_file_is_two_lines_of_hex),
        TEST(another_master_key_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
