// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "services/gateway/assets/asset_blobs.h"

enum { BYTES = 1000, MAX = 4500 }; // four of that size do not fit

static void keep(AssetBlobs *blobs, const char *key)
{
    char bytes[BYTES] = {0};
    assert_true(asset_blobs_room(blobs, BYTES));
    asset_blob_release(asset_blobs_keep(blobs, str_from(key), ASSET_PNG, str_of(bytes, BYTES)));
}

static bool has(AssetBlobs *blobs, const char *key)
{
    AssetBlob *blob = asset_blobs_find(blobs, str_from(key));
    if (blob != NULL) {
        asset_blob_release(blob);
    }
    return blob != NULL;
}

static void the_one_that_was_used_least_lately_goes(void **state)
{
    (void)state;
    AssetBlobs *blobs = asset_blobs_new(MAX);
    keep(blobs, "a");
    keep(blobs, "b");
    assert_true(has(blobs, "a"));
    assert_true(asset_blobs_room(blobs, MAX - asset_blobs_bytes(blobs))); // one has to go
    assert_true(has(blobs, "a"));
    assert_false(has(blobs, "b"));
    asset_blobs_free(blobs);
}

static void what_is_being_sent_stays_and_counts(void **state)
{
    (void)state;
    AssetBlobs *blobs = asset_blobs_new(MAX);
    keep(blobs, "a");
    AssetBlob *read = asset_blobs_find(blobs, STR("a"));
    assert_false(asset_blobs_room(blobs, MAX - BYTES));
    assert_true(has(blobs, "a"));
    assert_int_equal(read->bytes.len, BYTES);
    asset_blob_release(read);
    assert_true(asset_blobs_room(blobs, MAX - BYTES));
    assert_false(has(blobs, "a"));
    assert_int_equal(asset_blobs_bytes(blobs), 0);
    assert_false(asset_blobs_room(blobs, MAX));
    asset_blobs_free(blobs);
}

static void many_small_ones_have_a_maximum_too(void **state)
{
    (void)state;
    AssetBlobs *blobs = asset_blobs_new(MAX);
    size_t held = 0;
    for (char key[2] = "a"; key[0] <= 'z'; key[0]++) {
        assert_true(asset_blobs_room(blobs, 1));
        asset_blob_release(asset_blobs_keep(blobs, str_from(key), ASSET_GIF, STR("x")));
    }
    for (char key[2] = "a"; key[0] <= 'z'; key[0]++) {
        held += has(blobs, key);
    }
    assert_true(held >= 1 && held < 26);
    assert_true(has(blobs, "z"));
    asset_blobs_free(blobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_one_that_was_used_least_lately_goes),
        cmocka_unit_test(what_is_being_sent_stays_and_counts),
        cmocka_unit_test(many_small_ones_have_a_maximum_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
