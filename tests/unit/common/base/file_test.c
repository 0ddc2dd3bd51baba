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

#include "common/base/file.h"

typedef struct Scene {
    char path[64];
    Arena *arena;
} Scene;

static int set_up(void **state)
{
    Scene *s = calloc(1, sizeof *s);
    (void)snprintf(s->path, sizeof s->path, "/tmp/stentor-file-XXXXXX");
    s->arena = arena_new(0);
    int fd = mkstemp(s->path);
    bool wrote = fd >= 0 && write(fd, "a\0b\n", 4) == 4;
    (void)close(fd);
    *state = s;
    return wrote ? 0 : -1;
}

static int tear_down(void **state)
{
    Scene *s = *state;
    (void)unlink(s->path);
    arena_free(s->arena);
    free(s);
    return 0;
}

static void a_file_is_read_as_it_is(void **state)
{
    const Scene *s = *state;
    Str text = STR_EMPTY;
    Error err = {0};
    assert_true(file_read(s->path, 4, s->arena, &text, &err));
    assert_int_equal(text.len, 4);
    assert_memory_equal(text.ptr, "a\0b\n", 4);
}

static void a_file_is_appended_within_the_maximum_of_its_buffer(void **state)
{
    const Scene *s = *state;
    Error err = {0};
    Buf out;
    buf_init(&out, 6);
    assert_true(buf_cstr(&out, "xy"));
    assert_true(file_append(s->path, &out, &err));
    assert_int_equal(out.len, 6);
    assert_memory_equal(out.ptr, "xya\0b\n", 6);
    assert_false(file_append(s->path, &out, &err)); // full, as it is
    assert_int_equal(err.kind, ERROR_CONFIG);
    assert_non_null(strstr(err.text, s->path));
    assert_int_equal(out.len, 6);
    buf_clear(&out);
    assert_false(file_append("/nowhere/at/all", &out, &err));
    assert_non_null(strstr(err.text, "cannot open '/nowhere/at/all'"));
    assert_int_equal(out.len, 0);
    buf_done(&out);
}

static void a_file_beyond_its_maximum_is_refused_with_its_name(void **state)
{
    const Scene *s = *state;
    Str text = STR("before");
    Error err = {0};
    assert_false(file_read(s->path, 3, s->arena, &text, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(err.text, s->path));
    assert_true(str_eq(text, STR("before")));
}

static void what_is_no_file_is_refused_with_its_name(void **state)
{
    const Scene *s = *state;
    Str text;
    Error err = {0};
    assert_false(file_read("/nowhere/at/all", 3, s->arena, &text, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
    assert_non_null(strstr(err.text, "/nowhere/at/all"));
    assert_false(file_read("/", 3, s->arena, &text, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
}

static FilePut put(const Scene *s, Str text, mode_t mode, bool replaces)
{
    FilePut done = FILE_PRESENT;
    Error err = {0};
    assert_true(file_put(s->path, text, &(FileRights){mode, (gid_t)-1}, replaces, &done, &err));
    return done;
}

static void check_file(const Scene *s, Str wanted, mode_t mode)
{
    Str text = STR_EMPTY;
    Error err = {0};
    struct stat there;
    assert_true(file_read(s->path, 64, s->arena, &text, &err));
    assert_true(str_eq(text, wanted));
    assert_int_equal(stat(s->path, &there), 0);
    assert_int_equal(there.st_mode & 07777, mode);
    assert_int_equal(there.st_nlink, 1); // nothing is left beside it
}

static void what_is_there_stays_unless_it_is_to_be_replaced(void **state)
{
    const Scene *s = *state;
    assert_int_equal(put(s, STR("new"), 0640, false), FILE_PRESENT);
    check_file(s, str_of("a\0b\n", 4), 0640);
    assert_int_equal(put(s, STR("new"), 0600, true), FILE_WRITTEN);
    check_file(s, STR("new"), 0600);
    assert_int_equal(put(s, STR("new"), 0600, true), FILE_PRESENT);
    assert_int_equal(unlink(s->path), 0);
    assert_int_equal(put(s, STR("made"), 0600, false), FILE_WRITTEN);
    check_file(s, STR("made"), 0600);
}

static void a_long_text_that_is_there_is_not_written_again(void **state)
{
    enum { LONG = 600 * 1024 };
    const Scene *s = *state;
    char *bytes = arena_alloc(s->arena, LONG);
    memset(bytes, 'x', LONG);
    assert_int_equal(put(s, str_of(bytes, LONG), 0600, true), FILE_WRITTEN);
    assert_int_equal(put(s, str_of(bytes, LONG), 0600, true), FILE_PRESENT);
    assert_int_equal(put(s, str_of(bytes, LONG - 1), 0600, true), FILE_WRITTEN); // it begins so
    assert_int_equal(put(s, STR_EMPTY, 0600, true), FILE_WRITTEN);
    assert_int_equal(put(s, STR_EMPTY, 0600, true), FILE_PRESENT);
}

static void a_file_that_cannot_be_put_is_named(void **state)
{
    const Scene *s = *state;
    FilePut done = FILE_PRESENT;
    Error err = {0};
    char path[128];
    (void)snprintf(path, sizeof path, "%s/below", s->path);
    assert_false(file_put(path, STR("x"), &(FileRights){0600, (gid_t)-1}, true, &done, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
    assert_non_null(strstr(err.text, path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_read_as_it_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_file_is_appended_within_the_maximum_of_its_buffer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_file_beyond_its_maximum_is_refused_with_its_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_is_no_file_is_refused_with_its_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_is_there_stays_unless_it_is_to_be_replaced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_long_text_that_is_there_is_not_written_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_cannot_be_put_is_named, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
