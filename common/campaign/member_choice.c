// SPDX-License-Identifier: Apache-2.0
#include "common/campaign/member_choice.h"

#include <jansson.h>

// clang-format off
// Look-ups by key only, whatever the planner believes of the tables' sizes.
static const DbStatement BY_KEY = {"member_by_key",
    "SELECT set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'off', true)"};

#define ALTERNATIVES \
    "WITH alternatives AS MATERIALIZED (SELECT * FROM jsonb_to_recordset($3::jsonb)" \
    "  AS a (labels text[], locales text[], identity_types text[], consent bool)), candidates AS MATERIALIZED ("

// The consent that counts is the most particular one, as for the gate (common/model/rules/gate.h). OFFSET 0 leaves each sub-query
// a look-up of its own.
#define CHOSEN \
    "), matches AS MATERIALIZED (SELECT c.recipient_id FROM candidates c CROSS JOIN LATERAL" \
    "  (SELECT q.identity_type, lower(coalesce(nullif(q.locale, ''), $6::text)) AS locale FROM people.recipients q" \
    "   WHERE q.tenant_id = $1::text AND q.recipient_id = c.recipient_id AND q.sequence > 0 OFFSET 0) r" \
    " WHERE EXISTS (SELECT FROM alternatives a WHERE" \
    "  (a.identity_types IS NULL OR r.identity_type = ANY (a.identity_types))" \
    "  AND (a.locales IS NULL OR EXISTS (SELECT FROM unnest(a.locales) w (tag) WHERE r.locale = w.tag OR starts_with(r.locale, w.tag || '-')))" \
    "  AND NOT EXISTS (SELECT FROM unnest(a.labels) w (label) WHERE NOT EXISTS (SELECT FROM people.labels l" \
    "   WHERE l.label = w.label AND l.tenant_id = $1::text AND l.recipient_id = c.recipient_id OFFSET 0))" \
    "  AND (a.consent IS NULL OR coalesce((SELECT s.is_granted FROM people.consents s WHERE s.tenant_id = $1::text" \
    "   AND s.recipient_id = c.recipient_id AND s.category IN ($4::text, 'any') AND s.channel IN ($5::text, 'any')" \
    "   ORDER BY s.category = 'any', s.channel = 'any' LIMIT 1), false)))" \
    ")" \
    " SELECT (SELECT string_agg(m.recipient_id, ' ' ORDER BY m.recipient_id) FROM matches m), (SELECT count(*) FROM matches)," \
    " (SELECT count(*) FROM candidates), (SELECT max(c.recipient_id) FROM candidates c), $8::text[] IS NULL"

static const DbStatement OF_TENANT = {"member_page_of_tenant", ALTERNATIVES
    "SELECT r.recipient_id FROM people.recipients r WHERE r.tenant_id = $1::text AND r.recipient_id > $2::text"
    " AND r.recipient_id <> '' ORDER BY r.recipient_id LIMIT $7::int4" CHOSEN};
static const DbStatement OF_LABELS = {"member_page_of_labels", ALTERNATIVES
    "SELECT DISTINCT l.recipient_id FROM unnest($8::text[]) AS w (label) CROSS JOIN LATERAL (SELECT q.recipient_id FROM people.labels q"
    " WHERE q.label = w.label AND q.tenant_id = $1::text AND q.recipient_id > $2::text ORDER BY q.recipient_id LIMIT $7::int4) l"
    " ORDER BY l.recipient_id LIMIT $7::int4" CHOSEN};
enum { IDS, MATCHES, CANDIDATES, LAST };

