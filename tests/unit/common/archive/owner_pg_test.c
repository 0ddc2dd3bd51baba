// SPDX-License-Identifier: Apache-2.0
// Whose the bucket is, with a folder as storage and a real Postgres.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/archive/database.h"
#include "common/archive/owner.h"
#include "common/base/clock.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

#define SELECT_MARK "SELECT owner_epoch || ' ' || token FROM archive.installation"

typedef struct Bench {
    PGconn *admin;
    char folder[64];
    char url[96];
    ArchiveOptions options;
    Archive archive;
} Bench;

static int set_up(void **state)
{
    Bench *bench = calloc(1, sizeof *bench);
    bench->admin = admin_connect();
    admin_exec(
        bench->admin,
        "UPDATE archive.installation SET owner_epoch = 0, token = NULL, previous_token = NULL, "
        "standing_still = NULL, conditions = NULL; TRUNCATE archive.units CASCADE");
    snprintf(bench->folder, sizeof bench->folder, "/tmp/stentor-owner.XXXXXX");
    assert_non_null(mkdtemp(bench->folder));
    snprintf(bench->url, sizeof bench->url, "file://%s", bench->folder);
    bench->options = (ArchiveOptions){.database_url = test_url(), .storage = {.url = bench->url}};
    Error err = {0};
    if (!archive_open(&bench->archive, &bench->options, &err)) {
        fail_msg("%s", err.text);
    }
    *state = bench;
    return 0;
}

static int tear_down(void **state)
{
    Bench *bench = *state;
    archive_close(&bench->archive);
    PQfinish(bench->admin);
    free(bench);
    return 0;
}

static void take(Bench *bench)
{
    Error err = {0};
    if (!owner_take(&bench->archive, false, &err)) {
        fail_msg("%s", err.text);
    }
}

