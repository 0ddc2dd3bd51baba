// SPDX-License-Identifier: Apache-2.0
// Each stream of the topology and each table of a migrated database has a row that says what it
// holds, and nothing else has; each projection's tables are of that role.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <libpq-fe.h>

#include "common/bus/topology/topology.h"
#include "common/registry/data_places.h"
#include "common/registry/projections.h"
#include "tests/unit/common/db/migrated.h"

static int migrate_outbox_too(void **state)
{
    static const char *const outbox[] = {"stentor_outbox", NULL};
    (void)migrate_all(state);
    migrate_these(outbox);
    return 0;
}

// Partitions are parts of their table.
static const char tables_sql[] =
    "SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = "
    "c.relnamespace WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname NOT LIKE "
    "'pg\\_%' AND n.nspname NOT IN ('information_schema', 'public') ORDER BY 1";

static PGresult *read_tables(PGconn *pg)
{
    PGresult *res = PQexec(pg, tables_sql);
    if (PQresultStatus(res) != PGRES_TUPLES_OK) {
        fail_msg("%s", PQerrorMessage(pg));
    }
    return res;
}

static bool is_table(const DataPlace *place)
{
    return strchr(place->name, '.') != NULL;
}

static void every_table_has_a_row_and_every_row_a_table(void **state)
{
    (void)state;
    PGconn *pg = PQconnectdb(getenv("STENTOR_TEST_DATABASE_URL"));
    PGresult *res = read_tables(pg);
    for (int i = 0; i < PQntuples(res); i++) {
        if (data_place(str_from(PQgetvalue(res, i, 0))) == NULL) {
            fail_msg("data_places.c has no row for the table '%s'", PQgetvalue(res, i, 0));
        }
    }
    size_t count;
    const DataPlace *places = data_places(&count);
    for (size_t i = 0; i < count; i++) {
        bool there = !is_table(&places[i]);
        for (int row = 0; row < PQntuples(res) && !there; row++) {
            there = strcmp(PQgetvalue(res, row, 0), places[i].name) == 0;
        }
        if (!there) {
            fail_msg("there is no table '%s'", places[i].name);
        }
    }
    PQclear(res);
    PQfinish(pg);
}

static void every_stream_has_a_row_and_every_row_a_stream(void **state)
{
    (void)state;
    size_t count, places;
    const StreamSpec *streams = topology_streams(&count);
    const DataPlace *rows = data_places(&places);
    for (size_t i = 0; i < count; i++) {
        if (data_place(str_from(streams[i].name)) == NULL) {
            fail_msg("data_places.c has no row for the stream '%s'", streams[i].name);
        }
    }
    for (size_t i = 0; i < places; i++) {
        count -= is_table(&rows[i]) ? 0 : 1;
    }
    assert_int_equal(count, 0);
}

static void a_row_is_complete(void **state)
{
    (void)state;
    size_t count;
    const DataPlace *rows = data_places(&count);
    for (size_t i = 0; i < count; i++) {
        const DataPlace *row = &rows[i];
        bool reached =
            row->erased[0] != '\0' || row->person == PERSON_NONE || row->person == PERSON_HASHED;
        bool made = row->made_of[0] != '\0' || row->role != PLACE_PROJECTION;
        if (!reached || !made) {
            fail_msg("the row of '%s' lacks how it is erased, or what it is made of", row->name);
        }
        assert_non_null(place_role_name(row->role));
        assert_non_null(place_person_name(row->person));
    }
    assert_null(data_place(STR("people.none")));
}

static bool is_of(const ProjectionRow *projection, const char *table)
{
    char name[96];
    for (const char *const *own = projection->tables; *own != NULL; own++) {
        (void)snprintf(name, sizeof name, "%s.%s", projection->schema, *own);
        if (strcmp(name, table) == 0) {
            return true;
        }
    }
    return false;
}

static void every_projected_table_is_of_a_projection(void **state)
{
    (void)state;
    size_t count, places;
    const ProjectionRow *projections = projection_rows(&count);
    const DataPlace *rows = data_places(&places);
    for (size_t i = 0; i < places; i++) {
        size_t of = 0;
        for (size_t p = 0; p < count; p++) {
            of += is_of(&projections[p], rows[i].name) ? 1 : 0;
        }
        if (rows[i].role == PLACE_PROJECTION && of != 1) {
            fail_msg("projections.c names '%s' %zu times", rows[i].name, of);
        }
    }
}

static size_t reasons_for(const char *table)
{
    size_t count, found = 0;
    const UnmadeRow *rows = unmade_rows(&count);
    for (size_t i = 0; i < count; i++) {
        for (const char *const *own = rows[i].tables; *own != NULL; own++) {
            found += strcmp(*own, table) == 0 ? 1 : 0;
        }
    }
    return found;
}

static void what_is_made_of_a_stream_is_made_again_or_says_why_not(void **state)
{
    (void)state;
    size_t count, places;
    const ProjectionRow *projections = projection_rows(&count);
    const DataPlace *rows = data_places(&places);
    for (size_t i = 0; i < places; i++) {
        size_t ways = reasons_for(rows[i].name);
        for (size_t p = 0; p < count; p++) {
            ways += is_of(&projections[p], rows[i].name) ? 1 : 0;
        }
        if (is_table(&rows[i]) && rows[i].made_of[0] != '\0' && ways != 1) {
            fail_msg("projections.c makes '%s' again, or not, in %zu ways", rows[i].name, ways);
        }
    }
}

static void a_reason_names_tables_that_there_are(void **state)
{
    (void)state;
    size_t count;
    const UnmadeRow *rows = unmade_rows(&count);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(unmade_row(str_from(rows[i].name)), &rows[i]);
        assert_null(projection_row(str_from(rows[i].name)));
        assert_true(rows[i].why[0] != '\0');
        for (const char *const *table = rows[i].tables; *table != NULL; table++) {
            assert_non_null(data_place(str_from(*table)));
        }
    }
}

static void every_projection_is_made_of_streams_in_the_way_it_says(void **state)
{
    (void)state;
    size_t count;
    const ProjectionRow *projections = projection_rows(&count);
    for (size_t p = 0; p < count; p++) {
        const ProjectionRow *projection = &projections[p];
        assert_true(projection->streams[0] != NULL && projection->tables[0] != NULL);
        for (const char *const *stream = projection->streams; *stream != NULL; stream++) {
            assert_non_null(topology_stream(*stream));
        }
        bool service = projection->remake == REMAKE_SERVICE;
        assert_int_equal(service, projection->how[0] != '\0');
        assert_ptr_equal(projection_row(str_from(projection->name)), projection);
    }
    assert_null(projection_row(STR("none")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_has_a_row_and_every_row_a_table),
        cmocka_unit_test(every_stream_has_a_row_and_every_row_a_stream),
        cmocka_unit_test(a_row_is_complete),
        cmocka_unit_test(every_projected_table_is_of_a_projection),
        cmocka_unit_test(what_is_made_of_a_stream_is_made_again_or_says_why_not),
        cmocka_unit_test(a_reason_names_tables_that_there_are),
        cmocka_unit_test(every_projection_is_made_of_streams_in_the_way_it_says),
    };
    return cmocka_run_group_tests(tests, migrate_outbox_too, NULL);
}
