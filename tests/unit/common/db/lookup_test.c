// SPDX-License-Identifier: Apache-2.0
#include "common/db/lookup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

typedef struct Answer {
    int calls;
    bool known;
    char host[256], hostaddr[256], port[256];
    Error err;
} Answer;

static void on_done(void *ctx, const DbHosts *hosts, const Error *err)
{
    Answer *answer = ctx;
    answer->calls++;
    answer->known = hosts != NULL;
    if (hosts != NULL) {
        snprintf(answer->host, sizeof answer->host, "%s", hosts->host);
        snprintf(answer->hostaddr, sizeof answer->hostaddr, "%s", hosts->hostaddr);
        snprintf(answer->port, sizeof answer->port, "%s", hosts->port);
    } else {
        answer->err = *err;
    }
}

// Looks up to the end; false: there was nothing to look up.
static bool look_up(const char *url, Answer *ret)
{
    uv_loop_t loop;
    *ret = (Answer){.calls = 0};
    uv_loop_init(&loop);
    DbLookup *lookup = db_lookup_start(&loop, url, on_done, ret);
    assert_int_equal(ret->calls, 0); // never from inside
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(ret->calls, lookup != NULL ? 1 : 0);
    return lookup != NULL;
}

static int count_of(const char *list)
{
    int count = 1;
    for (; *list != '\0'; list++) {
        count += *list == ',';
    }
    return count;
}

static void what_is_no_name_is_left_to_libpq(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "dbname=stentor",
        "host=127.0.0.1 port=5432",
        "host=::1",
        "postgresql://u:p@[::1]:5432/stentor",
        "host=/run/postgresql",
        "host=@abstract,127.0.0.1",
        "host=localhost hostaddr=127.0.0.1",
        "host=localhost,127.0.0.1,::1 port=1,2", // libpq says what is wrong with it
        "host=localhost port=1,2",
        "not a = url at all",
        "service=none",
    };
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        Answer answer;
        assert_false(look_up(urls[i], &answer));
    }
}

static void a_name_becomes_its_addresses(void **state)
{
    (void)state;
    Answer answer;
    assert_true(look_up("postgresql://u:secret@localhost:5433/stentor", &answer));
    assert_true(answer.known);
    assert_non_null(strstr(answer.hostaddr, "127.0.0.1"));
    assert_int_equal(strncmp(answer.host, "localhost", 9), 0);
    // As many of each, or libpq refuses them.
    assert_int_equal(count_of(answer.host), count_of(answer.hostaddr));
    assert_int_equal(count_of(answer.port), count_of(answer.hostaddr));
    assert_int_equal(strncmp(answer.port, "5433", 4), 0);
}

static void each_host_keeps_its_port_and_its_place(void **state)
{
    (void)state;
    Answer answer;
    assert_true(look_up("host=127.0.0.9,/run/pg,localhost,::1 port=1,2,3,4", &answer));
    assert_int_equal(strncmp(answer.host, "127.0.0.9,/run/pg,localhost", 27), 0);
    assert_int_equal(strncmp(answer.hostaddr, "127.0.0.9,,", 11), 0);
    assert_int_equal(strncmp(answer.port, "1,2,3", 5), 0);
    assert_string_equal(answer.hostaddr + strlen(answer.hostaddr) - 4, ",::1");
    assert_string_equal(answer.port + strlen(answer.port) - 2, ",4");
    assert_int_equal(count_of(answer.host), count_of(answer.hostaddr));
    assert_int_equal(count_of(answer.port), count_of(answer.hostaddr));
}

static void a_name_without_a_port_takes_the_default(void **state)
{
    (void)state;
    Answer answer;
    assert_true(look_up("host=localhost", &answer));
    assert_int_equal(strspn(answer.port, ","), strlen(answer.port));
}

// The resolver refuses it by itself: nothing is asked outside of this machine.
#define UNKNOWN "a.name.that..cannot.be"

static void an_unknown_name_is_named(void **state)
{
    (void)state;
    Answer answer;
    assert_true(look_up("host=" UNKNOWN " password=secret", &answer));
    assert_false(answer.known);
    assert_int_equal(answer.err.kind, ERROR_TRANSIENT);
    assert_non_null(strstr(answer.err.text, UNKNOWN));
    assert_null(strstr(answer.err.text, "secret"));
}

static void an_unknown_name_is_left_out_beside_a_known_one(void **state)
{
    (void)state;
    Answer answer;
    assert_true(look_up("host=" UNKNOWN ",localhost port=1,2", &answer));
    assert_true(answer.known);
    assert_null(strstr(answer.port, "1"));
    assert_int_equal(count_of(answer.host), count_of(answer.hostaddr));
}

static void one_that_was_dropped_says_nothing(void **state)
{
    (void)state;
    uv_loop_t loop;
    Answer answer = {.calls = 0};
    uv_loop_init(&loop);
    DbLookup *lookup = db_lookup_start(&loop, "host=localhost,localhost", on_done, &answer);
    assert_non_null(lookup);
    db_lookup_drop(lookup);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(answer.calls, 0);
    db_lookup_drop(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_name_is_left_to_libpq),
        cmocka_unit_test(a_name_becomes_its_addresses),
        cmocka_unit_test(each_host_keeps_its_port_and_its_place),
        cmocka_unit_test(a_name_without_a_port_takes_the_default),
        cmocka_unit_test(an_unknown_name_is_named),
        cmocka_unit_test(an_unknown_name_is_left_out_beside_a_known_one),
        cmocka_unit_test(one_that_was_dropped_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
