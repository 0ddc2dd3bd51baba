// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <string.h>

#include "common/db/line/session.h"

enum { OWN = 4711, FOREIGN = 4712 };

static DbTxn *txn_of(const char *tenants, bool lazy)
{
    static const DbStatement any = {"any", "SELECT 1"};
    DbTxn *txn = db_txn_new(NULL);
    Str rest = str_from(tenants);
    for (Str tenant; rest.len > 0 && str_split(&rest, ' ', &tenant);) {
        db_txn_tenant(txn, tenant);
    }
    if (lazy) {
        db_txn_lazy_commit(txn);
    }
    db_txn_add(txn, &any, NULL);
    assert_true(db_txn_seal(txn));
    return txn;
}

// What the server answers to the statement: the third column is its process.
static PGresult *answer_of(int pid)
{
    PGresult *res = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc columns[3];
    memset(columns, 0, sizeof columns);
    columns[0] = columns[1] = (PGresAttDesc){.name = "set_config", .format = 1, .typid = 25};
    columns[2] = (PGresAttDesc){.name = "pg_backend_pid", .format = 1, .typid = 23};
    uint32_t bytes = htonl((uint32_t)pid);
    assert_int_equal(PQsetResultAttrs(res, 3, columns), 1);
    assert_int_equal(PQsetvalue(res, 0, 2, (char *)&bytes, sizeof bytes), 1);
    return res;
}

typedef enum Set { NOTHING, FOR_ONE, FOR_SESSION } Set;

// One transaction on a connection whose server is process `pid`.
static Set run(Session *s, const char *tenants, bool lazy, int pid, bool committed)
{
    DbTxn *txn = txn_of(tenants, lazy);
    const DbParams *p = session_setup(s, txn, OWN);
    Set set = NOTHING;
    if (p != NULL) {
        assert_true(str_eq(str_of(p->items[0].value, (size_t)p->items[0].length), txn->named));
        assert_int_equal(p->items[1].value[0], lazy);
        set = p->items[2].value[0] == 1 ? FOR_ONE : FOR_SESSION;
        PGresult *res = answer_of(pid);
        session_read(s, res);
        PQclear(res);
    }
    session_end(s, txn, committed);
    db_txn_free(txn);
    return set;
}

static void only_a_change_is_set(void **state)
{
    (void)state;
    Session s = {0};
    assert_int_equal(run(&s, "", false, OWN, true), NOTHING);     // a new session names none
    assert_int_equal(run(&s, "acme", false, OWN, true), FOR_ONE); // whose is it?
    assert_int_equal(run(&s, "acme", false, OWN, true), FOR_SESSION);
    assert_int_equal(run(&s, "acme", false, OWN, true), NOTHING);
    assert_int_equal(run(&s, "acme", true, OWN, true), FOR_SESSION);
    assert_int_equal(run(&s, "acme", true, OWN, true), NOTHING);
    assert_int_equal(run(&s, "acme globex", true, OWN, true), FOR_SESSION);
    assert_int_equal(run(&s, "globex", true, OWN, true), FOR_SESSION);
    assert_int_equal(run(&s, "", true, OWN, true), FOR_SESSION); // none, and not those before
    assert_int_equal(run(&s, "", false, OWN, true), FOR_SESSION);
    assert_int_equal(run(&s, "", false, OWN, true), NOTHING);
}

static void after_a_failure_it_is_set_whatever_it_was(void **state)
{
    (void)state;
    Session s = {0};
    run(&s, "acme", false, OWN, true);
    run(&s, "acme", false, OWN, true);
    assert_int_equal(run(&s, "globex", false, OWN, false), FOR_SESSION); // rolled back, it too
    assert_int_equal(run(&s, "globex", false, OWN, true), FOR_SESSION);
    assert_int_equal(run(&s, "globex", false, OWN, false), NOTHING);
    assert_int_equal(run(&s, "", false, OWN, true), FOR_SESSION);
}

static void behind_a_pooler_nothing_stays(void **state)
{
    (void)state;
    Session s = {0};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(run(&s, "acme", true, FOREIGN, true), FOR_ONE);
        assert_int_equal(run(&s, "", false, FOREIGN, true), NOTHING);
        assert_int_equal(run(&s, "", true, FOREIGN, false), FOR_ONE);
    }
}

static void many_tenants_are_set_for_one_transaction(void **state)
{
    (void)state;
    Session s = {0};
    char many[2 * SESSION_TENANTS_MAX] = "";
    size_t len = 0;
    for (int i = 0; len <= SESSION_TENANTS_MAX; i++) {
        len += (size_t)snprintf(many + len, sizeof many - len, "tenant-%d ", i);
    }
    many[len - 1] = '\0';
    run(&s, "acme", false, OWN, true);
    run(&s, "acme", false, OWN, true);
    assert_int_equal(run(&s, many, false, OWN, true), FOR_ONE);
    assert_int_equal(run(&s, many, false, OWN, true), FOR_ONE);
    assert_int_equal(run(&s, "acme", false, OWN, true), NOTHING); // as before it
}

static void the_connection_whose_session_fits_best_is_taken(void **state)
{
    (void)state;
    Session unused = {0};
    Session s = {0};
    run(&s, "acme", true, OWN, true);
    DbTxn *same = txn_of("acme", true);
    DbTxn *kind = txn_of("globex", true);
    DbTxn *other = txn_of("acme", false);
    DbTxn *none = txn_of("", true);
    assert_int_equal(session_fit(&s, same), FIT_OTHER); // not known yet
    run(&s, "acme", true, OWN, true);
    assert_int_equal(session_fit(&s, same), FIT_SAME);
    assert_int_equal(session_fit(&s, kind), FIT_KIND);
    assert_int_equal(session_fit(&s, other), FIT_OTHER);
    assert_int_equal(session_fit(&s, none), FIT_OTHER);
    assert_int_equal(session_fit(&unused, other), FIT_UNUSED);
    assert_true(FIT_OTHER < FIT_UNUSED && FIT_UNUSED < FIT_KIND && FIT_KIND < FIT_SAME);
    DbTxn *all[] = {same, kind, other, none};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        db_txn_free(all[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_change_is_set),
        cmocka_unit_test(after_a_failure_it_is_set_whatever_it_was),
        cmocka_unit_test(behind_a_pooler_nothing_stays),
        cmocka_unit_test(many_tenants_are_set_for_one_transaction),
        cmocka_unit_test(the_connection_whose_session_fits_best_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
