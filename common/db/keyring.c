// SPDX-License-Identifier: Apache-2.0
#include "common/db/keyring.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/crash.h"
#include "common/base/id.h"
#include "common/base/map.h"
#include "common/codec/epoch_keys.h"
#include "common/codec/hash.h"
#include "common/db/key_cache.h"
#include "common/db/txn.h"

enum {
    CACHE_MAX_DEFAULT = 100000,
    CACHE_DEFAULT_MS = 60000,
    MISSING_MS = 60000,
    ROUNDS_MAX =
        4, // of create and look again, when others create and destroy the same key meanwhile
};

// The newest generation, or the one asked for; no row: generation and wrapped are null.
#define FIND_WHERE(opens)                                                                          \
    "SELECT w.at, k.generation, CASE WHEN " opens " THEN k.wrapped END,"                           \
    "  k.restricted_by IS NOT NULL"                                                                \
    " FROM unnest($1::text[], $2::bytea[], $3::int4[]) WITH ORDINALITY"                            \
    "  AS w(tenant_id, subject, generation, at)"                                                   \
    " CROSS JOIN LATERAL (SELECT d.generation, d.wrapped, d.restricted_by FROM keys.data_keys d"   \
    "  WHERE d.subject = w.subject AND d.tenant_id = w.tenant_id"                                  \
    "   AND (w.generation = 0 OR d.generation = w.generation)"                                     \
    "  ORDER BY d.generation DESC LIMIT 1) AS k"
static const DbStatement FIND = {"keyring_find", FIND_WHERE("k.restricted_by IS NULL")};
// Kept keys too, which only an operator's role can find.
static const DbStatement FIND_KEPT = {
    "keyring_find_kept",
    FIND_WHERE("k.restricted_by IS NULL OR EXISTS (SELECT FROM erasure.kept_keys x"
               " WHERE x.subject = w.subject AND x.generation = k.generation"
               " AND x.ended_at IS NULL)")};

// Whoever comes second finds the row taken and uses it. Nothing is made under a retired master key,
// which may be gone from the file tomorrow, nor under an epoch key that another has replaced
// (keys.may_wrap).
static const DbStatement CREATE = {
    "keyring_create", "INSERT INTO keys.data_keys (tenant_id, subject, generation, wrapped)"
                      " SELECT * FROM unnest($1::text[], $2::bytea[], $3::int4[], $4::bytea[])"
                      " WHERE (SELECT keys.may_wrap($5::bytea)) ON CONFLICT DO NOTHING"};

struct Keyring {
    DbPool *pool;
    MasterKey *master;
    KeyCache *cache;
    const DbStatement *find;
    uint64_t missing_ms; // since when an epoch key is missed; 0: none is
    int jobs;
    bool found_only;
    bool freed;
};

// One key that was not cached, however many wants ask for it.
typedef struct Missing {
    Str tenant;
    uint8_t subject[KEY_SUBJECT_LEN];
    uint32_t generation; // as wanted
    Str name;
    KeyEntry *entry;     // the answer
    bool settled;        // entry NULL and settled: there is no such key
    const KeyWant *want; // the first that asked
    size_t older_asked;  // of its older subjects
    bool found;          // destroyed, under its own subject
    uint32_t next;       // generation to create
    DataKey *fresh;      // made by us and not known to have won
    uint8_t wrapped[WRAPPED_KEY_LEN];
} Missing;

typedef struct Job {
    Keyring *ring;
    KeyWant *wants;
    size_t count;
    KeyringDone done;
    void *ctx;
    Arena *arena;
    KeyEntry **entries; // per want: found in the cache, with a reference
    Missing **missing;  // per want: not found; NULL: in entries, or cannot exist
    Missing **open;     // unsettled, in the order in which they were asked
    size_t open_count;
    int rounds;
    bool creating; // the transaction under way begins with an insert
} Job;

static uint64_t now_ms(const Keyring *ring)
{
    return uv_now(db_pool_loop(ring->pool));
}

