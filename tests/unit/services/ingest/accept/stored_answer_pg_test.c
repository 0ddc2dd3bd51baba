// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "services/ingest/accept/stored_answer.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

typedef struct Scene {
    uv_loop_t loop;
    PGconn *admin;
    DbPool *pool;
    char url[512];
    bool done;
    AcceptVerdict verdict;
    int status;
    char answer[64];
} Scene;

static void on_flag(void *ctx)
{
    bool *flag = ctx;
    *flag = true;
}

static int migrate_once(void **state)
{
    (void)state;
    migrate_these(migrate_schemas);
    return 0;
}

// One key of yesterday's body, as accept stores it.
static int set_up(void **state)
{
    Scene *s = calloc(1, sizeof *s);
    uv_loop_init(&s->loop);
    s->admin = admin_connect();
    admin_exec(
        s->admin,
        "TRUNCATE ingest.idempotency_keys;"
        "INSERT INTO ingest.idempotency_keys (tenant_id, scope, idempotency_key, request_hash,"
        " response_status, response_body, created_at)"
        " VALUES ('acme', 'here', 'k1', sha256('body'), 202, 'the answer', now())");
    url_with("&user=stentor_ingest", s->url, sizeof s->url);
    s->pool = db_pool_new(
        &s->loop,
        &(DbPoolOptions){.url = s->url, .application_name = "ingest-test", .connections = 1});
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    Scene *s = *state;
    bool gone = false;
    db_pool_close(s->pool, on_flag, &gone);
    assert_true(run_for(&s->loop, &gone, true, WAIT_MS));
    PQfinish(s->admin);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    free(s);
    return 0;
}

static void on_found(void *ctx, const AcceptResult *result)
{
    Scene *s = ctx;
    assert_false(s->done);
    s->done = true;
    s->verdict = result->verdict;
    s->status = result->status;
    (void)snprintf(s->answer, sizeof s->answer, "%.*s", STR_ARG(result->answer));
}

static AcceptVerdict find(
    Scene *s, const char *tenant, const char *scope, const char *key, const char *body)
{
    Submission submission = {
        .tenant = str_from(tenant),
        .scope = str_from(scope),
        .key = str_from(key),
        .done = on_found,
        .ctx = s,
    };
    sha256(str_from(body), submission.body_hash);
    s->done = false;
    stored_answer_find(s->pool, &submission);
    assert_false(s->done); // never inside the call
    assert_true(run_for(&s->loop, &s->done, true, WAIT_MS));
    return s->verdict;
}

static void the_same_key_and_body_find_the_answer(void **state)
{
    Scene *s = *state;
    assert_int_equal(find(s, "acme", "here", "k1", "body"), ACCEPT_REPLAYED);
    assert_int_equal(s->status, 202);
    assert_string_equal(s->answer, "the answer");
}

static void another_body_key_scope_or_tenant_finds_none(void **state)
{
    Scene *s = *state;
    assert_int_equal(find(s, "acme", "here", "k1", "another"), ACCEPT_OTHER_BODY);
    assert_int_equal(find(s, "acme", "here", "k2", "body"), ACCEPT_OTHER_BODY);
    assert_int_equal(find(s, "acme", "there", "k1", "body"), ACCEPT_OTHER_BODY);
    assert_int_equal(find(s, "beta", "here", "k1", "body"), ACCEPT_OTHER_BODY);
    assert_string_equal(s->answer, "");
}

static void an_answer_of_more_than_a_day_ago_is_none(void **state)
{
    Scene *s = *state;
    admin_exec(
        s->admin, "UPDATE ingest.idempotency_keys SET created_at = now() - interval '25 hours'");
    assert_int_equal(find(s, "acme", "here", "k1", "body"), ACCEPT_OTHER_BODY);
}

static void an_error_of_postgres_is_said(void **state)
{
    Scene *s = *state;
    admin_exec(s->admin, "REVOKE SELECT ON ingest.idempotency_keys FROM stentor_ingest");
    assert_int_equal(find(s, "acme", "here", "k1", "body"), ACCEPT_UNAVAILABLE);
    admin_exec(s->admin, "GRANT SELECT ON ingest.idempotency_keys TO stentor_ingest");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_same_key_and_body_find_the_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            another_body_key_scope_or_tenant_finds_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_answer_of_more_than_a_day_ago_is_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_error_of_postgres_is_said, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
