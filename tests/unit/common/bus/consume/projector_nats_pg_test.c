// SPDX-License-Identifier: Apache-2.0
// A projector on a real NATS and a real Postgres: it counts events in the table `tally.counted`.
#include "common/base/clock.h"
#include "common/bus/consume/projector.h"
#include "common/db/db.h"
#include "tests/unit/common/bus/bus_tools.h"

typedef struct Tally {
    Projector *projector;
    DbPool *pool;
    size_t folded; // not committed yet
    bool folds_on;
    bool two_parts;        // with folds_on
    size_t begins, in_air; // with folds_on: of these, what the flush under way writes
    size_t folds, commits, drops;
    size_t flush_bytes;       // its option
    size_t bytes, most_bytes; // not committed yet, and the most of one transaction
    bool poison;              // refuse events whose payload is "3"
    bool bad_rows;
    int64_t begin_at_us;
    uint64_t holds_from; // 0: holds nothing back; else events from this sequence on
    size_t held;
    ProjectorPlace last, before_held;
} Tally;

static Rig rig;
static const char *database_url;

static PGconn *sql_connection(void)
{
    PGconn *conn = PQconnectdb(database_url);
    assert_int_equal(PQstatus(conn), CONNECTION_OK);
    return conn;
}

static long sql(const char *text)
{
    PGconn *conn = sql_connection();
    PGresult *result = PQexec(conn, text);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fail_msg("%s: %s", text, PQerrorMessage(conn));
    }
    long value = status == PGRES_TUPLES_OK && PQntuples(result) > 0
                     ? strtol(PQgetvalue(result, 0, 0), NULL, 10)
                     : 0;
    PQclear(result);
    PQfinish(conn);
    return value;
}

static long counted(void)
{
    return sql("SELECT coalesce(sum(n), 0) FROM tally.counted");
}

static long stored(void)
{
    return sql("SELECT coalesce(max(sequence), 0) FROM tally.positions");
}

static bool fold(void *ctx, const BusMessage *message, Arena *arena, Error *err)
{
    Tally *tally = ctx;
    tally->folds++;
    (void)arena_str(arena, message->payload);
    if (tally->poison && str_eq(message->payload, STR("3"))) {
        return error_set(err, ERROR_PERMANENT, "three cannot be read");
    }
    if (tally->holds_from != 0 && message->sequence >= tally->holds_from) {
        tally->before_held = tally->held++ == 0 ? tally->last : tally->before_held;
    } else {
        tally->folded++;
    }
    tally->last = (ProjectorPlace){message->sequence, message->stored_at_us};
    tally->bytes += message->payload.len;
    return true;
}

// With holds_from: what is held is never ripe.
static int wait_ms(void *ctx)
{
    const Tally *tally = ctx;
    return tally->folded > 0 ? 0 : tally->held > 0 ? 30 : -1;
}

static bool held(void *ctx, const char *stream, ProjectorPlace *ret_before)
{
    const Tally *tally = ctx;
    if (strcmp(stream, "STATUS") != 0 || tally->held == 0) {
        return false;
    }
    *ret_before = tally->before_held;
    return true;
}

static void begin(void *ctx)
{
    Tally *tally = ctx;
    tally->begins++;
    tally->in_air = tally->folded;
    tally->folded = 0;
}

static void write_rows(void *ctx, DbTxn *txn)
{
    static const DbStatement insert = {
        "tally_insert", "INSERT INTO tally.counted (n) VALUES ($1::int8)"};
    Tally *tally = ctx;
    size_t written = tally->folds_on ? tally->in_air : tally->folded;
    if (written == 0) {
        return; // only positions move
    }
    tally->most_bytes = tally->bytes > tally->most_bytes ? tally->bytes : tally->most_bytes;
    DbParams *params = db_txn_add(txn, &insert, NULL);
    if (tally->bad_rows) {
        db_null(params);
    } else {
        db_i64(params, (int64_t)written);
    }
}