static const DbStatement STORE = {"member_store",
    "WITH moved AS (UPDATE ingest.batches b SET chosen_after = $4::text, is_chosen = $5::bool, total = b.total + $6::int8,"
    "  chunks = b.chunks + CASE WHEN $6::int8 > 0 THEN 1 ELSE 0 END, lease_until = now() + $8::int8 * interval '1 millisecond',"
    "  status = CASE WHEN $5::bool AND b.total + $6::int8 = 0 THEN 'completed' ELSE b.status END,"
    "  ended_at = CASE WHEN $5::bool AND b.total + $6::int8 = 0 THEN now() ELSE b.ended_at END"
    "  WHERE b.id = $1::text AND b.holder = $2::text AND b.status = 'running' AND NOT b.is_chosen"
    "  AND coalesce(b.chosen_after, '') = $3::text AND b.chunks = $9::int4"
    "  RETURNING b.id, b.tenant_id, b.status, b.paused, b.total, b.chunks),"
    " stored AS (INSERT INTO ingest.batch_chunks (batch_id, number, tenant_id, part, ordinal, first_index, members, data)"
    "  SELECT m.id, $9::int4, m.tenant_id, 0, $9::int4, m.total - $6::int8, $6::int8, $7::bytea FROM moved m WHERE $6::int8 > 0)"
    " SELECT status, paused, total, chunks FROM moved"};
// clang-format on

// The first label of each alternative: whoever is to match has one of them. An alternative without
// labels: false, for anybody may match.
static bool push_labels(DbParams *p, Str query)
{
    json_t *list = json_loadb(query.ptr, query.len, 0, NULL);
    size_t i = 0;
    const json_t *one = NULL;
    bool all = true;
    json_array_foreach(list, i, one)
    {
        all = all && json_array_size(json_object_get(one, "labels")) > 0;
    }
    DbArray *labels = all && p != NULL ? db_array(p, DB_TEXT) : NULL;
    json_array_foreach(list, i, one)
    {
        const json_t *first = json_array_get(json_object_get(one, "labels"), 0);
        if (labels != NULL) {
            db_push_text(labels, str_of(json_string_value(first), json_string_length(first)));
        }
    }
    json_decref(list);
    return all;
}

void member_page_add(DbTxn *txn, const MemberQuery *query, Str after, int32_t look_at)
{
    bool labelled = push_labels(NULL, query->query);
    (void)db_txn_add(txn, &BY_KEY, NULL);
    DbParams *p = db_txn_add(txn, labelled ? &OF_LABELS : &OF_TENANT, NULL);
    db_text(p, query->tenant);
    db_text(p, after);
    db_text(p, query->query);
    db_text(p, str_from(category_name(query->category)));
    db_text(p, str_from(channel_name(query->channel)));
    db_text(p, query->default_locale.len > 0 ? query->default_locale : STR("en-US"));
    db_i32(p, look_at);
    if (labelled) {
        (void)push_labels(p, query->query);
    } else {
        db_null(p);
    }
}

// The copies of the texts live in `arena`.
void member_page_read(const DbTxn *txn, int32_t look_at, Arena *arena, MemberPage *ret)
{
    const PGresult *res = db_txn_result(txn, 1);
    int64_t matches = db_get_int(res, 0, MATCHES);
    int64_t candidates = db_get_int(res, 0, CANDIDATES);
    Str rest = matches > 0 ? arena_str(arena, db_get_text(res, 0, IDS)) : STR_EMPTY;
    *ret = (MemberPage){.ids = arena_array(arena, (size_t)matches + 1, sizeof *ret->ids)};
    Str id = STR_EMPTY;
    while (ret->count < (size_t)matches && str_split(&rest, ' ', &id)) {
        ret->ids[ret->count++] = id;
    }
    ret->ended = candidates < look_at;
    ret->after = candidates > 0 ? arena_str(arena, db_get_text(res, 0, LAST)) : STR_EMPTY;
}

void member_store_add(DbTxn *txn, const MemberStore *store)
{
    DbParams *p = db_txn_add(txn, &STORE, NULL);
    db_text(p, store->batch_id);
    db_text(p, store->holder);
    db_text(p, store->after);
    db_text(p, store->next_after);
    db_bool(p, store->ended);
    db_i64(p, store->members);
    if (store->blob.len > 0) {
        db_bytes(p, store->blob);
    } else {
        db_null(p);
    }
    db_i64(p, store->lease_ms);
    db_i32(p, (int32_t)store->chunks);
}