static_assert(KEY_SUBJECT_LEN + 4 + DB_TENANT_LEN_MAX <= KEY_NAME_MAX, "a name does not fit");

static Str cache_name(char out[KEY_NAME_MAX], const KeyWant *want)
{
    memcpy(out, want->subject, KEY_SUBJECT_LEN);
    memcpy(out + KEY_SUBJECT_LEN, &want->generation, 4);
    memcpy(out + KEY_SUBJECT_LEN + 4, want->tenant.ptr, want->tenant.len);
    return str_of(out, KEY_SUBJECT_LEN + 4 + want->tenant.len);
}

Keyring *keyring_new(DbPool *pool, MasterKey *master, const KeyringOptions *options)
{
    Keyring *ring = xcalloc(1, sizeof *ring);
    ring->pool = pool;
    ring->master = master;
    ring->found_only = options->found_only;
    ring->find = options->kept ? &FIND_KEPT : &FIND;
    ring->cache = key_cache_new(
        options->cache_max > 0 ? options->cache_max : CACHE_MAX_DEFAULT,
        options->cache_ms > 0 ? (uint64_t)options->cache_ms : CACHE_DEFAULT_MS);
    return ring;
}

static void free_ring(Keyring *ring)
{
    key_cache_free(ring->cache);
    free(ring);
}

void keyring_free(Keyring *ring)
{
    if (ring == NULL) {
        return;
    }
    ring->freed = true;
    if (ring->jobs == 0) {
        free_ring(ring);
    }
}

static uint8_t *subject_place(KeyWant *want, size_t index)
{
    return index == 0 ? want->subject : want->older[want->older_count++];
}

KeyWant keyring_want(const Keyring *ring, DataKeyKind kind, Str tenant, Str recipient)
{
    KeyWant want = {.tenant = tenant};
    HashKeys keys = master_hash_keys(ring->master);
    for (size_t i = 0; i < keys.count; i++) {
        key_subject(keys.keys[i], kind, tenant, recipient, subject_place(&want, i));
    }
    return want;
}

KeyWant keyring_want_address(
    const Keyring *ring, DataKeyKind kind, Str tenant, Channel channel, Str address)
{
    KeyWant want = {.tenant = tenant};
    HashKeys keys = master_hash_keys(ring->master);
    for (size_t i = 0; i < keys.count; i++) {
        uint8_t hash[ADDRESS_HASH_LEN];
        char hex[2 * ADDRESS_HASH_LEN + 1];
        address_hash(keys.keys[i], tenant, channel, address, hash);
        hex_encode(hash, sizeof hash, hex);
        key_subject(
            keys.keys[i], kind, tenant, str_of(hex, sizeof hex - 1), subject_place(&want, i));
    }
    return want;
}

MasterKey *keyring_master(const Keyring *ring)
{
    return ring->master;
}

// ---- finishing a job ----

static void free_fresh(Missing *m)
{
    data_key_free(m->fresh);
    m->fresh = NULL;
}

// Every Missing is referenced by the job once, through its first want.
static void release_all(Job *job)
{
    for (size_t i = 0; i < job->count; i++) {
        if (job->entries[i] != NULL) {
            key_cache_release(job->ring->cache, job->entries[i], now_ms(job->ring));
        }
    }
    for (size_t i = 0; i < job->open_count; i++) {
        free_fresh(job->open[i]);
    }
}

static void hand_over_references(Job *job)
{
    for (size_t i = 0; i < job->count; i++) {
        Missing *m = job->missing[i];
        if (m != NULL && m->entry != NULL) {
            job->entries[i] = m->entry;
            m->entry = NULL;
        }
    }
}

