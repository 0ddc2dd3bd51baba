// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/ledger/ledger.h"

#include <assert.h>

// One statement claims and, for the keys that have a row already, reads it. The main query sees the
// table as it was before the insert, so a row that another process commits in between is in neither
// part: it is read later. LATERAL ... LIMIT 1 and the role's enable_seqscan = off
// (bootstrap.sql) keep it a look-up by primary key whatever size the planner assumes for the
// table. NOT IN is hashed whatever size it assumes for the batch; a join may be quadratic.
//
// wanted: the keys; unclaimed: which of them may be inserted; row: which attempt's row is read.
#define CLAIM(wanted, unclaimed, row)                                                              \
    "WITH wanted AS MATERIALIZED (" wanted "),"                                                    \
    " claimed AS ("                                                                                \
    "  INSERT INTO dispatcher.ledger (created_at, notification_id, attempt, tenant_id,"            \
    "    state, owner, lease_until, claimed_at, vendor, credential, vendor_key)"                   \
    "  SELECT created_at, notification_id, attempt, tenant_id, 'claimed', $5::text,"               \
    "         now() + $6::int8 * interval '1 millisecond', $7::timestamptz,"                       \
    "         vendor, credential, vendor_key FROM wanted" unclaimed                                \
    "  ON CONFLICT (created_at, notification_id, attempt) DO NOTHING"                              \
    "  RETURNING notification_id, attempt),"                                                       \
    " missed AS MATERIALIZED ("                                                                    \
    "  SELECT * FROM wanted WHERE (notification_id, attempt) NOT IN"                               \
    "   (SELECT notification_id, attempt FROM claimed))"                                           \
    " SELECT w.n, l.state, l.owner,"                                                               \
    "        CASE WHEN l.lease_until > now()"                                                      \
    "             THEN least(ceil(extract(epoch FROM l.lease_until - now()) * 1000),"              \
    "               86400000)::int8 ELSE 0 END,"                                                   \
    "        l.claimed_at, l.finished_at, l.due_at, l.rung, l.unknown_count,"                      \
    "        l.vendor, l.vendor_message_id, l.code, l.enhanced_code, l.reply, l.attempt,"          \
    "        l.credential, l.vendor_key, l.reply_class, l.next_step, l.segments,"                  \
    "        l.cost_micros, l.currency"                                                            \
    " FROM missed w LEFT JOIN LATERAL (SELECT * FROM dispatcher.ledger x"                          \
    "  WHERE x.created_at = w.created_at AND x.notification_id = w.notification_id"                \
    "    AND x.attempt " row " LIMIT 1) l ON true"

static const DbStatement claim_statement = {
    "dispatch_claim",
    CLAIM(
        "SELECT * FROM unnest($1::timestamptz[], $2::text[], $3::int2[], $4::text[], $8::text[],"
        " $9::text[], $10::text[]) WITH ORDINALITY AS w(created_at, notification_id, attempt,"
        " tenant_id, vendor, credential, vendor_key, n)",
        "", "= w.attempt"),
};

// The same for a batch with retries in it, which first look for an earlier attempt that was settled
// as sent, or is a call that was not reported to be without an answer (due_at). Then nothing is
// inserted, and that attempt's row is read. It is a separate statement because the look-up costs 5
// us a mail.
static const DbStatement claim_retries_statement = {
    "dispatch_claim_retries",
    CLAIM(
        "SELECT w.*, s.attempt AS settled"
        " FROM unnest($1::timestamptz[], $2::text[], $3::int2[], $4::text[], $8::text[],"
        " $9::text[], $10::text[], $11::bool[]) WITH ORDINALITY AS w(created_at, notification_id,"
        " attempt, tenant_id, vendor, credential, vendor_key, retry, n)"
        " LEFT JOIN LATERAL (SELECT x.attempt FROM dispatcher.ledger x"
        "  WHERE w.retry AND x.created_at = w.created_at AND x.notification_id = w.notification_id"
        "    AND x.attempt < w.attempt AND x.state = 'sent'"
        "    AND (x.settled_at IS NOT NULL OR x.due_at IS NOT NULL)"
        "  ORDER BY x.attempt DESC LIMIT 1) s ON true",
        " WHERE settled IS NULL", "IN (w.attempt, w.settled) ORDER BY x.attempt DESC"),
};

#define LEDGER_INSERT                                                                              \
    "INSERT INTO dispatcher.ledger (created_at, notification_id, attempt, tenant_id, state, "      \
    "owner, "                                                                                      \
    "lease_until, claimed_at)"

#define LEDGER_RETURNING                                                                           \
    " RETURNING notification_id, attempt, unknown_count, settled_at IS NOT NULL"

