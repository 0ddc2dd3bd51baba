// SPDX-License-Identifier: Apache-2.0
#include "common/db/txn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/id.h"
#include "common/base/map.h"

enum { FIRST_BLOCK_BYTES = 16 * 1024, FIRST_TENANTS = 16, FIRST_STATEMENTS = 16, SETUP_ROOM = 64 };

DbTxn *db_txn_new(DbPool *pool)
{
    Arena *arena = arena_new(FIRST_BLOCK_BYTES);
    DbTxn *txn = arena_zalloc(arena, sizeof *txn);
    txn->arena = arena;
    txn->pool = pool;
    return txn;
}

static void clear_results(DbTxn *txn)
{
    for (int i = 0; i < txn->count; i++) {
        PQclear(txn->results[i]);
        txn->results[i] = NULL;
    }
}

void db_txn_free(DbTxn *txn)
{
    if (txn != NULL) {
        clear_results(txn);
        arena_free(txn->arena);
    }
}

void db_txn_abandon(DbTxn *txn)
{
    db_txn_free(txn);
}

Arena *db_txn_arena(DbTxn *txn)
{
    return txn->arena;
}

void db_txn_fail(DbTxn *txn, ErrorKind kind, const char *format, ...)
{
    if (txn->error.kind != ERROR_NONE) {
        return;
    }
    char text[sizeof txn->error.text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    error_set(&txn->error, kind, "%s", text);
}

bool db_txn_spend(DbTxn *txn, size_t bytes)
{
    if (bytes > DB_TXN_MAX_BYTES || txn->bytes + bytes > DB_TXN_MAX_BYTES) {
        db_txn_fail(
            txn, ERROR_PERMANENT, "the parameters of one transaction pass %d MiB",
            DB_TXN_MAX_BYTES / (1024 * 1024));
        return false;
    }
    txn->bytes += bytes;
    return txn->error.kind == ERROR_NONE;
}

// ---- tenants ----

// The slot that holds the tenant or where it belongs. The table is never more than half full.
static Str *find_slot(const DbTenants *t, Str tenant)
{
    size_t i = (size_t)str_hash(tenant) & (t->cap - 1);
    while (t->slots[i].ptr != NULL && !str_eq(t->slots[i], tenant)) {
        i = (i + 1) & (t->cap - 1);
    }
    return &t->slots[i];
}

static void grow_tenants(DbTxn *txn)
{
    DbTenants old = txn->tenants;
    DbTenants *t = &txn->tenants;
    t->cap = old.cap > 0 ? old.cap * 2 : FIRST_TENANTS;
    t->slots = arena_array(txn->arena, t->cap, sizeof *t->slots);
    for (size_t i = 0; i < old.cap; i++) {
        if (old.slots[i].ptr != NULL) {
            *find_slot(t, old.slots[i]) = old.slots[i];
        }
    }
}

static void add_tenant(DbTxn *txn, Str *slot, Str tenant)
{
    DbTenants *t = &txn->tenants;
    // A comma in a name would name another tenant too: the check is what isolation rests on.
    if (!id_is_tenant(tenant)) {
        db_txn_fail(
            txn, ERROR_PERMANENT, "'" STR_FMT "' is not a tenant id",
            STR_ARG(str_slice(tenant, 0, 40)));
        return;
    }
    if (t->count == DB_TENANTS_MAX) {
        db_txn_fail(txn, ERROR_PERMANENT, "more than %d tenants", DB_TENANTS_MAX);
        return;
    }
    *slot = arena_str(txn->arena, tenant);
    t->last = *slot;
    t->count++;
    t->bytes += tenant.len + 1;
}

void db_txn_tenant(DbTxn *txn, Str tenant)
{
    DbTenants *t = &txn->tenants;
    if (t->count > 0 && str_eq(t->last, tenant)) {
        return;
    }
    if (t->count * 2 >= t->cap) {
        grow_tenants(txn);
    }
    Str *slot = find_slot(t, tenant);
    if (slot->ptr != NULL) {
        t->last = *slot;
        return;
    }
    add_tenant(txn, slot, tenant);
}

static Str join_tenants(DbTxn *txn)
{
    const DbTenants *t = &txn->tenants;
    if (t->count == 0) {
        return STR_EMPTY;
    }
    char *text = arena_alloc(txn->arena, t->bytes);
    size_t len = 0;
    for (size_t i = 0; i < t->cap; i++) {
        if (t->slots[i].ptr == NULL) {
            continue;
        }
        if (len > 0) {
            text[len++] = ',';
        }
        memcpy(text + len, t->slots[i].ptr, t->slots[i].len);
        len += t->slots[i].len;
    }
    return str_of(text, len);
}

// ---- statements ----

void db_txn_lazy_commit(DbTxn *txn)
{
    txn->lazy = true;
}

// ---- a copy of a schema ----

enum { COPY_TEXT_MAX = 64 * 1024 };

struct DbSchemaCopy {
    Arena *arena;
    Map *statements; // by name
    Str schema;      // with its dot
    Str copy;
};

DbSchemaCopy *db_schema_copy_new(const char *schema, const char *copy)
{
    DbSchemaCopy *c = xcalloc(1, sizeof *c);
    c->arena = arena_new(0);
    c->statements = map_new(NULL);
    c->schema = str_from(arena_printf(c->arena, "%s.", schema));
    c->copy = str_from(arena_printf(c->arena, "%s.", copy));
    return c;
}

void db_schema_copy_free(DbSchemaCopy *copy)
{
    if (copy != NULL) {
        map_free(copy->statements);
        arena_free(copy->arena);
        free(copy);
    }
}

void db_txn_schema(DbTxn *txn, DbSchemaCopy *copy)
{
    txn->copy = copy;
}

// "stentor_people." is another schema.
static bool is_part_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

static char *rewrite(const DbSchemaCopy *copy, const char *sql)
{
    Buf text;
    buf_init(&text, COPY_TEXT_MAX);
    Str rest = str_from(sql);
    char before = ' ';
    while (rest.len > 0) {
        bool here = !is_part_of_name(before) && str_starts(rest, copy->schema);
        before = here ? '.' : rest.ptr[0];
        if (here) {
            buf_str(&text, copy->copy);
        } else {
            buf_char(&text, before);
        }
        rest = str_slice(rest, here ? copy->schema.len : 1, rest.len);
    }
    char *ret = arena_cstr(copy->arena, buf_view(&text));
    buf_done(&text);
    return ret;
}

static const DbStatement *statement_of(DbSchemaCopy *copy, const DbStatement *statement)
{
    DbStatement *made = map_get(copy->statements, str_from(statement->name));
    if (made == NULL) {
        made = arena_zalloc(copy->arena, sizeof *made);
        made->name = arena_printf(copy->arena, STR_FMT "%s", STR_ARG(copy->copy), statement->name);
        made->sql = rewrite(copy, statement->sql);
        map_put(copy->statements, str_from(statement->name), made);
    }
    return made;
}

// ---- statements ----

static void grow_statements(DbTxn *txn)
{
    int cap = txn->cap > 0 ? txn->cap * 2 : FIRST_STATEMENTS;
    DbParams **statements = arena_array(txn->arena, (size_t)cap, sizeof *statements);
    if (txn->count > 0) {
        memcpy(statements, txn->statements, (size_t)txn->count * sizeof *statements);
    }
    txn->statements = statements;
    txn->results = arena_array(txn->arena, (size_t)cap, sizeof *txn->results);
    txn->cap = cap; // it has not been sent: there are no results to keep
}

DbParams *db_txn_add(DbTxn *txn, const DbStatement *statement, int *ret_index)
{
    const DbStatement *own = txn->copy != NULL ? statement_of(txn->copy, statement) : statement;
    DbParams *p = db_params_new(txn, own);
    if (txn->count == DB_STATEMENTS_MAX) {
        db_txn_fail(txn, ERROR_CONFIG, "more than %d statements", DB_STATEMENTS_MAX);
        return p;
    }
    if (ret_index != NULL) {
        *ret_index = txn->count;
    }
    if (txn->count == txn->cap) {
        grow_statements(txn);
    }
    txn->statements[txn->count++] = p;
    return p;
}

bool db_txn_seal(DbTxn *txn)
{
    txn->named = join_tenants(txn);
    if (db_txn_spend(txn, txn->named.len + SETUP_ROOM)) { // whether they are sent is seen then
        txn->bytes -= txn->named.len + SETUP_ROOM;
    }
    for (int i = 0; i < txn->count; i++) {
        db_params_seal(txn->statements[i]);
    }
    if (txn->count == 0) {
        db_txn_fail(txn, ERROR_CONFIG, "a transaction without statements");
    }
    return txn->error.kind == ERROR_NONE;
}

// ---- the answer ----

void db_txn_answer(DbTxn *txn, const Error *err)
{
    if (err != NULL) {
        txn->error = *err;
        clear_results(txn);
        return;
    }
    txn->answered = true;
}

const PGresult *db_txn_result(const DbTxn *txn, int index)
{
    if (!txn->answered || index < 0 || index >= txn->count) {
        return NULL;
    }
    return txn->results[index];
}
