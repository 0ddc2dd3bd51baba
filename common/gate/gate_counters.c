// SPDX-License-Identifier: Apache-2.0
#include "common/gate/gate_counters.h"

#include <assert.h>

#define MINUTE_US INT64_C(60000000)
#define DAY_US (1440 * MINUTE_US)

// Where what is over the limit is suppressed, what a minute has no place for takes none of the day:
// it is never sent. Such a counter's minute_drain says so, and the limit: this and the limit more.
// In its minutes nothing is left over either way.
#define DRAIN_OF_CAPPED (INT64_C(1) << 33)

// A window that has passed takes the limit's own number of places with it; what is still over waits
// on. Rows are locked in one order, so that two groups never wait for each other.
#define LEFT_OVER(window)                                                                          \
    "greatest(0, c." window "_used - excluded." window "_drain * greatest(0, excluded." window     \
    "_at - c." window "_at))"

#define MINUTE_LEFT LEFT_OVER("minute")
#define DAY_LEFT LEFT_OVER("day")

static const DbStatement TAKE = {
    .name = "gate_take_places",
    .sql =
        "WITH input AS (SELECT * FROM unnest($3::int4[], $4::text[], $5::text[], $6::int8[], "
        "$7::int8[], $8::int8[]) AS i (n, tenant_id, subject, wanted, minute_drain, day_drain)), "
        "taken AS (INSERT INTO ingest.gate_counters AS c (tenant_id, subject, minute_at, "
        "minute_used, minute_drain, day_at, day_used, day_drain) "
        "SELECT tenant_id, subject, $1::int8, wanted, minute_drain, $2::int8, "
        "CASE WHEN minute_drain > $9::int8 THEN least(wanted, minute_drain - $9::int8) ELSE wanted "
        "END, day_drain "
        "FROM input ORDER BY tenant_id COLLATE \"C\", subject COLLATE \"C\" "
        "ON CONFLICT (tenant_id, subject) DO UPDATE SET "
        "minute_used = " MINUTE_LEFT " + excluded.minute_used, "
        "day_used = " DAY_LEFT " + CASE WHEN excluded.minute_drain > $9::int8 THEN "
        "least(excluded.minute_used, greatest(0, excluded.minute_drain - $9::int8 - " MINUTE_LEFT
        ")) ELSE excluded.day_used END, "
        "minute_at = greatest(c.minute_at, excluded.minute_at), "
        "day_at = greatest(c.day_at, excluded.day_at), "
        "minute_drain = excluded.minute_drain, day_drain = excluded.day_drain "
        "RETURNING tenant_id, subject, minute_used, day_used) "
        "SELECT i.n, t.minute_used - i.wanted, t.day_used FROM input i "
        "JOIN taken t ON t.tenant_id = i.tenant_id AND t.subject = i.subject",
};

// The same places, and none is taken.
static const DbStatement LOOK = {
    .name = "gate_places",
    .sql = "SELECT n, minute_used, day_used FROM ingest.gate_places($1::int8, $2::int8, "
           "$3::text[], $4::text[], $5::int8[], $6::int8[])",
};

void counters_init(Counters *counters, Arena *arena, size_t cap)
{
    *counters = (Counters){
        .arena = arena,
        .by_name = map_new(NULL),
        .items = arena_array(arena, cap, sizeof *counters->items),
        .cap = cap,
    };
}

void counters_done(Counters *counters)
{
    map_free(counters->by_name);
    counters->by_name = NULL;
}

// "rcp_...:sms"; neither an id nor a hash has a colon.
static Str subject_of(const Counters *counters, const Counter *what)
{
    return what->channel == CHANNEL_NONE
               ? arena_str(counters->arena, what->subject)
               : str_from(arena_printf(
                     counters->arena, STR_FMT ":%s", STR_ARG(what->subject),
                     channel_name(what->channel)));
}

Counter *counters_want(Counters *counters, const Counter *what)
{
    Str subject = subject_of(counters, what);
    Str name = str_from(arena_printf(
        counters->arena, STR_FMT "/" STR_FMT, STR_ARG(what->tenant), STR_ARG(subject)));
    Counter *counter = map_get(counters->by_name, name);
    if (counter == NULL) {
        assert(counters->count < counters->cap);
        counter = arena_copy(counters->arena, what, sizeof *what);
        counter->subject = subject;
        counter->wanted = 0;
        counters->items[counters->count++] = counter;
        map_put(counters->by_name, name, counter);
    }
    counter->wanted++;
    return counter;
}