static bool write_beside(void *ctx, DbTxn *txn)
{
    static const DbStatement insert = {
        "tally_beside", "INSERT INTO tally.beside (n) VALUES ($1::int8)"};
    const Tally *tally = ctx;
    if (tally->two_parts) {
        db_i64(db_txn_add(txn, &insert, NULL), (int64_t)tally->in_air);
    }
    return tally->two_parts;
}

static void committed(void *ctx, DbTxn *txn)
{
    Tally *tally = ctx;
    tally->folded = tally->folds_on && txn != NULL ? tally->folded : 0;
    tally->in_air = 0;
    tally->bytes = 0;
    tally->commits += txn != NULL ? 1 : 0;
    tally->drops += txn == NULL ? 1 : 0;
    if (txn == NULL) {
        tally->held = 0;
        tally->last = (ProjectorPlace){0};
    }
}

static void tally_start(Rig *on, Tally *tally)
{
    static const char *const streams[] = {"STATUS", "REQUEST_LOW", NULL};
    static const ProjectorHandlers handlers = {
        .fold = fold, .write = write_rows, .committed = committed};
    static const ProjectorHandlers holding = {
        .fold = fold,
        .write = write_rows,
        .committed = committed,
        .wait_ms = wait_ms,
        .held = held};
    static const ProjectorHandlers folding_on = {
        .fold = fold,
        .begin = begin,
        .write_beside = write_beside,
        .write = write_rows,
        .committed = committed};
    tally->pool = db_pool_new(
        &on->loop,
        &(DbPoolOptions){
            .url = database_url, .application_name = "projector-test", .connections = 2});
    ProjectorOptions options = {
        .name = "tally",
        .schema = "tally",
        .streams = streams,
        .database_url = database_url,
        .pool = tally->pool,
        .flush_max = 500,
        .flush_bytes = tally->flush_bytes,
        .flush_ms = 10,
        .begin_at_us = tally->begin_at_us};
    const ProjectorHandlers *chosen = tally->holds_from != 0 ? &holding
                                      : tally->folds_on      ? &folding_on
                                                             : &handlers;
    tally->projector = projector_new(on->bus, &options, chosen, tally);
}

static void tally_stop(Rig *on, Tally *tally)
{
    on->done = false;
    projector_stop(tally->projector, on_rig_done, on);
    WAIT_FLAG(on, on->done);
    projector_free(tally->projector);
    on->done = false;
    db_pool_close(tally->pool, on_rig_done, on);
    WAIT_FLAG(on, on->done);
}

static int open_rig(void **state)
{
    (void)state;
    database_url = getenv("STENTOR_TEST_DATABASE_URL");
    rig_open(&rig, getenv("STENTOR_TEST_NATS_URL"));
    rig_fresh(&rig, 0);
    sql("SET client_min_messages = warning; DROP SCHEMA IF EXISTS tally CASCADE; CREATE SCHEMA "
        "tally;"
        "CREATE TABLE tally.counted (n bigint NOT NULL);"
        "CREATE TABLE tally.beside (n bigint NOT NULL);"
        "CREATE TABLE tally.positions (projection text NOT NULL, stream text NOT NULL, sequence "
        "bigint NOT NULL,"
        " stream_created_at timestamptz NOT NULL, stored_at timestamptz, PRIMARY KEY (projection, "
        "stream))");
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static void rows_and_sequence_move_together(void **state)
{
    (void)state;
    Tally tally = {0};
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 2000);
    tally_start(&rig, &tally);
    WAIT(&rig, counted() == 2000);
    assert_int_equal(stored(), 2000);
    publish_many(&rig, "ntf.status.acme.email.sent", "t", 10);
    WAIT(&rig, counted() == 2010);
    assert_int_equal(stored(), 2010);
    assert_true(projector_active(tally.projector));
    WAIT(&rig, projector_lag(tally.projector) == 0);
    tally_stop(&rig, &tally);
}

static void a_transaction_ends_at_its_bytes_before_its_number_is_reached(void **state)
{
    (void)state;
    Tally tally = {.flush_bytes = 100};
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 400); // of three bytes at most
    tally_start(&rig, &tally);
    WAIT(&rig, counted() == 400);
    assert_in_range(tally.most_bytes, 100, 2 * 100 + 3);
    tally_stop(&rig, &tally);
}