// A claim on which a proof was noted (settled_at) can only become "sent", whichever process ends
// it. One that may have been sent stays at its vendor, and keeps the time since when that vendor
// may have it; a released one goes where $8 says.
static const DbStatement take_over_statement = {
    "dispatch_take_over",
    "INSERT INTO dispatcher.ledger (created_at, notification_id, attempt, tenant_id, state, owner,"
    "  lease_until, claimed_at, vendor, credential, vendor_key)"
    " SELECT created_at, notification_id, attempt, tenant_id, 'claimed', $5::text,"
    "        now() + $6::int8 * interval '1 millisecond', $7::timestamptz,"
    "        vendor, credential, vendor_key"
    " FROM unnest($1::timestamptz[], $2::text[], $3::int2[], $4::text[], $8::text[], $9::text[],"
    "      $10::text[])"
    "      AS w(created_at, notification_id, attempt, tenant_id, vendor, credential, vendor_key)"
    " ON CONFLICT (created_at, notification_id, attempt) DO UPDATE"
    " SET state = CASE WHEN ledger.settled_at IS NULL THEN 'claimed' ELSE 'sent' END,"
    "     owner = excluded.owner, lease_until = excluded.lease_until,"
    "     claimed_at = CASE WHEN ledger.settled_at IS NULL AND ledger.owner IN ('', excluded.owner)"
    "       THEN excluded.claimed_at ELSE ledger.claimed_at END,"
    "     unknown_count = ledger.unknown_count + CASE WHEN ledger.owner IN ('', excluded.owner)"
    "       THEN 0 ELSE 1 END,"
    "     vendor = excluded.vendor, credential = excluded.credential,"
    "     vendor_key = excluded.vendor_key"
    " WHERE ledger.state = 'claimed'"
    "   AND (ledger.lease_until <= now() OR ledger.owner = excluded.owner)"
    // It was moved since it was read: it is read once more.
    "   AND (ledger.owner IN ('', excluded.owner) OR ledger.vendor IS NULL"
    "     OR (ledger.vendor = excluded.vendor"
    "       AND ledger.credential IS NOT DISTINCT FROM excluded.credential))" LEDGER_RETURNING,
};

// The mail was surely not sent, and goes to another vendor under the same claim.
static const DbStatement move_statement = {
    "dispatch_move",
    "INSERT INTO dispatcher.ledger (created_at, notification_id, attempt, tenant_id, state, owner,"
    "  lease_until, claimed_at, vendor, credential, vendor_key)"
    " SELECT created_at, notification_id, attempt, tenant_id, 'claimed', $5::text, now(), now(),"
    "        vendor, credential, vendor_key"
    " FROM unnest($1::timestamptz[], $2::text[], $3::int2[], $4::text[], $6::text[], $7::text[],"
    "      $8::text[])"
    "      AS w(created_at, notification_id, attempt, tenant_id, vendor, credential, vendor_key)"
    " ON CONFLICT (created_at, notification_id, attempt) DO UPDATE"
    " SET vendor = excluded.vendor, credential = excluded.credential,"
    "     vendor_key = excluded.vendor_key"
    " WHERE ledger.owner = excluded.owner AND ledger.state = 'claimed'"
    "   AND ledger.settled_at IS NULL" LEDGER_RETURNING,
};

static const DbStatement park_statement = {
    "dispatch_park",
    LEDGER_INSERT " SELECT created_at, notification_id, attempt, tenant_id, 'parked', $5::text,"
                  "        now() + $6::int8 * interval '1 millisecond', $7::timestamptz"
                  " FROM unnest($1::timestamptz[], $2::text[], $3::int2[], $4::text[])"
                  "      AS w(created_at, notification_id, attempt, tenant_id)"
                  " ON CONFLICT (created_at, notification_id, attempt) DO UPDATE"
                  " SET state = CASE WHEN ledger.settled_at IS NULL THEN 'parked' ELSE 'sent' END,"
                  "     finished_at = CASE WHEN ledger.settled_at IS NULL THEN excluded.claimed_at "
                  "ELSE ledger.finished_at END,"
                  "     unknown_count = ledger.unknown_count + 1"
                  " WHERE ledger.state = 'claimed' AND ledger.lease_until <= now() AND "
                  "ledger.owner NOT IN ('', excluded.owner)" LEDGER_RETURNING,
};

