// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/batches/run_choose.h"

#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/campaign/member_choice.h"

_Static_assert((int)MEMBER_PAGE <= (int)CHUNK_MEMBERS_MAX, "a page is a chunk");

bool run_chooses(const Run *run)
{
    return run->row.query.len > 0 && !run->row.chosen;
}

// ---- storing a page ----

static void on_db_stored(void *ctx, DbTxn *txn, const Error *err)
{
    Run *run = ctx;
    if (!run_went_through(run, err)) {
        if (!run->over) {
            run_release(run); // perhaps it is stored, perhaps not: who claims it next reads that
        }
        return;
    }
    CRASH_POINT("batch.page_stored");
    const PGresult *res = db_txn_result(txn, 0);
    if (!run_may_go_on(run, res)) {
        run_release(run);
        return;
    }
    run->row.total = db_get_int(res, 0, 2);
    run->row.chunks = db_get_int(res, 0, 3);
    run->row.chosen = run->page_ended;
    (void)str_to_c(str_from(run->page_after), run->chosen_after, sizeof run->chosen_after);
    run->row.chosen_after = str_from(run->chosen_after);
    if (run->row.chosen) {
        LOG(LOG_INFO, "batch has chosen its members", log_str("tenant", run->row.tenant),
            log_str("batch", run->row.id), log_int("members", run->row.total));
    }
    run_advance(run);
}

static bool seal_page(Run *run, const MemberPage *page, Arena *arena, Str *ret_blob, Error *err)
{
    ChunkPlace place = {
        .tenant = run->row.tenant, .batch_id = run->row.id, .ordinal = run->row.chunks};
    Member *members = arena_array(arena, page->count + 1, sizeof *members);
    for (size_t i = 0; i < page->count; i++) {
        members[i].recipient_id = page->ids[i];
    }
    DataKey *key = data_key_for_tenant(run->runner->options.master, run->row.tenant);
    bool ok =
        page->count == 0 || chunk_pack(key, &place, members, page->count, arena, ret_blob, err);
    data_key_free(key);
    return ok;
}

static void store_page(Run *run, const MemberPage *page)
{
    const BatchRow *row = &run->row;
    Str blob = STR_EMPTY;
    Error err = {0};
    DbTxn *txn = run_begin(run);
    if (!seal_page(run, page, db_txn_arena(txn), &blob, &err)) {
        db_txn_abandon(txn);
        run_fail(run, err.text);
        return;
    }
    run->page_ended = page->ended;
    (void)str_to_c(
        page->after.len > 0 ? page->after : row->chosen_after, run->page_after,
        sizeof run->page_after);
    MemberStore store = {
        .batch_id = row->id,
        .holder = run_holder(run),
        .after = row->chosen_after,
        .next_after = str_from(run->page_after),
        .ended = page->ended,
        .chunks = row->chunks,
        .members = (int64_t)page->count,
        .blob = blob,
        .lease_ms = run->runner->options.lease_ms,
    };
    member_store_add(txn, &store);
    run->in_air = true;
    db_txn_submit(txn, on_db_stored, run);
}

// ---- finding a page ----

static void on_db_page(void *ctx, DbTxn *txn, const Error *err)
{
    Run *run = ctx;
    if (!run_went_through(run, err)) {
        return;
    }
    MemberPage page;
    Arena *arena = arena_new(0);
    member_page_read(txn, MEMBER_PAGE, arena, &page);
    if (run->row.total + (int64_t)page.count > BATCH_MEMBERS_MAX) {
        run_fail(run, "the recipient_query finds more recipients than a batch may have");
    } else {
        store_page(run, &page);
    }
    arena_free(arena);
}

void run_choose(Run *run)
{
    const Catalog *catalog = run->runner->options.catalog;
    const BatchRow *row = &run->row;
    if (!run_tenant_sends(run)) {
        return;
    }
    MemberQuery query = {
        .tenant = row->tenant,
        .query = row->query,
        .category = row->category,
        .channel = row->channel,
        .default_locale = str_from(catalog_tenant(catalog, row->tenant)->default_locale),
    };
    DbTxn *txn = run_begin(run);
    member_page_add(txn, &query, row->chosen_after, MEMBER_PAGE);
    run->in_air = true;
    db_txn_submit(txn, on_db_page, run);
}