static void it_goes_on_from_the_stored_sequence(void **state)
{
    (void)state;
    Tally tally = {0};
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 100);
    publish_many(&rig, "ntf.request.low.acme", "r", 50);
    tally_start(&rig, &tally);
    WAIT(&rig, counted() == 150);
    tally_stop(&rig, &tally);
    publish_many(&rig, "ntf.status.acme.email.sent", "t", 7);
    Tally next = {0};
    tally_start(&rig, &next);
    WAIT(&rig, counted() == 157);
    assert_int_equal(next.folds, 7);
    tally_stop(&rig, &next);
}

static void a_new_projection_may_begin_at_a_time(void **state)
{
    (void)state;
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 40);
    pass_ms(&rig, 50);
    Tally tally = {.begin_at_us = clock_now_us()};
    pass_ms(&rig, 50);
    publish_many(&rig, "ntf.status.acme.email.sent", "t", 5);
    tally_start(&rig, &tally);
    WAIT(&rig, counted() == 5);
    assert_int_equal(stored(), 45);
    tally_stop(&rig, &tally);
    Tally next = {.begin_at_us = tally.begin_at_us}; // what was folded decides from then on
    publish_many(&rig, "ntf.status.acme.email.sent", "u", 3);
    tally_start(&rig, &next);
    WAIT(&rig, counted() == 8);
    assert_int_equal(next.folds, 3);
    tally_stop(&rig, &next);
}

static void a_stop_flushes_what_is_folded(void **state)
{
    (void)state;
    Tally tally = {0};
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 30);
    tally_start(&rig, &tally);
    WAIT(&rig, tally.folds == 30);
    tally_stop(&rig, &tally);
    assert_int_equal(counted(), 30);
}

static void a_late_twin_cannot_write(void **state)
{
    (void)state;
    Tally tally = {0};
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 10);
    tally_start(&rig, &tally);
    WAIT(&rig, counted() == 10);
    // Another process moved the sequence meanwhile: what this one folds from now on must not be
    // written on top.
    sql("UPDATE tally.positions SET sequence = 15, stored_at = NULL WHERE stream = 'STATUS'");
    publish_many(&rig, "ntf.status.acme.email.sent", "t", 10);
    WAIT(&rig, stored() == 20);
    assert_int_equal(counted(), 15); // 16..20, from the new position; never 11..15
    assert_int_equal(tally.drops, 1);
    assert_null(projector_failure(tally.projector));
    tally_stop(&rig, &tally);
}

// A twin that met a log without its tail came to the same sequence: another message.
static void a_late_twin_at_the_same_sequence_cannot_write(void **state)
{
    (void)state;
    Tally tally = {0};
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 10);
    tally_start(&rig, &tally);
    WAIT(&rig, counted() == 10);
    sql("UPDATE tally.positions SET stored_at = stored_at - interval '1 ms'");
    publish_many(&rig, "ntf.status.acme.email.sent", "t", 10);
    WAIT(&rig, stored() == 20);
    assert_int_equal(tally.drops, 1);
    assert_null(projector_failure(tally.projector));
    tally_stop(&rig, &tally);
}

static void a_lost_tail_is_folded_again(void **state)
{
    (void)state;
    Tally tally = {0}, next = {0};
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 10);
    tally_start(&rig, &tally);
    WAIT(&rig, counted() == 10);
    assert_int_equal(projector_tails_lost(tally.projector), 0);
    tally_stop(&rig, &tally);
    // As after a loss of 5: more was folded than there is. What the message was, its time tells.
    sql("UPDATE tally.positions SET sequence = 15, stored_at = stored_at + interval '1 s'");
    log_level_set(LOG_ERROR);
    publish_many(&rig, "ntf.status.acme.email.sent", "t", 1);
    tally_start(&rig, &next);
    WAIT(&rig, counted() == 21);
    assert_int_equal(stored(), 11);
    assert_int_equal(
        sql("SELECT count(*) FROM tally.positions WHERE stored_at BETWEEN now() - interval '1 min' "
            "AND now()"),
        1);
    assert_int_equal(projector_tails_lost(next.projector), 1);
    tally_stop(&rig, &next);
}

