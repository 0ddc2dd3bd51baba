// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "services/archiver/log/log_store.h"

static const char KEY[] = "log";

typedef struct Stage {
    char root[64];
    char path[80]; // of the object
    uv_loop_t loop;
    LogStore *store;
    FILE *spool;
    LogFile file;
    int stored, freed;
    Error err;
} Stage;

static int set_up(void **state)
{
    Stage *s = calloc(1, sizeof *s);
    Error err = {0};
    snprintf(s->root, sizeof s->root, "/tmp/log_store.XXXXXX");
    assert_non_null(mkdtemp(s->root));
    char url[80];
    snprintf(url, sizeof url, "file://%s", s->root);
    snprintf(s->path, sizeof s->path, "%s/%s", s->root, KEY);
    uv_loop_init(&s->loop);
    s->store = log_store_new(&s->loop, &(StorageOptions){.url = url}, &err);
    assert_non_null(s->store);
    s->spool = tmpfile();
    fputs("a segment", s->spool);
    fflush(s->spool);
    s->file = (LogFile){.fd = fileno(s->spool), .bytes = 9};
    memcpy(s->file.key, KEY, sizeof KEY);
    sha256(STR("a segment"), s->file.sha256);
    *state = s;
    return 0;
}

static void on_freed(void *ctx)
{
    ((Stage *)ctx)->freed++;
}

static int tear_down(void **state)
{
    Stage *s = *state;
    log_store_free(s->store, on_freed, s);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(s->freed, 1);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    fclose(s->spool);
    char path[96];
    (void)unlink(s->path);
    snprintf(path, sizeof path, "%s/.tmp/lock", s->root);
    (void)unlink(path);
    *strrchr(path, '/') = '\0';
    (void)rmdir(path);
    assert_int_equal(rmdir(s->root), 0);
    free(s);
    return 0;
}

static void on_stored(void *ctx, const Error *err)
{
    Stage *s = ctx;
    s->stored++;
    s->err = err == NULL ? (Error){0} : *err;
}

static void store(Stage *s)
{
    log_store_put(s->store, &s->file, on_stored, s);
    assert_true(log_store_busy(s->store));
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_false(log_store_busy(s->store));
}

static void expect_object(Stage *s, const char *text)
{
    char found[32] = "";
    FILE *object = fopen(s->path, "r");
    assert_non_null(object);
    assert_true(fread(found, 1, sizeof found - 1, object) > 0);
    fclose(object);
    assert_string_equal(found, text);
}

static void write_object(Stage *s, const char *text)
{
    FILE *object = fopen(s->path, "w");
    assert_non_null(object);
    fputs(text, object);
    fclose(object);
}

static void what_is_stored_was_read_back(void **state)
{
    Stage *s = *state;
    store(s);
    assert_int_equal(s->stored, 1);
    assert_string_equal(s->err.text, "");
    expect_object(s, "a segment");
}

static void stored_again_it_is_the_same_object(void **state)
{
    Stage *s = *state;
    struct stat first, second;
    store(s);
    assert_int_equal(stat(s->path, &first), 0);
    store(s);
    assert_string_equal(s->err.text, "");
    assert_int_equal(stat(s->path, &second), 0);
    assert_int_equal(first.st_ino, second.st_ino);
}

static void a_damaged_object_of_its_name_is_replaced(void **state)
{
    Stage *s = *state;
    write_object(s, "a segm");
    store(s);
    assert_string_equal(s->err.text, "");
    expect_object(s, "a segment");
    write_object(s, "A SEGMENT");
    store(s);
    assert_string_equal(s->err.text, "");
    expect_object(s, "a segment");
}

static void what_cannot_be_stored_says_so(void **state)
{
    Stage *s = *state;
    s->file.bytes = 10; // more than there are
    store(s);
    assert_int_equal(s->err.kind, ERROR_PERMANENT);
    assert_int_equal(access(s->path, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_stored_was_read_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stored_again_it_is_the_same_object, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_damaged_object_of_its_name_is_replaced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_stored_says_so, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