static void refused(Bench *bench, bool adopt, const char *part)
{
    Error err = {0};
    assert_false(owner_take(&bench->archive, adopt, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(err.text, part));
    assert_string_equal(
        admin_value(bench->admin, "SELECT standing_still FROM archive.installation"), err.text);
    assert_int_equal(bench->archive.epoch, 0);
}

static void each_start_takes_a_new_epoch_and_writes_it_into_every_unit(void **state)
{
    Bench *bench = *state;
    admin_exec(
        bench->admin, "INSERT INTO archive.units (id, kind, class, starts_at, ends_at, owner_epoch)"
                      " VALUES ('n/record/2025-01', 'n', 'R', '2025-01-01', '2025-02-01', 0)");
    take(bench);
    assert_int_equal(bench->archive.epoch, 1);
    assert_true(bench->archive.conditions);
    take(bench);
    assert_int_equal(bench->archive.epoch, 2);
    assert_string_equal(admin_value(bench->admin, "SELECT owner_epoch FROM archive.units"), "2");
    Error err = {0};
    assert_true(owner_check(&bench->archive, &err));
}

// The process died between Postgres and the bucket, which has the token before.
static void a_bucket_that_is_one_token_behind_is_taken(void **state)
{
    Bench *bench = *state;
    take(bench);
    admin_exec(
        bench->admin, "UPDATE archive.installation SET previous_token = token, "
                      "token = gen_random_uuid(), owner_epoch = owner_epoch + 1");
    take(bench);
    assert_int_equal(bench->archive.epoch, 3);
}

static void a_restored_backup_stands_still_until_it_is_adopted(void **state)
{
    Bench *bench = *state;
    take(bench);
    take(bench);
    char kept[128];
    snprintf(kept, sizeof kept, "%s", admin_value(bench->admin, SELECT_MARK));
    take(bench);
    take(bench); // the backup is two tokens old
    char sql[256];
    snprintf(
        sql, sizeof sql,
        "UPDATE archive.installation SET owner_epoch = %c, token = '%s', previous_token = NULL",
        kept[0], kept + 2);
    admin_exec(bench->admin, sql);
    refused(bench, false, "restored backup");
    Error err = {0};
    assert_true(owner_take(&bench->archive, true, &err));
    assert_int_equal(bench->archive.epoch, 5); // beyond every epoch that there was
    take(bench);
}

static void another_database_with_our_token_stands_still(void **state)
{
    Bench *bench = *state;
    take(bench);
    OwnerRow row = {.mark = {.installation = "i", .epoch = 4, .token = "t", .database = "1/1/5"}};
    OwnerMark bucket = row.mark;
    assert_int_equal(owner_judge(&row, &bucket), OWNER_OURS);
    snprintf(bucket.database, sizeof bucket.database, "1/2/5"); // promoted, or restored
    assert_int_equal(owner_judge(&row, &bucket), OWNER_MOVED);
    snprintf(bucket.installation, sizeof bucket.installation, "j");
    assert_int_equal(owner_judge(&row, &bucket), OWNER_FOREIGN);
    assert_int_equal(owner_judge(&row, NULL), OWNER_FREE);
    row.stored = true;
    assert_int_equal(owner_judge(&row, NULL), OWNER_GONE);
}

static void a_bucket_that_another_took_is_noticed_before_a_change(void **state)
{
    Bench *bench = *state;
    take(bench);
    Archive other;
    Error err = {0};
    assert_true(archive_open(&other, &bench->options, &err));
    assert_true(owner_take(&other, false, &err));
    assert_true(owner_may_delete(&other, clock_now_us(), &err));
    assert_false(owner_check(&bench->archive, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    archive_close(&other);
}

static void without_conditions_nothing_is_deleted_for_a_day(void **state)
{
    Bench *bench = *state;
    take(bench);
    bench->archive.conditions = false;
    Error err = {0};
    int64_t now_us = clock_now_us();
    assert_false(owner_may_delete(&bench->archive, now_us, &err));
    assert_non_null(strstr(err.text, "24 hours"));
    assert_true(owner_may_delete(&bench->archive, now_us + INT64_C(86500) * 1000000, &err));
}

static void what_is_no_owners_document_is_refused(void **state)
{
    Bench *bench = *state;
    take(bench);
    char path[160];
    snprintf(path, sizeof path, "%s/%s", bench->folder, OWNER_KEY);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("{\"installation\": 5}", file);
    fclose(file);
    refused(bench, false, "not an owner's document");
    Error err = {0};
    assert_true(owner_take(&bench->archive, true, &err));
}

static void write_mark(Bench *bench, const OwnerMark *mark)
{
    char path[128];
    char at[CLOCK_RFC3339_SIZE];
    clock_format(mark->renewed_us, at);
    snprintf(path, sizeof path, "%s/_stentor/owner.json", bench->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(
        file,
        "{\"installation\":\"%s\",\"epoch\":%lld,\"token\":\"%s\",\"database\":\"%s\","
        "\"server\":\"%s\",\"taken_at\":\"%s\"}",
        mark->installation, (long long)mark->epoch, mark->token, mark->database, mark->server, at);
    fclose(file);
}

static OwnerMark read_mark(Bench *bench)
{
    char path[128];
    char text[OWNER_JSON_MAX];
    OwnerMark mark;
    Error err = {0};
    snprintf(path, sizeof path, "%s/_stentor/owner.json", bench->folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t len = fread(text, 1, sizeof text, file);
    fclose(file);
    assert_true(owner_parse(str_of(text, len), &mark, &err));
    return mark;
}

static void the_owner_renews_its_token_and_keeps_its_epoch(void **state)
{
    Bench *bench = *state;
    Error err = {0};
    take(bench);
    OwnerMark first = read_mark(bench);
    assert_true(owner_renew(&bench->archive, &err)); // too early
    assert_string_equal(read_mark(bench).token, first.token);
    bench->archive.renew_us = 0;
    assert_true(owner_renew(&bench->archive, &err));
    OwnerMark second = read_mark(bench);
    assert_string_not_equal(second.token, first.token);
    assert_int_equal(second.epoch, first.epoch);
    assert_true(owner_check(&bench->archive, &err));
    bench->archive.renew_us = 0;
    write_mark(bench, &first); // another one's, as it were
    assert_false(owner_renew(&bench->archive, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_int_equal(bench->archive.epoch, 0);
}

static void a_server_that_was_started_since_watches_for_as_long_as_another_may_live(void **state)
{
    (void)state;
    const int64_t second_us = 1000000;
    OwnerRow row = {.mark = {.server = "7"}};
    OwnerMark bucket = {.server = "7", .renewed_us = 1000 * second_us};
    assert_int_equal(owner_watch_us(&row, &bucket, 1000 * second_us), 0);
    snprintf(bucket.server, sizeof bucket.server, "6");
    assert_int_equal(owner_watch_us(&row, &bucket, 1000 * second_us), OWNER_WATCH_S * second_us);
    assert_int_equal(
        owner_watch_us(&row, &bucket, 1045 * second_us), (OWNER_WATCH_S - 45) * second_us);
    assert_int_equal(owner_watch_us(&row, &bucket, (1000 + OWNER_WATCH_S) * second_us), 0);
    assert_int_equal( // a clock that is behind
        owner_watch_us(&row, &bucket, 10 * second_us), OWNER_WATCH_S * second_us);
}

// The server's disk was copied, and the copy started: it has the newest token.
static void a_copy_of_the_disk_stands_still_when_the_bucket_is_renewed_meanwhile(void **state)
{
    Bench *bench = *state;
    take(bench);
    OwnerMark mark = read_mark(bench);
    snprintf(mark.server, sizeof mark.server, "6");
    mark.renewed_us = clock_now_us();
    write_mark(bench, &mark);
    pid_t original = fork();
    if (original == 0) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        snprintf(mark.token, sizeof mark.token, "00000000-0000-4000-8000-000000000000");
        write_mark(bench, &mark);
        _exit(0);
    }
    refused(bench, false, "a copy of its disk");
    assert_int_equal(waitpid(original, NULL, 0), original);
    refused(bench, false, "this is a copy");
}

static void a_server_that_was_restarted_takes_the_bucket_when_no_other_renews_it(void **state)
{
    Bench *bench = *state;
    take(bench);
    OwnerMark mark = read_mark(bench);
    snprintf(mark.server, sizeof mark.server, "6");
    mark.renewed_us = clock_now_us() - INT64_C(1000000) * (OWNER_WATCH_S - 1);
    write_mark(bench, &mark);
    take(bench);
    assert_int_equal(bench->archive.epoch, 2);
    assert_string_not_equal(read_mark(bench).server, "6");
}

static void a_unit_begins_as_open(void **state)
{
    Bench *bench = *state;
    Error err = {0};
    take(bench);
    static const char *const wrong[] = {"'removed', 1", "'sealed', 1", "'open', 7"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char sql[256];
        snprintf(
            sql, sizeof sql,
            "INSERT INTO archive.units (id, kind, class, starts_at, ends_at, state, owner_epoch) "
            "VALUES ('n/record/2025-01', 'n', 'R', '2025-01-01', '2025-02-01', %s)",
            wrong[i]);
        admin_exec(bench->admin, "SET ROLE stentor_archiver");
        PGresult *rows = PQexec(bench->admin, sql);
        assert_int_equal(PQresultStatus(rows), PGRES_FATAL_ERROR);
        assert_non_null(strstr(PQresultErrorMessage(rows), "begins as open"));
        PQclear(rows);
        admin_exec(bench->admin, "RESET ROLE");
    }
    assert_true(owner_check(&bench->archive, &err));
}

static int migrate_once(void **state)
{
    return migrate_all(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            each_start_takes_a_new_epoch_and_writes_it_into_every_unit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_bucket_that_is_one_token_behind_is_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_restored_backup_stands_still_until_it_is_adopted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            another_database_with_our_token_stands_still, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_bucket_that_another_took_is_noticed_before_a_change, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            without_conditions_nothing_is_deleted_for_a_day, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_owner_renews_its_token_and_keeps_its_epoch, set_up, tear_down),
        cmocka_unit_test(a_server_that_was_started_since_watches_for_as_long_as_another_may_live),
        cmocka_unit_test_setup_teardown(
            a_copy_of_the_disk_stands_still_when_the_bucket_is_renewed_meanwhile, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(
            a_server_that_was_restarted_takes_the_bucket_when_no_other_renews_it, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(a_unit_begins_as_open, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_owners_document_is_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