static void a_stand_by_takes_over(void **state)
{
    (void)state;
    Tally first = {0}, second = {0};
    Rig other;
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 10);
    tally_start(&rig, &first);
    WAIT(&rig, counted() == 10);
    rig_open(&other, getenv("STENTOR_TEST_NATS_URL"));
    tally_start(&other, &second);
    pass_ms(&other, 300);
    assert_false(projector_active(second.projector));
    tally_stop(&rig, &first);
    publish_many(&rig, "ntf.status.acme.email.sent", "t", 10);
    WAIT(&other, counted() == 20);
    assert_int_equal(second.folds, 10);
    tally_stop(&other, &second);
    rig_close(&other);
}

static void a_dead_database_connection_loses_and_doubles_nothing(void **state)
{
    (void)state;
    Tally tally = {0};
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 1000);
    tally_start(&rig, &tally);
    WAIT(&rig, tally.commits > 0);
    sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> "
        "pg_backend_pid() AND "
        "backend_type = 'client backend'");
    publish_many(&rig, "ntf.status.acme.email.sent", "t", 1000);
    WAIT(&rig, stored() == 2000);
    assert_int_equal(counted(), 2000);
    tally_stop(&rig, &tally);
}

static void a_drop_folds_again(void **state)
{
    (void)state;
    Tally tally = {0};
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 10);
    tally_start(&rig, &tally);
    WAIT(&rig, counted() == 10);
    sql("DELETE FROM tally.positions; DELETE FROM tally.counted"); // an operator resets the
                                                                   // projection
    publish_many(&rig, "ntf.status.acme.email.sent", "t", 5);
    WAIT(&rig, stored() == 15);
    // The first flush was written once without a position, then all came from 1. How many of the
    // five it held is the clock's.
    assert_in_range(counted(), 15 + 1, 15 + 5);
    tally_stop(&rig, &tally);
}

static void held_events_are_folded_again_after_a_drop(void **state)
{
    (void)state;
    Tally tally = {.holds_from = 6};
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 1200); // more than two flushes
    tally_start(&rig, &tally);
    WAIT(&rig, tally.folds == 1200);
    WAIT(&rig, counted() == 5);
    assert_int_equal(stored(), 5);
    projector_reload(tally.projector);
    WAIT(&rig, tally.folds == 1200 + 1195);
    assert_int_equal(counted(), 5);
    tally_stop(&rig, &tally); // it writes nothing of what is held, and ends
    assert_int_equal(stored(), 5);
    Tally next = {0};
    tally_start(&rig, &next);
    WAIT(&rig, counted() == 1200);
    assert_int_equal(next.folds, 1195);
    WAIT(&rig, stored() == 1200);
    tally_stop(&rig, &next);
}

static PGconn *lock_rows(void)
{
    PGconn *conn = sql_connection();
    PQclear(PQexec(conn, "BEGIN; LOCK TABLE tally.counted IN EXCLUSIVE MODE"));
    return conn;
}

static void what_is_folded_during_a_flush_is_the_next_ones(void **state)
{
    (void)state;
    Tally tally = {.folds_on = true};
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 3000);
    PGconn *lock = lock_rows();
    tally_start(&rig, &tally);
    WAIT(&rig, tally.begins == 1 && tally.folded >= 500);
    pass_ms(&rig, 100);
    assert_in_range(tally.in_air, 1, 500 + 512);
    assert_in_range(tally.folded, 500, 500 + 512); // two flushes, and no more
    size_t first = tally.in_air;
    size_t folds = tally.folds;
    // The flush is tried again, as it was.
    sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE application_name = 'projector-test'");
    pass_ms(&rig, 500);
    assert_int_equal(tally.begins, 1);
    assert_int_equal(tally.folds, folds);
    assert_int_equal(stored(), 0);
    PQfinish(lock);
    WAIT(&rig, stored() == 3000);
    assert_int_equal(counted(), 3000);
    assert_int_equal(tally.folds, 3000);
    assert_int_equal(tally.drops, 0);
    assert_int_equal(sql("SELECT count(*) FROM tally.counted WHERE n <= 512 + 500"), tally.begins);
    assert_true(sql("SELECT n FROM tally.counted LIMIT 1") == (long)first);
    tally_stop(&rig, &tally);
}

