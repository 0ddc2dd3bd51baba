// SPDX-License-Identifier: Apache-2.0
// Against a real folder.
#define _XOPEN_SOURCE 700 // nftw
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/arena.h"
#include "services/gateway/assets/asset_objects.h"

#define PICTURE "\x89PNG\r\n\x1a\n a picture"

typedef struct Heard {
    int count;
    AssetOutcome outcome;
    Error err;
    char bytes[64];
    size_t len;
} Heard;

typedef struct Set {
    uv_loop_t loop;
    char folder[64];
    AssetObjects *objects;
    bool closed;
} Set;

static int make(void **state)
{
    Set *set = xcalloc(1, sizeof *set);
    char url[96];
    Error err = {0};
    assert_int_equal(uv_loop_init(&set->loop), 0);
    (void)snprintf(set->folder, sizeof set->folder, "/tmp/stentor-assets-XXXXXX");
    assert_non_null(mkdtemp(set->folder));
    (void)snprintf(url, sizeof url, "file://%s/objects", set->folder);
    set->objects = asset_objects_new(&set->loop, &(StorageOptions){.url = url}, &err);
    assert_non_null(set->objects);
    *state = set;
    return 0;
}

static void on_closed(void *ctx)
{
    ((Set *)ctx)->closed = true;
}

static int remove_one(const char *path, const struct stat *what, int kind, struct FTW *walk)
{
    (void)what, (void)kind, (void)walk;
    return remove(path);
}