static void finish(Job *job, const Error *err)
{
    Keyring *ring = job->ring;
    // Takes over each answer's reference once, and gives the key to all who want it.
    for (size_t i = 0; err == NULL && i < job->count; i++) {
        Missing *m = job->missing[i];
        KeyEntry *entry = m != NULL ? m->entry : job->entries[i];
        job->wants[i].key = entry != NULL ? entry->key : NULL;
    }
    hand_over_references(job);
    job->done(job->ctx, err);
    release_all(job);
    arena_free(job->arena);
    ring->jobs--;
    if (ring->freed && ring->jobs == 0) {
        free_ring(ring);
    }
}

// ---- asking Postgres ----

static void on_found(void *ctx, DbTxn *txn, const Error *err);

static void add_find(Job *job, DbTxn *txn)
{
    DbParams *p = db_txn_add(txn, job->ring->find, NULL);
    DbArray *tenants = db_array(p, DB_TEXT);
    DbArray *subjects = db_array(p, DB_BYTES);
    DbArray *generations = db_array(p, DB_I32);
    for (size_t i = 0; i < job->open_count; i++) {
        const Missing *m = job->open[i];
        db_txn_tenant(txn, m->tenant);
        db_push_text(tenants, m->tenant);
        db_push_text(subjects, str_of(m->subject, KEY_SUBJECT_LEN));
        db_push_int(generations, m->generation);
    }
}

static void add_create(Job *job, DbTxn *txn)
{
    DbParams *p = db_txn_add(txn, &CREATE, NULL);
    DbArray *tenants = db_array(p, DB_TEXT);
    DbArray *subjects = db_array(p, DB_BYTES);
    DbArray *generations = db_array(p, DB_I32);
    DbArray *wrapped = db_array(p, DB_BYTES);
    for (size_t i = 0; i < job->open_count; i++) {
        Missing *m = job->open[i];
        m->fresh = data_key_new(job->ring->master, m->subject, m->next, m->wrapped);
        db_push_text(tenants, m->tenant);
        db_push_text(subjects, str_of(m->subject, KEY_SUBJECT_LEN));
        db_push_int(generations, m->next);
        db_push_text(wrapped, str_of(m->wrapped, WRAPPED_KEY_LEN));
    }
    uint8_t head[WRAPPED_HEAD_LEN];
    wrapper_head(job->ring->master, head);
    db_bytes(p, str_of(head, sizeof head));
}

static void find_open(Job *job)
{
    DbTxn *txn = db_txn_new(job->ring->pool);
    add_find(job, txn);
    db_txn_submit(txn, on_found, job);
}

// Those that are not there are looked for under their next older subject. false: there is none
// left, for any.
static bool ask_older(Job *job)
{
    bool any = false;
    for (size_t i = 0; i < job->open_count; i++) {
        Missing *m = job->open[i];
        if (!m->found && m->older_asked < m->want->older_count) {
            memcpy(m->subject, m->want->older[m->older_asked++], KEY_SUBJECT_LEN);
            any = true;
        }
    }
    return any;
}

static int compare_subjects(const void *a, const void *b)
{
    const Missing *const *left = a;
    const Missing *const *right = b;
    return memcmp((*left)->subject, (*right)->subject, KEY_SUBJECT_LEN);
}

// The insert and the look that tells who won are one transaction, and its commit is synchronous:
// the key stays in the cache, so a Postgres that crashed and forgot it would leave all that is
// sealed under it from then on unreadable, whatever the later commits are (tests/chaos found it).
static void create_open(Job *job)
{
    for (size_t i = 0; i < job->open_count; i++) { // also what was looked for under older ones
        memcpy(job->open[i]->subject, job->open[i]->want->subject, KEY_SUBJECT_LEN);
    }
    // In one order everywhere: two that create the same keys wait for each other and never in a
    // circle.
    qsort(job->open, job->open_count, sizeof(Missing *), compare_subjects);
    job->creating = true;
    // A folder that cannot be read now: what is held may still wrap, and Postgres knows.
    (void)master_epochs_refresh(job->ring->master, NULL);
    DbTxn *txn = db_txn_new(job->ring->pool);
    add_create(job, txn);
    add_find(job, txn);
    db_txn_submit(txn, on_found, job);
}