static const DbStatement outcome_statement = {
    "dispatch_outcome",
    "INSERT INTO dispatcher.ledger (created_at, notification_id, attempt, tenant_id, state, owner,"
    "  lease_until, claimed_at, unknown_count, finished_at, vendor, vendor_message_id, code,"
    "  enhanced_code, reply, due_at, rung, reply_class, next_step, segments, cost_micros,"
    "  currency)"
    " SELECT created_at, notification_id, attempt, tenant_id, state, $5::text, now(), claimed_at,"
    "  unknown_count, finished_at, vendor, vendor_message_id, code, enhanced_code, reply, due_at,"
    "  rung, reply_class, next_step, segments, cost_micros, currency"
    " FROM unnest($1::timestamptz[], $2::text[], $3::int2[], $4::text[], $6::text[],"
    "  $7::timestamptz[], $8::int2[], $9::timestamptz[], $10::text[], $11::text[], $12::text[],"
    "  $13::text[], $14::text[], $15::timestamptz[], $16::int2[], $17::text[], $18::text[],"
    "  $19::int2[], $20::int8[], $21::text[])"
    "  AS o(created_at, notification_id, attempt, tenant_id, state, claimed_at, unknown_count,"
    "       finished_at, vendor, vendor_message_id, code, enhanced_code, reply, due_at, rung,"
    "       reply_class, next_step, segments, cost_micros, currency)"
    " ON CONFLICT (created_at, notification_id, attempt) DO UPDATE"
    " SET state = CASE WHEN ledger.settled_at IS NULL THEN excluded.state ELSE 'sent' END,"
    "     unknown_count = CASE WHEN ledger.settled_at IS NULL OR excluded.state = 'sent' THEN"
    "       excluded.unknown_count ELSE greatest(excluded.unknown_count, 1::int2) END,"
    "     finished_at = excluded.finished_at,"
    // Decided here: no vendor, whatever the claim said; unless one has proved that it had it.
    "     vendor = CASE WHEN ledger.settled_at IS NULL THEN excluded.vendor"
    "       ELSE coalesce(excluded.vendor, ledger.vendor) END,"
    "     credential = CASE WHEN ledger.settled_at IS NULL AND excluded.vendor IS NULL THEN NULL"
    "       ELSE ledger.credential END,"
    "     vendor_message_id = coalesce(excluded.vendor_message_id, ledger.vendor_message_id),"
    "     code = excluded.code, enhanced_code = excluded.enhanced_code, reply = excluded.reply,"
    "     due_at = excluded.due_at, rung = excluded.rung, reply_class = excluded.reply_class,"
    "     next_step = excluded.next_step, segments = excluded.segments,"
    "     cost_micros = excluded.cost_micros, currency = excluded.currency"
    " WHERE ledger.owner = excluded.owner AND (ledger.state = 'claimed'"
    // A repeat of this very statement, whose first COMMIT was not answered:
    "       OR (ledger.finished_at = excluded.finished_at AND (ledger.state = excluded.state"
    "           OR ledger.settled_at IS NOT NULL)))" LEDGER_RETURNING,
};

static const DbStatement release_statement = {
    "dispatch_release",
    LEDGER_INSERT
    " SELECT created_at, notification_id, attempt, tenant_id, 'claimed', $5::text, "
    "'-infinity', now()"
    " FROM unnest($1::timestamptz[], $2::text[], $3::int2[], $4::text[])"
    "      AS w(created_at, notification_id, attempt, tenant_id)"
    " ON CONFLICT (created_at, notification_id, attempt) DO UPDATE"
    " SET owner = '', lease_until = '-infinity'"
    " WHERE ledger.owner = excluded.owner AND ledger.state = 'claimed'" LEDGER_RETURNING,
};

static const DbStatement renew_statement = {
    "dispatch_renew",
    LEDGER_INSERT
    " SELECT created_at, notification_id, attempt, tenant_id, 'claimed', $5::text,"
    "        now() + $6::int8 * interval '1 millisecond', $7::timestamptz"
    " FROM unnest($1::timestamptz[], $2::text[], $3::int2[], $4::text[])"
    "      AS w(created_at, notification_id, attempt, tenant_id)"
    " ON CONFLICT (created_at, notification_id, attempt) DO UPDATE"
    " SET lease_until = excluded.lease_until"
    " WHERE ledger.owner = excluded.owner AND ledger.state = 'claimed'" LEDGER_RETURNING,
};

static const DbStatement partitions_statement = {
    "dispatch_partitions",
    "SELECT stentor.ensure_partitions('dispatcher.ledger', now() - interval '1 month', now() + "
    "interval '2 months')",
};

