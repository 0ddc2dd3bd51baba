// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "common/db/txn.h"

// Binary formats as in Postgres's *_recv functions; an array is ndim, flags, element oid, then
// (when not empty) length and lower bound, then each element behind its length.
enum { ARRAY_HEAD = 20, ARRAY_HEAD_EMPTY = 12, ARRAY_FIRST_BYTES = 256 };

static const int64_t POSTGRES_EPOCH_US = 946684800000000; // 2000-01-01 after 1970-01-01

typedef struct TypeInfo {
    Oid oid;
    Oid array_oid;
    uint32_t width; // 0: as long as the value
} TypeInfo;

static const TypeInfo TYPES[] = {
    [DB_TEXT] = {25, 1009, 0},   [DB_BYTES] = {17, 1001, 0}, [DB_I64] = {20, 1016, 8},
    [DB_I32] = {23, 1007, 4},    [DB_I16] = {21, 1005, 2},   [DB_BOOL] = {16, 1000, 1},
    [DB_TIME] = {1184, 1185, 8},
};

struct DbArray {
    DbParams *params;
    DbType type;
    bool has_null;
    uint32_t count;
    char *bytes; // the head is filled in when the transaction is sealed
    size_t len;
    size_t cap;
};

static void put_u32(char *out, uint32_t value)
{
    out[0] = (char)(unsigned char)(value >> 24);
    out[1] = (char)(unsigned char)(value >> 16);
    out[2] = (char)(unsigned char)(value >> 8);
    out[3] = (char)(unsigned char)value;
}

// The low `width` bytes of value, the highest first.
static void put_int(char *out, int64_t value, uint32_t width)
{
    uint64_t bits = (uint64_t)value;
    for (uint32_t i = width; i > 0; i--) {
        out[i - 1] = (char)(unsigned char)bits;
        bits >>= 8;
    }
}

// ---- scalars ----

DbParams *db_params_new(DbTxn *txn, const DbStatement *statement)
{
    DbParams *p = arena_alloc(txn->arena, sizeof *p);
    p->txn = txn;
    p->statement = statement;
    p->count = 0;
    return p;
}

// NULL: there is no room for another.
static DbParam *next_param(DbParams *p, Oid type)
{
    if (p->count == DB_PARAMS_MAX) {
        db_txn_fail(
            p->txn, ERROR_CONFIG, "'%s' has more than %d parameters", p->statement->name,
            DB_PARAMS_MAX);
        return NULL;
    }
    DbParam *param = &p->items[p->count++];
    *param = (DbParam){.type = type};
    return param;
}

static void add_copy(DbParams *p, Oid type, Str value)
{
    DbParam *param = next_param(p, type);
    if (param != NULL && db_txn_spend(p->txn, value.len)) {
        param->value = arena_copy(p->txn->arena, value.ptr, value.len);
        param->length = (int)value.len;
    }
}

static void add_int(DbParams *p, DbType type, int64_t value)
{
    char bytes[8];
    put_int(bytes, value, TYPES[type].width);
    add_copy(p, TYPES[type].oid, str_of(bytes, TYPES[type].width));
}

void db_text(DbParams *p, Str value)
{
    add_copy(p, TYPES[DB_TEXT].oid, value);
}

void db_bytes(DbParams *p, Str value)
{
    add_copy(p, TYPES[DB_BYTES].oid, value);
}

void db_i64(DbParams *p, int64_t value)
{
    add_int(p, DB_I64, value);
}

void db_i32(DbParams *p, int32_t value)
{
    add_int(p, DB_I32, value);
}

void db_bool(DbParams *p, bool value)
{
    add_int(p, DB_BOOL, value);
}

void db_time(DbParams *p, int64_t at_us)
{
    if (at_us == 0) {
        next_param(p, TYPES[DB_TIME].oid);
        return;
    }
    add_int(p, DB_TIME, at_us - POSTGRES_EPOCH_US);
}

void db_null(DbParams *p)
{
    next_param(p, 0);
}

// ---- arrays ----

DbArray *db_array(DbParams *p, DbType element)
{
    DbArray *a = arena_zalloc(p->txn->arena, sizeof *a);
    a->params = p;
    a->type = element;
    a->cap = ARRAY_FIRST_BYTES;
    a->len = ARRAY_HEAD;
    a->bytes = arena_alloc(p->txn->arena, a->cap);
    DbParam *param = next_param(p, TYPES[element].array_oid);
    if (param != NULL) {
        param->array = a;
    }
    return a;
}