// A new epoch key is noticed when the first data key that it has wrapped is met. false: it is not
// in the folder.
static bool hold_epoch(Keyring *ring, Str wrapped)
{
    const uint8_t *epoch = wrapped_epoch(wrapped);
    if (epoch != NULL && master_epoch_find(ring->master, epoch) == NULL) {
        (void)master_epochs_refresh(ring->master, NULL);
        if (master_epoch_find(ring->master, epoch) == NULL) {
            return false;
        }
    }
    ring->missing_ms = 0;
    return true;
}

// A shared folder may be behind for a while; what stays away is lost.
static ErrorKind kind_of_missing(Keyring *ring)
{
    if (ring->missing_ms == 0) {
        ring->missing_ms = now_ms(ring);
    }
    return now_ms(ring) - ring->missing_ms < MISSING_MS ? ERROR_TRANSIENT : ERROR_CONFIG;
}

// The row holds what we have just made: no need to unwrap it. Otherwise another process was faster.
static DataKey *open_row(Job *job, Missing *m, uint32_t generation, Str wrapped, Error *err)
{
    if (m->fresh != NULL && generation == m->next &&
        str_eq(wrapped, str_of(m->wrapped, WRAPPED_KEY_LEN))) {
        CRASH_POINT("keyring.created");
        return TAKE(m->fresh);
    }
    bool held = hold_epoch(job->ring, wrapped);
    DataKey *key = data_key_unwrap(job->ring->master, m->subject, generation, wrapped, err);
    if (key == NULL && err != NULL) {
        // Another installation's master key, a lost epoch key: no input is to blame.
        err->kind = held ? ERROR_CONFIG : kind_of_missing(job->ring);
        error_wrap(err, "data key");
    }
    return key;
}

static bool take_row(Job *job, const PGresult *rows, int row, Error *err)
{
    int64_t at = db_get_int(rows, row, 0);
    assert(at >= 1 && (size_t)at <= job->open_count);
    Missing *m = job->open[at - 1];
    uint32_t generation = (uint32_t)db_get_int(rows, row, 1);
    bool restricted = db_get_int(rows, row, 3) != 0; // an erasure waits for its hold to end
    if (db_is_null(rows, row, 2) && m->generation == 0 && !restricted) {
        m->found = m->older_asked == 0;
        m->next = m->found ? generation + 1 : m->next; // destroyed: the person is here again
        return true;
    }
    DataKey *key = NULL;
    if (!db_is_null(rows, row, 2)) {
        key = open_row(job, m, generation, db_get_text(rows, row, 2), err);
        if (key == NULL) {
            return false;
        }
    }
    m->entry = key_cache_add(job->ring->cache, m->name, key, now_ms(job->ring));
    m->settled = true;
    return true;
}

static bool take_rows(Job *job, const PGresult *rows, Error *err)
{
    for (size_t i = 0; i < job->open_count; i++) {
        Missing *m = job->open[i];
        m->next = m->found ? m->next : 1;
        m->settled = m->generation > 0; // unless a row says otherwise, it never existed
    }
    for (int row = 0; row < db_rows(rows); row++) {
        if (!take_row(job, rows, row, err)) {
            return false;
        }
    }
    return true;
}

static void keep_unsettled(Job *job)
{
    size_t kept = 0;
    for (size_t i = 0; i < job->open_count; i++) {
        free_fresh(job->open[i]);
        if (!job->open[i]->settled) {
            job->open[kept++] = job->open[i];
        }
    }
    job->open_count = kept;
}