static bool suppresses(const Counter *counter)
{
    return counter->over_limit == OVER_LIMIT_SUPPRESS;
}

// How many places a window that passes takes with it. What is suppressed does not wait, so nothing
// is left over then, nor where there is no limit.
static int64_t drain_of(const Counter *counter, uint32_t limit)
{
    return limit == 0 || suppresses(counter) ? INT32_MAX : limit;
}

static int64_t minute_drain_of(const Counter *counter)
{
    uint32_t limit = counter->limits.per_minute;
    bool capped = limit > 0 && suppresses(counter);
    return capped ? DRAIN_OF_CAPPED + limit : drain_of(counter, limit);
}

// How many of the wanted places were taken in the day.
static int64_t taken_of_day(const Counter *counter)
{
    uint32_t limit = counter->limits.per_minute;
    int64_t room = limit - counter->before.of_minute;
    bool capped = limit > 0 && suppresses(counter) && room < counter->wanted;
    return !capped ? counter->wanted : room > 0 ? room : 0;
}

static void look(const Counters *counters, DbTxn *txn, int64_t now_us)
{
    DbParams *p = db_txn_add(txn, &LOOK, NULL);
    db_i64(p, now_us / MINUTE_US);
    db_i64(p, now_us / DAY_US);
    DbArray *tenants = db_array(p, DB_TEXT);
    DbArray *subjects = db_array(p, DB_TEXT);
    DbArray *minute_drains = db_array(p, DB_I64);
    DbArray *day_drains = db_array(p, DB_I64);
    for (size_t i = 0; i < counters->count; i++) {
        const Counter *counter = counters->items[i];
        db_push_text(tenants, counter->tenant);
        db_push_text(subjects, counter->subject);
        db_push_int(minute_drains, minute_drain_of(counter));
        db_push_int(day_drains, drain_of(counter, counter->limits.per_day));
    }
}

void counters_ask(const Counters *counters, DbTxn *txn, int64_t now_us)
{
    if (counters->dry) {
        look(counters, txn, now_us);
        return;
    }
    DbParams *p = db_txn_add(txn, &TAKE, NULL);
    db_i64(p, now_us / MINUTE_US);
    db_i64(p, now_us / DAY_US);
    DbArray *numbers = db_array(p, DB_I32);
    DbArray *tenants = db_array(p, DB_TEXT);
    DbArray *subjects = db_array(p, DB_TEXT);
    DbArray *wanted = db_array(p, DB_I64);
    DbArray *minute_drains = db_array(p, DB_I64);
    DbArray *day_drains = db_array(p, DB_I64);
    for (size_t i = 0; i < counters->count; i++) {
        const Counter *counter = counters->items[i];
        db_txn_tenant(txn, counter->tenant);
        db_push_int(numbers, (int64_t)i);
        db_push_text(tenants, counter->tenant);
        db_push_text(subjects, counter->subject);
        db_push_int(wanted, counter->wanted);
        db_push_int(minute_drains, minute_drain_of(counter));
        db_push_int(day_drains, drain_of(counter, counter->limits.per_day));
    }
    db_i64(p, DRAIN_OF_CAPPED);
    // Lost in a crash they are too few by an instant's worth; that is cheaper than a second fsync.
    db_txn_lazy_commit(txn);
}

bool counters_read(Counters *counters, const DbTxn *txn, Error *err)
{
    const PGresult *res = db_txn_result(txn, 0);
    if ((size_t)db_rows(res) != counters->count) {
        return error_set(
            err, ERROR_TRANSIENT, "Postgres answered for %d of %zu counters of limits",
            db_rows(res), counters->count);
    }
    for (int row = 0; row < db_rows(res); row++) {
        Counter *counter = counters->items[(size_t)db_get_int(res, row, 0)];
        counter->before.of_minute = db_get_int(res, row, 1);
        int64_t taken = counters->dry ? 0 : taken_of_day(counter);
        counter->before.of_day = db_get_int(res, row, 2) - taken;
    }
    return true;
}

LimitPlace counters_next(Counter *counter)
{
    counter->given++;
    return (LimitPlace){
        .of_minute = counter->before.of_minute + counter->given,
        .of_day = counter->before.of_day + counter->given,
    };
}
