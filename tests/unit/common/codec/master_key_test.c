// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/codec/key_register.h"
#include "common/codec/opt_out.h"
#include "common/codec/seal.h"

static const char BARE[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
                           "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n";
static const char SWAPPED[] = "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n"
                              "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";
static const uint8_t SUBJECT[16] = "0123456789abcde";

static MasterKey *parse(const char *text)
{
    Error err = {0};
    MasterKey *master = master_key_parse(str_from(text), &err);
    if (master == NULL) {
        fail_msg("%s", err.text);
    }
    return master;
}

// Frees `master`.
static MasterKey *change(MasterKey *master, MasterKeyChange what)
{
    char text[MASTER_KEY_FILE_SIZE];
    Error err = {0};
    if (!master_key_print(master, &what, text, &err)) {
        fail_msg("%s", err.text);
    }
    master_key_free(master);
    return parse(text);
}

static const char *id_at(const MasterKey *master, KeyKind kind, size_t index)
{
    static char ids[8][KEY_ID_SIZE];
    static size_t next;
    char *id = ids[next++ % 8];
    key_id_print(master_key_info(master, kind, index)->check, id);
    return id;
}

static void the_bare_file_and_the_printed_one_hold_the_same_keys(void **state)
{
    (void)state;
    MasterKey *bare = parse(BARE);
    MasterKey *printed = change(parse(BARE), (MasterKeyChange){0});
    assert_non_null(master_key_find(printed, master_key_info(bare, KEY_MASTER, 0)));
    assert_non_null(master_key_find(printed, master_key_info(bare, KEY_HASH, 0)));
    assert_true(str_eq(master_hash_key(bare), master_hash_key(printed)));
    // Frozen: ids stand in every wrapped key.
    assert_string_equal(id_at(bare, KEY_MASTER, 0), "f648657c");
    assert_string_equal(id_at(bare, KEY_HASH, 0), "4786b1db");
    master_key_free(bare);
    master_key_free(printed);
}

static void a_file_with_a_wrong_line_is_refused_and_the_line_named(void **state)
{
    (void)state;
    char good[MASTER_KEY_FILE_SIZE];
    MasterKey *master = parse(BARE);
    assert_true(master_key_print(master, &(MasterKeyChange){0}, good, NULL));
    master_key_free(master);
    char wrong_digit[MASTER_KEY_FILE_SIZE];
    memcpy(wrong_digit, good, sizeof good);
    char *digit = strstr(wrong_digit, "00010203");
    assert_non_null(digit);
    digit[5] = '3';
    char twice[2 * MASTER_KEY_FILE_SIZE];
    snprintf(twice, sizeof twice, "%s%s", good, good);
    char only_master[MASTER_KEY_FILE_SIZE];
    memcpy(only_master, good, sizeof good);
    *strstr(only_master, "hash ") = '#';
    const char *cases[][2] = {
        {wrong_digit, "line 2: the digits belong to the master key"},
        {twice, "line 5: the master key f648657c is given twice"},
        {only_master, "no line that begins with 'hash'"},
        {"master abc\n", "line 1: not 'master' or 'hash', an id and 64 hex digits"},
        {"", "no line that begins with 'master'"},
        {"epoch 00000000 00\n", "line 1: not 'master' or 'hash'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Error err = {0};
        assert_null(master_key_parse(str_from(cases[i][0]), &err));
        assert_int_equal(err.kind, ERROR_CONFIG);
        if (strstr(err.text, cases[i][1]) == NULL) {
            fail_msg("case %zu: %s", i, err.text);
        }
    }
}

static void keys_are_added_behind_put_first_and_removed(void **state)
{
    (void)state;
    MasterKey *master = change(parse(BARE), (MasterKeyChange){.add = KEY_MASTER});
    assert_int_equal(master_key_count(master, KEY_MASTER), 2);
    assert_int_equal(master_key_count(master, KEY_HASH), 1);
    assert_string_equal(id_at(master, KEY_MASTER, 0), "f648657c");
    const char *second = id_at(master, KEY_MASTER, 1);
    Error err = {0};
    char text[MASTER_KEY_FILE_SIZE];
    assert_false(master_key_print(master, &(MasterKeyChange){.without = "f648657c"}, text, &err));
    assert_non_null(strstr(err.text, "is the current master key"));
    assert_false(master_key_print(master, &(MasterKeyChange){.first = "00000000"}, text, &err));
    assert_non_null(strstr(err.text, "holds no key 00000000"));
    master = change(master, (MasterKeyChange){.first = second});
    assert_string_equal(id_at(master, KEY_MASTER, 0), second);
    master = change(master, (MasterKeyChange){.without = "f648657c"});
    assert_int_equal(master_key_count(master, KEY_MASTER), 1);
    assert_string_equal(id_at(master, KEY_MASTER, 0), second);
    master = change(master, (MasterKeyChange){.add = KEY_MASTER});
    master = change(master, (MasterKeyChange){.add = KEY_MASTER});
    master = change(master, (MasterKeyChange){.add = KEY_MASTER});
    assert_false(master_key_print(master, &(MasterKeyChange){.add = KEY_MASTER}, text, &err));
    assert_non_null(strstr(err.text, "holds 4 master keys already"));
    master_key_free(master);
}

// ---- the register ----

typedef struct FileCase {
    const char *text;
    const char *said; // NULL: it is taken
} FileCase;

static KeyRegister registered(const char *text)
{
    KeyRegister keys = {.count = 0};
    MasterKey *master = parse(text);
    Error err = {0};
    assert_true(key_register_learn(&keys, master, &err));
    master_key_free(master);
    return keys;
}

static void finding_05_another_installations_file_is_refused(void **state)
{
    (void)state;
    static const char FIRST_WRONG[] =
        "aa0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
        "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n";
    static const char SECOND_WRONG[] =
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
        "aa0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n";
    char both_wrong[132];
    master_key_generate(both_wrong);
    const FileCase cases[] = {
        {BARE, NULL},
        {both_wrong, "expected the master key f648657c, given "},
        {FIRST_WRONG, "expected the master key f648657c, given "},
        {SECOND_WRONG, "expected the hash key 4786b1db, given "},
        {SWAPPED, "expected the master key f648657c, given "},
    };
    KeyRegister keys = registered(BARE);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        MasterKey *master = parse(cases[i].text);
        Error err = {0};
        KeyRegister learned = keys;
        assert_int_equal(key_register_check(&keys, master, &err), cases[i].said == NULL);
        if (cases[i].said != NULL && strstr(err.text, cases[i].said) == NULL) {
            fail_msg("case %zu: %s", i, err.text);
        }
        assert_int_equal(key_register_learn(&learned, master, &err), cases[i].said == NULL);
        assert_int_equal(learned.count, 2);
        master_key_free(master);
    }
}

static void finding_05_without_a_registered_key_nothing_is_taken(void **state)
{
    (void)state;
    KeyRegister none = {.count = 0};
    MasterKey *master = parse(BARE);
    Error err = {0};
    assert_false(key_register_check(&none, master, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
    assert_non_null(strstr(err.text, "STENTOR_MASTER_KEY_FILE=FILE stentor migrate"));
    master_key_free(master);
}

static void a_key_is_taken_while_it_is_known_and_needed_until_it_is_retired(void **state)
{
    (void)state;
    KeyRegister keys = registered(BARE);
    Error err = {0};
    MasterKey *master = change(parse(BARE), (MasterKeyChange){.add = KEY_MASTER});
    assert_true(key_register_check(&keys, master, &err)); // behind: not used, so not asked for
    char second[KEY_ID_SIZE];
    snprintf(second, sizeof second, "%s", id_at(master, KEY_MASTER, 1));
    master = change(master, (MasterKeyChange){.first = second});
    assert_false(key_register_check(&keys, master, &err));
    assert_non_null(strstr(err.text, "is not registered, but f648657c is"));
    assert_true(key_register_learn(&keys, master, &err));
    assert_int_equal(keys.count, 3);
    assert_true(key_register_check(&keys, master, &err));
    master = change(master, (MasterKeyChange){.without = "f648657c"});
    assert_false(key_register_check(&keys, master, &err));
    assert_non_null(strstr(err.text, "lacks the master key f648657c, which is still in use"));
    for (size_t i = 0; i < keys.count; i++) {
        char id[KEY_ID_SIZE];
        key_id_print(keys.rows[i].info.check, id);
        keys.rows[i].retired = strcmp(id, "f648657c") == 0;
    }
    assert_true(key_register_check(&keys, master, &err));
    master_key_free(master);
    master = parse(BARE);
    assert_false(
        key_register_check(&keys, master, &err)); // it lacks the new one, and its own is retired
    assert_false(key_register_learn(&keys, master, &err));
    master_key_free(master);
}

static void a_register_survives_its_entry(void **state)
{
    (void)state;
    KeyRegister keys = registered(BARE);
    keys.rows[1].retired = true;
    Arena *arena = arena_new(0);
    Error err = {0};
    uint8_t bytes[1024];
    const ProtobufCMessage *message = key_register_message(&keys, arena);
    size_t len = protobuf_c_message_pack(message, bytes);
    KeyRegister back;
    assert_true(key_register_read(str_of(bytes, len), arena, &back, &err));
    assert_true(key_register_same(&keys, &back));
    back.rows[0].retired = true;
    assert_false(key_register_same(&keys, &back));
    bytes[3] = 9; // a kind that is none
    assert_false(key_register_read(str_of(bytes, len), arena, &back, &err));
    arena_free(arena);
}

// ---- rotation ----

typedef struct Rotated {
    Arena *arena;
    MasterKey *before;
    MasterKey *after; // a new master key and a new hash key in front of the old ones
} Rotated;

static int rotate(void **state)
{
    static Rotated r;
    r.arena = arena_new(0);
    r.before = parse(BARE);
    r.after = change(parse(BARE), (MasterKeyChange){.add = KEY_MASTER});
    r.after =
        change(r.after, (MasterKeyChange){.first = id_at(r.after, KEY_MASTER, 1), .add = KEY_HASH});
    r.after = change(r.after, (MasterKeyChange){.first = id_at(r.after, KEY_HASH, 1)});
    *state = &r;
    return 0;
}

static int end_rotation(void **state)
{
    Rotated *r = *state;
    arena_free(r->arena);
    master_key_free(r->before);
    master_key_free(r->after);
    return 0;
}

static void a_wrapped_key_names_who_wrapped_it_and_is_wrapped_again(void **state)
{
    Rotated *r = *state;
    uint8_t old[WRAPPED_KEY_LEN];
    uint8_t new[WRAPPED_KEY_LEN];
    Error err = {0};
    DataKey *key = data_key_new(r->before, SUBJECT, 3, old);
    assert_int_equal(old[0], 1);
    assert_int_equal(old[1], KEY_MASTER);
    assert_memory_equal(old + 2, master_key_info(r->before, KEY_MASTER, 0)->check, KEY_ID_LEN);
    Stentor__V1__Sealed *sealed =
        seal(key, STR("acme"), STR("ntf_1"), "address", STR("alice"), r->arena);
    Str wrapped = str_of(old, sizeof old);
    assert_true(data_key_rewrap(r->after, SUBJECT, 3, wrapped, new, &err));
    assert_memory_equal(new + 2, master_key_info(r->after, KEY_MASTER, 0)->check, KEY_ID_LEN);
    DataKey *again = data_key_unwrap(r->after, SUBJECT, 3, str_of(new, sizeof new), &err);
    assert_non_null(again);
    Str plain;
    assert_true(
        unseal(again, STR("acme"), STR("ntf_1"), "address", sealed, r->arena, &plain, &err));
    assert_true(str_eq(plain, STR("alice")));
    assert_null(data_key_unwrap(r->before, SUBJECT, 3, str_of(new, sizeof new), &err));
    assert_non_null(strstr(err.text, "which the master key file does not hold"));
    data_key_free(key);
    data_key_free(again);
}

static void kind_and_id_of_a_wrapped_key_are_bound(void **state)
{
    Rotated *r = *state;
    uint8_t wrapped[WRAPPED_KEY_LEN];
    Error err = {0};
    data_key_free(data_key_new(r->after, SUBJECT, 3, wrapped));
    for (size_t i = 0; i < WRAPPED_KEY_LEN; i++) {
        wrapped[i] ^= 1;
        assert_null(data_key_unwrap(r->after, SUBJECT, 3, str_of(wrapped, sizeof wrapped), &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
        wrapped[i] ^= 1;
    }
    memcpy(wrapped + 2, master_key_info(r->after, KEY_MASTER, 1)->check, KEY_ID_LEN); // a lie
    assert_null(data_key_unwrap(r->after, SUBJECT, 3, str_of(wrapped, sizeof wrapped), &err));
    wrapped[1] = 3; // a kind that a later version may know
    assert_null(data_key_unwrap(r->after, SUBJECT, 3, str_of(wrapped, sizeof wrapped), &err));
    assert_non_null(strstr(err.text, "by a key of kind 3"));
}

// Made by d9095a0: 60 bytes, no head.
static const uint8_t BARE_WRAPPED[WRAPPED_BARE_LEN] = {
    0xd9, 0xd3, 0xfb, 0xc4, 0x97, 0xe7, 0x5e, 0x9f, 0xa5, 0x09, 0x96, 0xf7, 0x1d, 0xa0, 0xeb,
    0x2c, 0x1c, 0xc3, 0x4c, 0x04, 0xfa, 0x7a, 0xce, 0x5b, 0x71, 0x7c, 0x1b, 0x12, 0x90, 0xe7,
    0xa9, 0xfa, 0x27, 0xd1, 0xc8, 0x2c, 0xca, 0x84, 0x2c, 0x5a, 0x1d, 0x89, 0x35, 0xc1, 0xc3,
    0xc4, 0x8c, 0x2c, 0x97, 0x13, 0x90, 0x5e, 0x3d, 0xab, 0x94, 0xe1, 0xca, 0x40, 0x1d, 0x5f};

static void the_first_form_opens_by_any_key_of_the_file(void **state)
{
    Rotated *r = *state;
    Error err = {0};
    Str wrapped = str_of(BARE_WRAPPED, sizeof BARE_WRAPPED);
    DataKey *key = data_key_unwrap(r->after, SUBJECT, 3, wrapped, &err);
    assert_non_null(key);
    data_key_free(key);
    uint8_t new[WRAPPED_KEY_LEN];
    assert_true(data_key_rewrap(r->after, SUBJECT, 3, wrapped, new, &err));
    assert_null(data_key_unwrap(r->after, SUBJECT, 4, wrapped, &err));
}

static void what_a_tenants_key_sealed_before_opens_after(void **state)
{
    Rotated *r = *state;
    Error err = {0};
    DataKey *before = data_key_for_tenant(r->before, STR("acme"));
    DataKey *after = data_key_for_tenant(r->after, STR("acme"));
    Str plain;
    Stentor__V1__Sealed *old = seal(before, STR("acme"), STR("cbk_1"), "body", STR("x"), r->arena);
    Stentor__V1__Sealed *new = seal(after, STR("acme"), STR("cbk_1"), "body", STR("y"), r->arena);
    assert_true(unseal(after, STR("acme"), STR("cbk_1"), "body", old, r->arena, &plain, &err));
    assert_true(str_eq(plain, STR("x")));
    assert_true(unseal(after, STR("acme"), STR("cbk_1"), "body", new, r->arena, &plain, &err));
    assert_true(str_eq(plain, STR("y")));
    assert_false(unseal(before, STR("acme"), STR("cbk_1"), "body", new, r->arena, &plain, &err));
    data_key_free(before);
    data_key_free(after);
}

static void an_opt_out_link_of_before_is_honoured_after(void **state)
{
    Rotated *r = *state;
    Error err = {0};
    OptOutKey before;
    OptOutKey after;
    opt_out_key(r->before, &before);
    opt_out_key(r->after, &after);
    OptOut what = {
        .tenant = STR("acme"),
        .notification_id = STR("ntf_01M2V3W4X5Y6Z7A8B9CADBECFD"),
        .recipient_id = STR_EMPTY,
        .channel = CHANNEL_EMAIL,
        .category = CATEGORY_MARKETING,
        .issued_at_us = INT64_C(1790000000000000),
    };
    char old[OPT_OUT_TOKEN_SIZE];
    char new[OPT_OUT_TOKEN_SIZE];
    OptOut back;
    assert_true(opt_out_sign(&before, &what, old, &err));
    assert_true(opt_out_sign(&after, &what, new, &err));
    assert_string_not_equal(old, new);
    assert_true(opt_out_verify(&after, str_from(old), what.issued_at_us, r->arena, &back, &err));
    assert_true(opt_out_verify(&after, str_from(new), what.issued_at_us, r->arena, &back, &err));
    assert_false(opt_out_verify(&before, str_from(new), what.issued_at_us, r->arena, &back, &err));
}

#define ROTATED(name) cmocka_unit_test_setup_teardown(name, rotate, end_rotation)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bare_file_and_the_printed_one_hold_the_same_keys),
        cmocka_unit_test(a_file_with_a_wrong_line_is_refused_and_the_line_named),
        cmocka_unit_test(keys_are_added_behind_put_first_and_removed),
        cmocka_unit_test(finding_05_another_installations_file_is_refused),
        cmocka_unit_test(finding_05_without_a_registered_key_nothing_is_taken),
        cmocka_unit_test(a_key_is_taken_while_it_is_known_and_needed_until_it_is_retired),
        cmocka_unit_test(a_register_survives_its_entry),
        ROTATED(a_wrapped_key_names_who_wrapped_it_and_is_wrapped_again),
        ROTATED(kind_and_id_of_a_wrapped_key_are_bound),
        ROTATED(the_first_form_opens_by_any_key_of_the_file),
        ROTATED(what_a_tenants_key_sealed_before_opens_after),
        ROTATED(an_opt_out_link_of_before_is_honoured_after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