static void remove_all(const char *folder)
{
    assert_int_equal(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static int drop(void **state)
{
    Set *set = *state;
    asset_objects_close(set->objects, on_closed, set);
    (void)uv_run(&set->loop, UV_RUN_DEFAULT);
    assert_true(set->closed);
    asset_objects_free(set->objects);
    assert_int_equal(uv_loop_close(&set->loop), 0);
    remove_all(set->folder);
    free(set);
    return 0;
}

static void on_stored(void *ctx, const Error *err)
{
    Heard *heard = ctx;
    heard->count++;
    heard->err = err != NULL ? *err : (Error){0};
}

static void on_read(void *ctx, AssetOutcome outcome, AssetBlob *blob, const Error *err)
{
    Heard *heard = ctx;
    heard->count++;
    heard->outcome = outcome;
    heard->err = err != NULL ? *err : (Error){0};
    heard->len = blob == NULL ? 0 : blob->bytes.len;
    if (heard->len > 0) {
        memcpy(heard->bytes, blob->bytes.ptr, heard->len);
    }
}

static void name_of(Str bytes, char hex[ASSET_HEX_LEN + 1])
{
    uint8_t hash[SHA256_LEN];
    sha256(bytes, hash);
    hex_encode(hash, sizeof hash, hex);
}

static Heard put(Set *set, Str bytes)
{
    Heard heard = {0};
    char hex[ASSET_HEX_LEN + 1];
    AssetStoring storing = {
        .objects = set->objects, .bytes = bytes, .on_stored = on_stored, .ctx = &heard};
    sha256(bytes, storing.sha256);
    name_of(bytes, hex);
    asset_object_key(STR("acme"), str_from(hex), storing.key);
    asset_objects_put(&storing);
    (void)uv_run(&set->loop, UV_RUN_DEFAULT);
    assert_int_equal(heard.count, 1);
    return heard;
}

static AssetReading reading_of(const char *hex, AssetType type, Heard *heard)
{
    return (AssetReading){
        .place = {.tenant = STR("acme"), .hex = str_from(hex), .type = type},
        .on_read = on_read,
        .ctx = heard,
    };
}

static Heard read_one(Set *set, const char *hex, AssetType type)
{
    Heard heard = {0};
    AssetReading reading = reading_of(hex, type, &heard);
    asset_objects_read(set->objects, &reading);
    (void)uv_run(&set->loop, UV_RUN_DEFAULT);
    assert_int_equal(heard.count, 1);
    return heard;
}

// Other bytes in the object's place, as a disk that lies.
static void damage(const Set *set, const char *hex, const char *with)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/objects/template-assets/acme/%s", set->folder, hex);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(with, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void what_was_put_is_shown_and_a_repeat_is_harmless(void **state)
{
    Set *set = *state;
    char hex[ASSET_HEX_LEN + 1];
    name_of(STR(PICTURE), hex);
    assert_int_equal(put(set, STR(PICTURE)).err.kind, ERROR_NONE);
    assert_int_equal(put(set, STR(PICTURE)).err.kind, ERROR_NONE);
    Heard heard = read_one(set, hex, ASSET_PNG);
    assert_int_equal(heard.outcome, ASSET_SHOWN);
    assert_true(str_eq(str_of(heard.bytes, heard.len), STR(PICTURE)));
}

static void another_extension_or_name_is_absent(void **state)
{
    Set *set = *state;
    char hex[ASSET_HEX_LEN + 1];
    char other[ASSET_HEX_LEN + 1];
    name_of(STR(PICTURE), hex);
    name_of(STR("another"), other);
    (void)put(set, STR(PICTURE));
    assert_int_equal(read_one(set, hex, ASSET_GIF).outcome, ASSET_ABSENT); // read
    assert_int_equal(read_one(set, hex, ASSET_PNG).outcome, ASSET_SHOWN);
    assert_int_equal(read_one(set, hex, ASSET_GIF).outcome, ASSET_ABSENT); // from memory
    assert_int_equal(read_one(set, other, ASSET_PNG).outcome, ASSET_ABSENT);
}

static void a_damaged_object_is_not_shown_and_a_put_mends_it(void **state)
{
    Set *set = *state;
    char hex[ASSET_HEX_LEN + 1];
    name_of(STR(PICTURE), hex);
    (void)put(set, STR(PICTURE));
    damage(set, hex, "\x89PNG\r\n\x1a\n another");
    Heard heard = read_one(set, hex, ASSET_PNG);
    assert_int_equal(heard.outcome, ASSET_DAMAGED);
    assert_int_equal(heard.len, 0);
    assert_non_null(strstr(heard.err.text, hex));
    assert_int_equal(put(set, STR(PICTURE)).err.kind, ERROR_NONE);
    assert_int_equal(read_one(set, hex, ASSET_PNG).outcome, ASSET_SHOWN);
}

static void an_object_that_is_too_long_is_damaged(void **state)
{
    Set *set = *state;
    char hex[ASSET_HEX_LEN + 1];
    char path[256];
    name_of(STR(PICTURE), hex);
    (void)put(set, STR(PICTURE));
    (void)snprintf(path, sizeof path, "%s/objects/template-assets/acme/%s", set->folder, hex);
    assert_int_equal(truncate(path, 3 * ASSET_BYTES_MAX), 0);
    assert_int_equal(read_one(set, hex, ASSET_PNG).outcome, ASSET_DAMAGED);
}

static void readers_of_one_object_wait_for_one_read(void **state)
{
    Set *set = *state;
    enum { READERS = 100 };
    Heard heard[READERS] = {{0}};
    AssetReading readings[READERS];
    char hex[ASSET_HEX_LEN + 1];
    name_of(STR(PICTURE), hex);
    (void)put(set, STR(PICTURE));
    for (size_t i = 0; i < READERS; i++) {
        readings[i] = reading_of(hex, ASSET_PNG, &heard[i]);
        asset_objects_read(set->objects, &readings[i]);
    }
    (void)uv_run(&set->loop, UV_RUN_DEFAULT);
    for (size_t i = 0; i < READERS; i++) { // more than may be read at once, or in this second
        assert_int_equal(heard[i].count, 1);
        assert_int_equal(heard[i].outcome, ASSET_SHOWN);
    }
}

static void names_that_were_made_up_leave_room_for_real_ones(void **state)
{
    Set *set = *state;
    char hex[ASSET_HEX_LEN + 1];
    char real[ASSET_HEX_LEN + 1];
    int busy = 0;
    name_of(STR(PICTURE), real);
    (void)put(set, STR(PICTURE));
    uv_update_time(&set->loop);
    while (uv_now(&set->loop) % 1000 > 500) { // all within one second
        uv_update_time(&set->loop);
    }
    for (int i = 0; i < 60; i++) { // the loop's clock stands: none of them runs it
        Heard heard = {0};
        (void)snprintf(hex, sizeof hex, "%064d", i % 8);
        AssetReading reading = reading_of(hex, ASSET_PNG, &heard);
        asset_objects_read(set->objects, &reading);
        busy += heard.count;
        (void)uv_run(&set->loop, UV_RUN_DEFAULT);
        assert_int_equal(heard.count, 1);
    }
    assert_true(busy > 0);
    Heard heard = {0};
    AssetReading reading = reading_of(real, ASSET_PNG, &heard);
    reading.named = true;
    asset_objects_read(set->objects, &reading);
    (void)uv_run(&set->loop, UV_RUN_DEFAULT);
    assert_int_equal(heard.outcome, ASSET_SHOWN);
}

static void at_most_eight_objects_are_read_at_once(void **state)
{
    Set *set = *state;
    enum { READERS = 12 };
    Heard heard[READERS] = {{0}};
    AssetReading readings[READERS];
    char hex[READERS][ASSET_HEX_LEN + 1];
    int busy = 0;
    for (int i = 0; i < READERS; i++) {
        (void)snprintf(hex[i], sizeof hex[i], "%064d", i);
        readings[i] = reading_of(hex[i], ASSET_PNG, &heard[i]);
        asset_objects_read(set->objects, &readings[i]);
        busy += heard[i].outcome == ASSET_BUSY;
    }
    assert_int_equal(busy, READERS - 8);
    (void)uv_run(&set->loop, UV_RUN_DEFAULT);
    for (int i = 0; i < READERS; i++) {
        assert_int_equal(heard[i].count, 1);
    }
}

static void without_storage_nothing_is_shown(void **state)
{
    (void)state;
    uv_loop_t loop;
    Error err = {0};
    Heard heard = {0};
    Set set = {.closed = false};
    char hex[ASSET_HEX_LEN + 1];
    name_of(STR(PICTURE), hex);
    assert_int_equal(uv_loop_init(&loop), 0);
    AssetObjects *objects = asset_objects_new(&loop, &(StorageOptions){.url = ""}, &err);
    assert_false(asset_objects_ready(objects));
    AssetReading reading = reading_of(hex, ASSET_PNG, &heard);
    asset_objects_read(objects, &reading);
    assert_int_equal(heard.outcome, ASSET_BUSY);
    asset_objects_close(objects, on_closed, &set);
    assert_true(set.closed);
    asset_objects_free(objects);
    assert_null(asset_objects_new(&loop, &(StorageOptions){.url = "ftp://x"}, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_put_is_shown_and_a_repeat_is_harmless, make, drop),
        cmocka_unit_test_setup_teardown(another_extension_or_name_is_absent, make, drop),
        cmocka_unit_test_setup_teardown(
            a_damaged_object_is_not_shown_and_a_put_mends_it, make, drop),
        cmocka_unit_test_setup_teardown(an_object_that_is_too_long_is_damaged, make, drop),
        cmocka_unit_test_setup_teardown(readers_of_one_object_wait_for_one_read, make, drop),
        cmocka_unit_test_setup_teardown(
            names_that_were_made_up_leave_room_for_real_ones, make, drop),
        cmocka_unit_test_setup_teardown(at_most_eight_objects_are_read_at_once, make, drop),
        cmocka_unit_test(without_storage_nothing_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
