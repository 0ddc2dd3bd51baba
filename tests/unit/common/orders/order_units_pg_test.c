// SPDX-License-Identifier: Apache-2.0
// Orders as units of the archive: which month an order belongs to, and that none is archived before
// it has ended and is there with all of its transitions.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

#define A "6f1c9a52-9f0e-4f43-8a37-2f5a3c1d0e11"
#define B "0b0f6f5e-5b0c-4f1e-9d63-0d9a3d1c7a42"
#define C "9f1c9a52-9f0e-4f43-8a37-2f5a3c1d0e11"
#define UNIT "orders/record/2026-03"

static void check(PGconn *admin, const char *sql, const char *wanted)
{
    const char *seen = admin_value(admin, sql);
    if (strcmp(seen, wanted) != 0) {
        fail_msg("%s\n  wanted '%s', seen '%s'", sql, wanted, seen);
    }
}

static int migrate_once(void **state)
{
    migrate_these(migrate_schemas);
    *state = admin_connect();
    return 0;
}

static int disconnect(void **state)
{
    PQfinish(*state);
    return 0;
}

// A and B ended in March 2026, C is under way; each was placed by an event, A and B ended by one.
static int set_up(void **state)
{
    PGconn *admin = *state;
    admin_exec(
        admin, "TRUNCATE order_saga.order_state, order_saga.order_archive, order_saga.inbox_state,"
               " order_saga.order_transitions, order_saga.late_orders, order_saga.late_transitions;"
               " DELETE FROM archive.units");
    admin_exec(
        admin,
        "INSERT INTO order_saga.order_state (correlation_id, tenant_id, order_id, current_state,"
        " total_money, currency, order_placed_date, version, finished_at, person, email_hash)"
        " SELECT id::uuid, 'acme', id::uuid, state, 12.34, 'EUR', '2026-03-01Z', 2,"
        " ended::timestamptz, 'sealed', sha256('x') FROM (VALUES"
        " ('" A "', 'Completed', '2026-03-02Z'), ('" B "', 'Failed', '2026-03-31 23:59:59Z'),"
        " ('" C "', 'Placed', NULL)) AS v (id, state, ended)");
    admin_exec(
        admin,
        "INSERT INTO order_saga.inbox_state (message_id, consumer_id, tenant_id, correlation_id,"
        " event_type, sequence, received, receive_count, consumed, verdict, reason, from_state,"
        " to_state) SELECT m, 'saga', 'acme', id::uuid, 'e', s, '2026-03-01Z', 1, '2026-03-01Z',"
        " verdict, '', f, t FROM (VALUES ('1', '" A "', 1, 'applied', NULL, 'Placed'),"
        " ('2', '" A "', 2, 'duplicate', 'Placed', 'Placed'),"
        " ('3', '" A "', 3, 'applied', 'Placed', 'Completed'),"
        " ('4', '" B "', 4, 'applied', NULL, 'Placed'),"
        " ('5', '" C "', 5, 'applied', NULL, 'Placed')) AS v (m, id, s, verdict, f, t)");
    return 0;
}

static void archive(PGconn *admin, const char *wanted)
{
    admin_exec(admin, "SET ROLE stentor_order_saga");
    check(admin, "SELECT order_saga.archive_orders('30 days', NULL, 1000)", wanted);
    admin_exec(admin, "RESET ROLE");
}

static void make_unit(PGconn *admin)
{
    admin_exec(
        admin, "INSERT INTO archive.units (id, kind, class, starts_at, ends_at, owner_epoch) VALUES"
               " ('" UNIT "', 'orders', 'R', '2026-03-01Z', '2026-04-01Z', 0)");
}

static void seal(PGconn *admin)
{
    admin_exec(admin, "SET ROLE stentor_archiver");
    admin_exec(admin, "UPDATE archive.units SET state = 'sealed' WHERE id = '" UNIT "'");
    admin_exec(admin, "RESET ROLE");
}

