// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/storage/spool.h"

static SpoolPlace here(void)
{
    const char *folder = getenv("TMPDIR");
    return (SpoolPlace){.folder = folder != NULL ? folder : "/tmp", .option = "STENTOR_SOME_DIR"};
}

static void what_was_appended_is_read_back_and_hashed(void **state)
{
    (void)state;
    Error err = {0};
    Spool spool;
    SpoolPlace place = here();
    uint8_t hash[SHA256_LEN], expected[SHA256_LEN];
    char back[4];
    assert_true(spool_open(&spool, &place, &err));
    assert_true(spool_append(&spool, "abc", 3));
    assert_true(spool_append(&spool, "def", 3));
    assert_true(spool_finish(&spool, hash, &err));
    sha256(STR("abcdef"), expected);
    assert_memory_equal(hash, expected, SHA256_LEN);
    assert_int_equal(spool.bytes, 6);
    assert_true(spool_read(&spool, 2, back, 4, &err));
    assert_memory_equal(back, "cdef", 4);
    assert_false(spool_read(&spool, 4, back, 4, &err));
    assert_non_null(strstr(err.text, "ends early"));
    spool_close(&spool);
    spool_close(&spool);
}

static void a_folder_that_is_not_there_names_the_option(void **state)
{
    (void)state;
    Error err = {0};
    Spool spool;
    SpoolPlace place = {.folder = "/nowhere/at/all", .option = "STENTOR_SOME_DIR"};
    assert_false(spool_open(&spool, &place, &err));
    assert_int_equal(err.kind, ERROR_TRANSIENT);
    assert_non_null(strstr(err.text, "/nowhere/at/all"));
    assert_non_null(strstr(err.text, "STENTOR_SOME_DIR"));
    spool_close(&spool);
}

static void a_full_disk_names_the_option_once_for_all_bytes(void **state)
{
    (void)state;
    Error err = {0};
    Spool spool;
    SpoolPlace place = here();
    uint8_t hash[SHA256_LEN];
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {.rlim_cur = 4, .rlim_max = before.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_true(spool_open(&spool, &place, &err));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    bool wrote = spool_append(&spool, "abcdef", 6);
    bool again = spool_append(&spool, "g", 1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_false(wrote);
    assert_false(again);
    assert_false(spool_finish(&spool, hash, &err));
    assert_int_equal(err.kind, ERROR_TRANSIENT);
    assert_non_null(strstr(err.text, "File too large"));
    assert_non_null(strstr(err.text, "STENTOR_SOME_DIR"));
    spool_close(&spool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_appended_is_read_back_and_hashed),
        cmocka_unit_test(a_folder_that_is_not_there_names_the_option),
        cmocka_unit_test(a_full_disk_names_the_option_once_for_all_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
