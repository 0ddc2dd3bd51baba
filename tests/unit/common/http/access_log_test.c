// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/http/access_log.h"

static char lines[65536];

// What `count` answers of this status leave in the log.
static size_t written(int64_t every, int status, int count, const HttpRequest *request)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    HttpServer server = {.limits.access_every = every};
    log_setup("test", LOG_INFO, true);
    log_output_set(fileno(file));
    for (int i = 0; i < count; i++) {
        access_log_write(&server, request, status);
    }
    log_output_set(STDERR_FILENO);
    rewind(file);
    size_t len = fread(lines, 1, sizeof lines - 1, file);
    lines[len] = '\0';
    (void)fclose(file);
    size_t found = 0;
    for (const char *at = lines; (at = strchr(at, '\n')) != NULL; at++) {
        found++;
    }
    return found;
}

static HttpRequest request_of(const char *route, const char *actor)
{
    HttpRequest request = {.method = STR("GET"), .path = STR("/v1/suppressions/eve@example.com")};
    memcpy(request.id, "req_1", 6);
    request.route = route;
    request.actor = actor;
    request.received_at_us = clock_now_us() - 1500;
    return request;
}

static void a_line_has_who_what_and_how_long_and_never_the_path_itself(void **state)
{
    (void)state;
    HttpRequest request = request_of("/v1/suppressions/{}", "key k1");
    assert_int_equal(written(1, 200, 1, &request), 1);
    static const char *const parts[] = {
        "\"event\":\"request\"", "\"actor\":\"key k1\"", "\"route\":\"/v1/suppressions/{}\"",
        "\"method\":\"GET\"",    "\"status\":200",       "\"request\":\"req_1\"",
        "\"us\":1"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        assert_non_null(strstr(lines, parts[i]));
    }
    assert_null(strstr(lines, "example"));
    HttpRequest stranger = request_of(NULL, NULL);
    assert_int_equal(written(1, 404, 1, &stranger), 1);
    assert_non_null(strstr(lines, "\"actor\":\"-\""));
    assert_null(strstr(lines, "example"));
}

static void of_good_answers_each_nth_is_written_and_of_refusals_all(void **state)
{
    (void)state;
    HttpRequest request = request_of("/v1/notifications", "key k1");
    assert_int_equal(written(100, 202, 250, &request), 3);
    assert_non_null(strstr(lines, "\"each\":100"));
    assert_int_equal(written(100, 422, 25, &request), 25);
    assert_int_equal(written(100, 503, 5, &request), 5);
    assert_int_equal(written(0, 503, 5, &request), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_who_what_and_how_long_and_never_the_path_itself),
        cmocka_unit_test(of_good_answers_each_nth_is_written_and_of_refusals_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