static void take_answer(Job *job, const DbTxn *txn)
{
    Error err = {0};
    // The look is the last statement: the first and only one, or the one behind the insert.
    const PGresult *rows = db_txn_result(txn, job->creating ? 1 : 0);
    if (!take_rows(job, rows, &err)) {
        finish(job, &err);
        return;
    }
    keep_unsettled(job);
    if (job->open_count == 0) {
        finish(job, NULL);
        return;
    }
    if (!job->creating && ask_older(job)) {
        find_open(job);
        return;
    }
    if (job->ring->found_only) {
        finish(job, NULL);
        return;
    }
    if (++job->rounds == ROUNDS_MAX) {
        error_set(
            &err, ERROR_TRANSIENT,
            "data keys change faster than they are read, or the master key was retired or the "
            "epoch key "
            "replaced (HINT: stentor keys status; have all programs the same "
            "STENTOR_EPOCH_KEYS_DIR?)");
        finish(job, &err);
        return;
    }
    create_open(job);
}

static void on_found(void *ctx, DbTxn *txn, const Error *err)
{
    Job *job = ctx;
    if (err != NULL) {
        finish(job, err);
        return;
    }
    take_answer(job, txn);
}

// ---- resolving ----

static Job *new_job(Keyring *ring, KeyWant *wants, size_t count)
{
    Arena *arena = arena_new(0);
    Job *job = arena_zalloc(arena, sizeof *job);
    job->arena = arena;
    job->ring = ring;
    job->wants = wants;
    job->count = count;
    job->entries = arena_array(arena, count, sizeof *job->entries);
    job->missing = arena_array(arena, count, sizeof *job->missing);
    job->open = arena_array(arena, count, sizeof(Missing *));
    ring->jobs++;
    return job;
}

static Missing *add_missing(Job *job, const KeyWant *want, Str name)
{
    Missing *m = arena_zalloc(job->arena, sizeof *m);
    m->tenant = arena_str(job->arena, want->tenant);
    m->name = arena_str(job->arena, name);
    memcpy(m->subject, want->subject, KEY_SUBJECT_LEN);
    m->generation = want->generation;
    m->want = want;
    job->open[job->open_count++] = m;
    return m;
}

// A want that cannot name a row (its tenant is none, its generation no int4) is left without a key.
static bool can_exist(const KeyWant *want)
{
    return id_is_tenant(want->tenant) && want->generation <= INT32_MAX;
}

static void sort_out(Job *job, Map *names)
{
    char space[KEY_NAME_MAX];
    for (size_t i = 0; i < job->count; i++) {
        KeyWant *want = &job->wants[i];
        if (!can_exist(want)) {
            continue;
        }
        Str name = cache_name(space, want);
        KeyEntry *entry = key_cache_get(job->ring->cache, name);
        if (entry != NULL) {
            key_cache_keep(entry);
            job->entries[i] = entry;
            continue;
        }
        job->missing[i] = map_get(names, name);
        if (job->missing[i] == NULL) {
            job->missing[i] = add_missing(job, want, name);
            map_put(names, name, job->missing[i]);
        }
    }
}

static void ask(Keyring *ring, KeyWant *wants, size_t count, KeyringDone done, void *ctx)
{
    Job *job = new_job(ring, wants, count);
    job->done = done;
    job->ctx = ctx;
    Map *names = map_new(NULL);
    sort_out(job, names);
    map_free(names);
    find_open(job);
}

// The common case, without any memory of its own.
static bool all_cached(Keyring *ring, KeyWant *wants, size_t count)
{
    char space[KEY_NAME_MAX];
    for (size_t i = 0; i < count; i++) {
        wants[i].key = NULL;
        if (!can_exist(&wants[i])) {
            continue;
        }
        KeyEntry *entry = key_cache_get(ring->cache, cache_name(space, &wants[i]));
        if (entry == NULL) {
            return false;
        }
        wants[i].key = entry->key;
    }
    return true;
}

void keyring_resolve(Keyring *ring, KeyWant *wants, size_t count, KeyringDone done, void *ctx)
{
    key_cache_sweep(ring->cache, now_ms(ring));
    if (all_cached(ring, wants, count)) {
        done(ctx, NULL);
        return;
    }
    ask(ring, wants, count, done, ctx);
}