const char *ledger_state_name(LedgerState state)
{
    switch (state) {
    case LEDGER_NONE:
        return "";
    case LEDGER_CLAIMED:
        return "claimed";
    case LEDGER_SENT:
        return "sent";
    case LEDGER_DEFERRED:
        return "deferred";
    case LEDGER_FAILED:
        return "failed";
    case LEDGER_PARKED:
        return "parked";
    }
    return "";
}

static LedgerState state_from_name(Str name)
{
    for (LedgerState state = LEDGER_CLAIMED; state <= LEDGER_PARKED; state++) {
        if (str_eq(name, str_from(ledger_state_name(state)))) {
            return state;
        }
    }
    return LEDGER_NONE;
}

// $1 .. $4: the keys.
static DbParams *add_keys(
    DbTxn *txn, const DbStatement *statement, const LedgerKey *const *keys, size_t count,
    int *ret_index)
{
    assert(count > 0 && count <= LEDGER_BATCH_MAX);
    DbParams *p = db_txn_add(txn, statement, ret_index);
    DbArray *created = db_array(p, DB_TIME);
    DbArray *ids = db_array(p, DB_TEXT);
    DbArray *attempts = db_array(p, DB_I16);
    DbArray *tenants = db_array(p, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_push_time(created, keys[i]->created_at_us);
        db_push_text(ids, keys[i]->notification_id);
        db_push_int(attempts, keys[i]->attempt);
        db_push_text(tenants, keys[i]->tenant);
        db_txn_tenant(txn, keys[i]->tenant);
    }
    return p;
}

// $5 .. $7
static void add_claim(DbParams *p, const LedgerClaim *claim)
{
    db_text(p, claim->owner);
    db_i64(p, claim->lease_ms);
    db_time(p, claim->now_us);
}

static void push_optional(DbArray *column, Str value)
{
    if (value.len == 0) {
        db_push_null(column);
    } else {
        db_push_text(column, value);
    }
}

static void push_number(DbArray *column, int64_t value)
{
    if (value == 0) {
        db_push_null(column);
    } else {
        db_push_int(column, value);
    }
}

// Three parameters.
static void add_places(DbParams *p, const LedgerPlace *const *places, size_t count)
{
    DbArray *vendors = db_array(p, DB_TEXT);
    DbArray *credentials = db_array(p, DB_TEXT);
    DbArray *vendor_keys = db_array(p, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        push_optional(vendors, places[i]->vendor);
        push_optional(credentials, places[i]->credential);
        push_optional(vendor_keys, places[i]->key);
    }
}

static int add_claim_like(
    DbTxn *txn, const DbStatement *statement, const LedgerKey *const *keys, size_t count,
    const LedgerClaim *claim)
{
    int index = 0;
    add_claim(add_keys(txn, statement, keys, count, &index), claim);
    return index;
}

static const LedgerKey *first_retry(const LedgerKey *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (keys[i]->retry) {
            return keys[i];
        }
    }
    return NULL;
}

int ledger_add_claim(
    DbTxn *txn, const LedgerKey *const *keys, const LedgerPlace *const *places, size_t count,
    const LedgerClaim *claim)
{
    bool retries = first_retry(keys, count) != NULL;
    int index = 0;
    DbParams *p =
        add_keys(txn, retries ? &claim_retries_statement : &claim_statement, keys, count, &index);
    add_claim(p, claim);
    add_places(p, places, count);
    DbArray *flags = retries ? db_array(p, DB_BOOL) : NULL;
    for (size_t i = 0; retries && i < count; i++) {
        db_push_int(flags, keys[i]->retry ? 1 : 0);
    }
    return index;
}

int ledger_add_take_over(
    DbTxn *txn, const LedgerKey *const *keys, const LedgerPlace *const *places, size_t count,
    const LedgerClaim *claim)
{
    int index = 0;
    DbParams *p = add_keys(txn, &take_over_statement, keys, count, &index);
    add_claim(p, claim);
    add_places(p, places, count);
    return index;
}

int ledger_add_move(
    DbTxn *txn, const LedgerKey *const *keys, const LedgerPlace *const *places, size_t count,
    Str owner)
{
    int index = 0;
    DbParams *p = add_keys(txn, &move_statement, keys, count, &index);
    db_text(p, owner);
    add_places(p, places, count);
    return index;
}

int ledger_add_park(
    DbTxn *txn, const LedgerKey *const *keys, size_t count, const LedgerClaim *claim)
{
    return add_claim_like(txn, &park_statement, keys, count, claim);
}

int ledger_add_renew(
    DbTxn *txn, const LedgerKey *const *keys, size_t count, const LedgerClaim *claim)
{
    return add_claim_like(txn, &renew_statement, keys, count, claim);
}

