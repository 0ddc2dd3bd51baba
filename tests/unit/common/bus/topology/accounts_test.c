// SPDX-License-Identifier: Apache-2.0

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bus/topology/accounts.h"
#include "common/bus/topology/nats_rights.h"
#include "common/bus/topology/topology.h"

static Arena *arena;

static int open_arena(void **state)
{
    (void)state;
    arena = arena_new(0);
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

static Str own_users(const char *password)
{
    size_t count;
    const NatsRights *access = nats_rights(&count);
    const char *text = "";
    for (size_t i = 0; i < count; i++) {
        text = arena_printf(arena, "%s%s=%s\n", text, access[i].service, password);
    }
    return str_from(text);
}

static bool read_table(const char *lines, Accounts *ret, Error *err)
{
    Str own = own_users("x");
    return accounts_read(
        str_from(arena_printf(arena, "%.*s%s", STR_ARG(own), lines)), arena, ret, err);
}

static void a_table_is_read(void **state)
{
    (void)state;
    Accounts accounts;
    Error err = {0};
    assert_true(read_table(
        "# ours\n\napplication shop tenants=acme,beta\n  subscriber board   tenant=acme  \n"
        "application desk tenants=*\napplication shop-1 tenants=acme\nsubscriber shop-2024 "
        "tenant=acme\nrelay drain tenants=*\n"
        "shop=a=b c\nboard=d\ndesk=e\nshop-1=f\nshop-2024=g\ndrain=h",
        &accounts, &err));
    assert_int_equal(accounts.count, 6);
    assert_int_equal(accounts.at[5].kind, ACCOUNT_RELAY);
    assert_int_equal(accounts.at[0].tenant_count, 2);
    assert_true(str_eq(accounts.at[0].tenants[1], STR("beta")));
    assert_true(str_eq(accounts.at[0].password, STR("a=b c")));
    assert_int_equal(accounts.at[1].kind, ACCOUNT_SUBSCRIBER);
    assert_int_equal(accounts.at[2].tenant_count, 0);
}

static void any_other_line_is_refused_with_its_number(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"who is this", "expected USER=PASSWORD"},
        {"applicatio shop tenants=acme", "no user is called 'applicatio shop tenants'"},
        {"application shop", "expected 'application NAME"},
        {"application shop tenant=acme", "expected 'application NAME"},
        {"application shop tenants=acme more", "expected 'application NAME"},
        {"application shop tenants=", "expected at least one tenant"},
        {"application shop tenants=acme,,beta", "'' is not a tenant id"},
        {"application shop tenants=Acme", "'Acme' is not a tenant id"},
        {"application shop tenants=a.>", "'a.>' is not a tenant id"},
        {"application sh.op tenants=acme", "is not a name"},
        {"application stentor-ingest tenants=acme", "a user of Stentor's own"},
        {"application stentor-ingest-3 tenants=acme", "a user of Stentor's own"},
        {"application shop tenants=a1,a2,a3,a4,a5,a6,a7,a8,a9", "more than 8 tenants"},
        {"relay drain tenant=acme", "expected 'relay NAME tenants="},
        {"relay drain tenants=", "expected at least one tenant"},
        {"subscriber board tenant=*", "'*' is not a tenant id"},
        {"subscriber board tenant=acme,beta", "expected exactly one tenant"},
        {"subscriber board tenants=acme", "expected 'subscriber NAME"},
        {"shop=secret", "no user is called 'shop'"},
        {"stentor-ingest=again", "a second password"},
        {"application shop tenants=acme\nshop=", "an empty password"},
        {"application shop tenants=acme\nsubscriber shop tenant=acme", "'shop' is given twice"},
        {"subscriber shop-7 tenant=beta\napplication shop tenants=acme",
         "'shop-7' is a consumer of application 'shop'"},
        {"subscriber shop-7 tenant=beta\nrelay shop tenants=acme",
         "'shop-7' is a consumer of application 'shop'"},
        {"application shop tenants=acme\nsubscriber shop-0 tenant=beta",
         "'shop-0' is a consumer of application 'shop'"},
        {"subscriber shop tenant=acme\nsubscriber shop-0 tenant=beta",
         "'shop-0' is a consumer of subscriber 'shop'"},
        {"subscriber shop-7 tenant=acme\nsubscriber shop tenant=beta",
         "'shop-7' is a consumer of subscriber 'shop'"},
        {"application shop tenants=acme", "no password for 'shop'"},
    };
    size_t own;
    nats_rights(&own);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        Accounts accounts;
        Error err = {0};
        if (read_table(bad[i][0], &accounts, &err) || strstr(err.text, bad[i][1]) == NULL) {
            fail_msg("'%s': '%s' instead of '%s'", bad[i][0], err.text, bad[i][1]);
        }
        bool whole = strstr(bad[i][1], "no password for") != NULL;
        const char *line =
            arena_printf(arena, "line %zu", own + 1 + (strchr(bad[i][0], '\n') != NULL ? 1 : 0));
        assert_true(whole || strstr(err.text, line) != NULL);
    }
    Accounts accounts;
    Error err = {0};
    assert_false(accounts_read(STR("stentor-cli=x\n"), arena, &accounts, &err));
    assert_non_null(strstr(err.text, "no password for 'stentor-"));
}

static void the_configuration_quotes_passwords_and_names_what_each_may_reach(void **state)
{
    (void)state;
    Accounts accounts;
    Error err = {0};
    Buf out;
    Str own = own_users("a\"b}");
    buf_init(&out, 4 * 1024 * 1024);
    Str text = str_from(arena_printf(
        arena, "%.*sapplication shop tenants=acme\nrelay drain tenants=acme\nshop=x\"y\ndrain=z\n",
        STR_ARG(own)));
    assert_true(accounts_read(text, arena, &accounts, &err));
    assert_true(accounts_write(&out, &accounts));
    assert_non_null(strstr(buf_c(&out), "password: \"a\\\"b}\""));
    assert_non_null(strstr(buf_c(&out), "password: \"x\\\"y\""));
    assert_non_null(strstr(
        buf_c(&out),
        "{ service: { account: STENTOR, subject: \"in.evt.acme.>\" }, to: \"evt.acme.>\" }"));
    assert_non_null(
        strstr(buf_c(&out), "{ service: \"in.evt.acme.>\", accounts: [\"application-shop\"] }"));
    assert_non_null(
        strstr(buf_c(&out), "{ service: \"in.evt.acme.>\", accounts: [\"relay-drain\"] }"));
    assert_null(strstr(buf_c(&out), "$JS.API.>"));
    assert_null(strstr(buf_c(&out), "MSG.NEXT.EVENTS.*"));
    buf_done(&out);
    buf_init(&out, 1000);
    assert_false(accounts_write(&out, &accounts));
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_read),
        cmocka_unit_test(any_other_line_is_refused_with_its_number),
        cmocka_unit_test(the_configuration_quotes_passwords_and_names_what_each_may_reach),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