static void a_drop_during_a_flush_folds_both_again(void **state)
{
    (void)state;
    Tally tally = {.folds_on = true};
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 3000);
    PGconn *lock = lock_rows();
    tally_start(&rig, &tally);
    WAIT(&rig, tally.begins == 1 && tally.folded >= 500);
    size_t lost = tally.folded; // the flush itself may be committed or not
    projector_reload(tally.projector);
    PQfinish(lock);
    WAIT(&rig, stored() == 3000);
    assert_int_equal(counted(), 3000);
    assert_int_equal(tally.drops, 1);
    assert_in_range(tally.folds, 3000 + lost, 3000 + lost + 500 + 512);
    tally_stop(&rig, &tally);
}

static void a_part_beside_is_written_again_with_the_other(void **state)
{
    (void)state;
    Tally tally = {.folds_on = true, .two_parts = true};
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 3000);
    PGconn *lock = lock_rows();
    tally_start(&rig, &tally);
    WAIT(&rig, sql("SELECT count(*) FROM tally.beside") == 1);
    long first = (long)tally.in_air;
    pass_ms(&rig, 100);
    assert_int_equal(stored(), 0); // one of two is committed
    sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE application_name = 'projector-test'");
    WAIT(&rig, sql("SELECT count(*) FROM tally.beside") == 2);
    assert_int_equal(stored(), 0);
    PQfinish(lock);
    WAIT(&rig, stored() == 3000);
    assert_int_equal(counted(), 3000);
    assert_int_equal(sql("SELECT sum(n) FROM tally.beside"), 3000 + first);
    assert_int_equal(tally.folds, 3000);
    tally_stop(&rig, &tally);
}

static void a_stop_during_a_flush_writes_what_was_folded_meanwhile(void **state)
{
    (void)state;
    Tally tally = {.folds_on = true};
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 5000);
    PGconn *lock = lock_rows();
    tally_start(&rig, &tally);
    WAIT(&rig, tally.begins == 1 && tally.folded >= 500);
    size_t folds = tally.folds;
    rig.done = false;
    projector_stop(tally.projector, on_rig_done, &rig);
    PQfinish(lock);
    WAIT_FLAG(&rig, rig.done);
    assert_int_equal(tally.folds, folds); // nothing more is read
    assert_int_equal(counted(), folds);
    assert_int_equal(stored(), folds);
    projector_free(tally.projector);
    rig.done = false;
    db_pool_close(tally.pool, on_rig_done, &rig);
    WAIT_FLAG(&rig, rig.done);
}

// After a start nothing was folded in front of what is held: the position stays as it is stored.
static void the_first_event_may_be_held(void **state)
{
    (void)state;
    Tally tally = {.holds_from = 1};
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 3);
    publish_many(&rig, "ntf.request.low.acme", "r", 3);
    tally_start(&rig, &tally);
    WAIT(&rig, tally.folds == 6);
    pass_ms(&rig, 100);
    assert_int_equal(sql("SELECT count(*) FROM tally.positions WHERE stream = 'STATUS'"), 0);
    tally_stop(&rig, &tally);
}

static void the_unreadable_has_a_dead_letter_and_is_passed(void **state)
{
    (void)state;
    Tally tally = {.poison = true};
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 10);
    tally_start(&rig, &tally);
    WAIT(&rig, stored() == 10);
    assert_int_equal(counted(), 9);
    assert_int_equal(rig_count(&rig, "DEAD"), 1);
    tally_stop(&rig, &tally);
}