// All copies of an array are less than twice the last one, and that less than twice what is in it.
_Static_assert(4 * DB_VALUES_MAX_BYTES <= DB_TXN_MAX_BYTES, "values of arrays fit, with copies");

static bool grow(DbArray *a, size_t more)
{
    DbTxn *txn = a->params->txn;
    size_t cap = a->cap * 2;
    while (cap - a->len < more && cap <= DB_TXN_MAX_BYTES) {
        cap *= 2;
    }
    if (!db_txn_spend(txn, cap)) {
        return false;
    }
    char *bytes = arena_alloc(txn->arena, cap);
    memcpy(bytes, a->bytes, a->len);
    a->bytes = bytes;
    a->cap = cap;
    return true;
}

// Room for one element of `size` bytes behind its length, or NULL in a failed transaction.
static char *push(DbArray *a, size_t size)
{
    if (a->cap - a->len < 4 || a->cap - a->len - 4 < size) {
        if (size > DB_TXN_MAX_BYTES) {
            db_txn_spend(a->params->txn, size);
            return NULL;
        }
        if (!grow(a, size + 4)) {
            return NULL;
        }
    }
    char *at = a->bytes + a->len;
    put_u32(at, (uint32_t)size);
    a->len += size + 4;
    a->count++;
    return at + 4;
}

static bool is_text(DbType type)
{
    return type == DB_TEXT || type == DB_BYTES;
}

static void fail_type(DbArray *a)
{
    DbParams *p = a->params;
    db_txn_fail(p->txn, ERROR_CONFIG, "'%s' is given another type", p->statement->name);
}

void db_push_text(DbArray *a, Str value)
{
    if (!is_text(a->type)) {
        fail_type(a);
        return;
    }
    char *at = push(a, value.len);
    if (at != NULL && value.len > 0) {
        memcpy(at, value.ptr, value.len);
    }
}

void db_push_optional(DbArray *a, Str value)
{
    if (value.len == 0) {
        db_push_null(a);
    } else {
        db_push_text(a, value);
    }
}

static bool fits(int64_t value, DbType type)
{
    switch (type) {
    case DB_I32:
        return value >= INT32_MIN && value <= INT32_MAX;
    case DB_I16:
        return value >= INT16_MIN && value <= INT16_MAX;
    case DB_BOOL:
        return value == 0 || value == 1;
    case DB_TEXT:
    case DB_BYTES:
    case DB_I64:
    case DB_TIME:
        break;
    }
    return true;
}

void db_push_int(DbArray *a, int64_t value)
{
    if (is_text(a->type) || a->type == DB_TIME) {
        fail_type(a);
        return;
    }
    if (!fits(value, a->type)) {
        db_txn_fail(
            a->params->txn, ERROR_PERMANENT, "%lld does not fit into '%s'", (long long)value,
            a->params->statement->name);
        return;
    }
    char *at = push(a, TYPES[a->type].width);
    if (at != NULL) {
        put_int(at, value, TYPES[a->type].width);
    }
}

void db_push_time(DbArray *a, int64_t at_us)
{
    if (a->type != DB_TIME) {
        fail_type(a);
        return;
    }
    if (at_us == 0) {
        db_push_null(a);
        return;
    }
    char *at = push(a, 8);
    if (at != NULL) {
        put_int(at, at_us - POSTGRES_EPOCH_US, 8);
    }
}

void db_push_null(DbArray *a)
{
    char *at = push(a, 0);
    if (at != NULL) {
        put_u32(at - 4, UINT32_MAX); // length -1
        a->has_null = true;
    }
}

// ---- sealing ----

static void seal_array(DbParam *param)
{
    DbArray *a = param->array;
    bool empty = a->count == 0;
    put_u32(a->bytes, empty ? 0 : 1);
    put_u32(a->bytes + 4, a->has_null ? 1 : 0);
    put_u32(a->bytes + 8, TYPES[a->type].oid);
    put_u32(a->bytes + 12, a->count);
    put_u32(a->bytes + 16, 1);
    param->value = a->bytes;
    param->length = (int)(empty ? ARRAY_HEAD_EMPTY : a->len);
}

void db_params_seal(DbParams *p)
{
    for (int i = 0; i < p->count; i++) {
        if (p->items[i].array != NULL) {
            seal_array(&p->items[i]);
        }
    }
}