int ledger_add_release(DbTxn *txn, const LedgerKey *const *keys, size_t count, Str owner)
{
    int index = 0;
    DbParams *p = add_keys(txn, &release_statement, keys, count, &index);
    db_text(p, owner);
    return index;
}

int ledger_add_outcomes(
    DbTxn *txn, const LedgerKey *const *keys, const LedgerRow *const *rows, size_t count, Str owner)
{
    int index = 0;
    DbParams *p = add_keys(txn, &outcome_statement, keys, count, &index);
    db_text(p, owner);
    DbArray *states = db_array(p, DB_TEXT);
    DbArray *claimed = db_array(p, DB_TIME);
    DbArray *unknown = db_array(p, DB_I16);
    DbArray *finished = db_array(p, DB_TIME);
    DbArray *vendors = db_array(p, DB_TEXT);
    DbArray *message_ids = db_array(p, DB_TEXT);
    DbArray *codes = db_array(p, DB_TEXT);
    DbArray *enhanced = db_array(p, DB_TEXT);
    DbArray *replies = db_array(p, DB_TEXT);
    DbArray *due = db_array(p, DB_TIME);
    DbArray *rungs = db_array(p, DB_I16);
    DbArray *classes = db_array(p, DB_TEXT);
    DbArray *steps = db_array(p, DB_TEXT);
    DbArray *segments = db_array(p, DB_I16);
    DbArray *costs = db_array(p, DB_I64);
    DbArray *currencies = db_array(p, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        const LedgerRow *row = rows[i];
        db_push_text(states, str_from(ledger_state_name(row->state)));
        db_push_time(claimed, row->claimed_at_us);
        db_push_int(unknown, row->unknown_count);
        db_push_time(finished, row->finished_at_us);
        push_optional(vendors, row->vendor);
        push_optional(message_ids, row->vendor_message_id);
        push_optional(codes, row->code);
        push_optional(enhanced, row->enhanced);
        push_optional(replies, row->reply);
        db_push_time(due, row->due_at_us);
        if (row->rung < 0) {
            db_push_null(rungs);
        } else {
            db_push_int(rungs, row->rung);
        }
        push_optional(classes, row->reply_class);
        push_optional(steps, row->next_step);
        push_number(segments, row->segments);
        push_number(costs, row->cost_micros);
        push_optional(currencies, row->currency);
    }
    return index;
}

size_t ledger_conflicts(const PGresult *res)
{
    return (size_t)db_rows(res);
}

LedgerConflict ledger_conflict(const PGresult *res, size_t n)
{
    int at = (int)n;
    return (LedgerConflict){
        .index = (size_t)db_get_int(res, at, 0) - 1,
        .owner = db_get_text(res, at, 2),
        .wait_ms = db_get_int(res, at, 3),
        .attempt = db_is_null(res, at, 14) ? 0 : (int32_t)db_get_int(res, at, 14),
        .row =
            {
                .state =
                    db_is_null(res, at, 1) ? LEDGER_NONE : state_from_name(db_get_text(res, at, 1)),
                .claimed_at_us = db_get_time(res, at, 4),
                .finished_at_us = db_get_time(res, at, 5),
                .due_at_us = db_get_time(res, at, 6),
                .rung = db_is_null(res, at, 7) ? -1 : (int32_t)db_get_int(res, at, 7),
                .unknown_count = db_is_null(res, at, 8) ? 0 : (int32_t)db_get_int(res, at, 8),
                .vendor = db_get_text(res, at, 9),
                .vendor_message_id = db_get_text(res, at, 10),
                .code = db_get_text(res, at, 11),
                .enhanced = db_get_text(res, at, 12),
                .reply = db_get_text(res, at, 13),
                .credential = db_get_text(res, at, 15),
                .vendor_key = db_get_text(res, at, 16),
                .reply_class = db_get_text(res, at, 17),
                .next_step = db_get_text(res, at, 18),
                .segments = db_is_null(res, at, 19) ? 0 : (uint32_t)db_get_int(res, at, 19),
                .cost_micros = db_is_null(res, at, 20) ? 0 : db_get_int(res, at, 20),
                .currency = db_get_text(res, at, 21),
            },
    };
}

LedgerHit ledger_hit(const PGresult *res, size_t n)
{
    int at = (int)n;
    return (LedgerHit){
        .notification_id = db_get_text(res, at, 0),
        .attempt = (int32_t)db_get_int(res, at, 1),
        .unknown_count = (int32_t)db_get_int(res, at, 2),
        .settled = db_get_int(res, at, 3) != 0,
    };
}

void ledger_add_partitions(DbTxn *txn)
{
    db_txn_add(txn, &partitions_statement, NULL);
}
