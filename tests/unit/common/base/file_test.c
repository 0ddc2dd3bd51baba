// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_read_as_it_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_file_beyond_its_maximum_is_refused_with_its_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_is_no_file_is_refused_with_its_name, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