static void an_order_belongs_to_the_month_in_which_it_ended(void **state)
{
    PGconn *admin = *state;
    archive(admin, "2");
    check(
        admin,
        "SELECT string_agg(tableoid::regclass || ' ' || total_micros, ' ') FROM"
        " order_saga.order_archive",
        "order_saga.order_archive_y2026m03 12340000 order_saga.order_archive_y2026m03 12340000");
    check(
        admin,
        "SELECT string_agg(message_id, ' ' ORDER BY sequence) FROM"
        " order_saga.order_transitions WHERE tableoid ="
        " 'order_saga.order_transitions_y2026m03'::regclass",
        "1 3 4");
    check(admin, "SELECT string_agg(current_state, ' ') FROM order_saga.order_state", "Placed");
    archive(admin, "0");
}

static void an_order_that_has_not_ended_is_in_no_unit_however_old(void **state)
{
    PGconn *admin = *state;
    archive(admin, "2");
    make_unit(admin);
    seal(admin);
    check(
        admin,
        "SELECT string_agg(ordinal || ':' || rows, ' ' ORDER BY ordinal) FROM"
        " archive.count_unit('" UNIT "')",
        "0:2 1:3");
    check(admin, "SELECT count(*) FROM order_saga.order_state WHERE correlation_id = '" C "'", "1");
    check(admin, "SELECT order_saga.forget_inbox('30 days', NULL, 1000)", "4"); // all but C's
    check(admin, "SELECT string_agg(message_id, ' ') FROM order_saga.inbox_state", "5");
}

static void a_month_is_not_sealed_before_its_orders_are_moved(void **state)
{
    PGconn *admin = *state;
    make_unit(admin);
    PGresult *res = PQexec(admin, "UPDATE archive.units SET state = 'sealed'");
    assert_non_null(strstr(
        PQresultErrorMessage(res), "'" UNIT "' is not sealed: orders that ended in it are still"));
    PQclear(res);
    archive(admin, "2");
    seal(admin);
    check(admin, "SELECT state FROM archive.units", "sealed");
}

static void transitions_stay_in_the_inbox_until_their_order_is_moved(void **state)
{
    PGconn *admin = *state;
    check(admin, "SELECT order_saga.forget_inbox('30 days', NULL, 1000)", "1"); // the duplicate
    archive(admin, "2");
    check(admin, "SELECT count(*) FROM order_saga.order_transitions", "3");
}

static void what_is_moved_for_a_sealed_month_is_late(void **state)
{
    PGconn *admin = *state;
    archive(admin, "2");
    make_unit(admin);
    seal(admin);
    admin_exec(
        admin, "UPDATE order_saga.order_state SET current_state = 'Failed', finished_at ="
               " '2026-03-09Z'"); // an event that was away for long
    archive(admin, "1");
    check(admin, "SELECT count(*) FROM order_saga.order_archive", "2");
    check(admin, "SELECT correlation_id FROM order_saga.late_orders", C);
    check(admin, "SELECT message_id FROM order_saga.late_transitions", "5");
    check(admin, "SELECT order_saga.drop_archived('1 day', NULL, 1000)", "0"); // the archive's
    admin_exec(
        admin, "DROP TABLE order_saga.order_archive_y2026m03,"
               " order_saga.order_transitions_y2026m03");
    admin_exec(admin, "SELECT order_saga.make_months(ARRAY['2026-03-09Z'::timestamptz])");
    check(admin, "SELECT to_regclass('order_saga.order_archive_y2026m03') IS NULL", "t");
}

static void without_a_unit_orders_and_their_transitions_go_at_their_age(void **state)
{
    PGconn *admin = *state;
    archive(admin, "2");
    check(admin, "SELECT order_saga.drop_archived('7 years', NULL, 1000)", "0");
    check(admin, "SELECT order_saga.drop_archived('1 day', 'globex', 1000)", "0");
    check(admin, "SELECT order_saga.drop_archived('1 day', 'acme', 1)", "1");
    check(admin, "SELECT order_saga.drop_archived('1 day', NULL, 1000)", "1");
    check(admin, "SELECT count(*) FROM order_saga.order_transitions", "0");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        TEST(an_order_belongs_to_the_month_in_which_it_ended),
        TEST(an_order_that_has_not_ended_is_in_no_unit_however_old),
        TEST(a_month_is_not_sealed_before_its_orders_are_moved),
        TEST(transitions_stay_in_the_inbox_until_their_order_is_moved),
        TEST(what_is_moved_for_a_sealed_month_is_late),
        TEST(without_a_unit_orders_and_their_transitions_go_at_their_age),
    };
    return cmocka_run_group_tests(tests, migrate_once, disconnect);
}