static void rows_that_postgres_refuses_stop_it_with_a_reason(void **state)
{
    (void)state;
    Tally tally = {.bad_rows = true};
    log_level_set(LOG_ERROR);
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 10);
    tally_start(&rig, &tally);
    WAIT(&rig, projector_failure(tally.projector) != NULL);
    assert_non_null(strstr(projector_failure(tally.projector), "null value"));
    assert_int_equal(stored(), 0);
    tally_stop(&rig, &tally);
}

static void a_recreated_stream_stops_it_with_a_reason(void **state)
{
    (void)state;
    Tally tally = {0}, next = {0};
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 10);
    tally_start(&rig, &tally);
    WAIT(&rig, counted() == 10);
    tally_stop(&rig, &tally);
    rig_fresh(&rig, 0);
    tally_start(&rig, &next);
    WAIT(&rig, projector_failure(next.projector) != NULL);
    assert_non_null(strstr(projector_failure(next.projector), "was recreated"));
    assert_false(projector_active(next.projector));
    tally_stop(&rig, &next);
}

// nats-server 2.9.10 reports another creation time after an update and two starts.
static void a_creation_time_that_the_server_changed_is_taken_over(void **state)
{
    (void)state;
    Tally tally = {0}, next = {0};
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 10);
    publish_many(&rig, "ntf.request.low.acme", "r", 5);
    tally_start(&rig, &tally);
    WAIT(&rig, counted() == 15);
    tally_stop(&rig, &tally);
    sql("UPDATE tally.positions SET stream_created_at = stream_created_at - interval '1 hour'");
    tally_start(&rig, &next); // with nothing to fold
    WAIT(
        &rig, sql("SELECT count(*) FROM tally.positions WHERE stream_created_at > now() - "
                  "interval '30 min'") == 2);
    assert_int_equal(next.folds + next.commits + next.drops, 0);
    publish_many(&rig, "ntf.status.acme.email.sent", "t", 5);
    WAIT(&rig, counted() == 20);
    assert_int_equal(next.folds, 5);
    assert_null(projector_failure(next.projector));
    tally_stop(&rig, &next);
}

static void a_stream_with_other_messages_still_stops_it(void **state)
{
    (void)state;
    Tally tally = {0}, next = {0};
    publish_many(&rig, "ntf.status.acme.email.sent", "s", 10);
    tally_start(&rig, &tally);
    WAIT(&rig, counted() == 10);
    tally_stop(&rig, &tally);
    log_level_set(LOG_ERROR);
    sql("UPDATE tally.positions SET stream_created_at = stream_created_at - interval '1 hour',"
        " stored_at = stored_at - interval '1 hour'");
    tally_start(&rig, &next);
    WAIT(&rig, projector_failure(next.projector) != NULL);
    assert_non_null(strstr(projector_failure(next.projector), "was recreated"));
    tally_stop(&rig, &next);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rows_and_sequence_move_together),
        TEST(a_transaction_ends_at_its_bytes_before_its_number_is_reached),
        TEST(it_goes_on_from_the_stored_sequence),
        TEST(a_new_projection_may_begin_at_a_time),
        TEST(a_stop_flushes_what_is_folded),
        TEST(a_late_twin_cannot_write),
        TEST(a_late_twin_at_the_same_sequence_cannot_write),
        TEST(a_lost_tail_is_folded_again),
        TEST(a_stand_by_takes_over),
        TEST(a_dead_database_connection_loses_and_doubles_nothing),
        TEST(a_drop_folds_again),
        TEST(held_events_are_folded_again_after_a_drop),
        TEST(the_first_event_may_be_held),
        TEST(what_is_folded_during_a_flush_is_the_next_ones),
        TEST(a_drop_during_a_flush_folds_both_again),
        TEST(a_part_beside_is_written_again_with_the_other),
        TEST(a_stop_during_a_flush_writes_what_was_folded_meanwhile),
        TEST(the_unreadable_has_a_dead_letter_and_is_passed),
        TEST(rows_that_postgres_refuses_stop_it_with_a_reason),
        TEST(a_recreated_stream_stops_it_with_a_reason),
        TEST(a_creation_time_that_the_server_changed_is_taken_over),
        TEST(a_stream_with_other_messages_still_stops_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
