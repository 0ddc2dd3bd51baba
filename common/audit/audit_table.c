// SPDX-License-Identifier: Apache-2.0
#include "common/audit/audit_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/id.h"
#include "common/base/map.h"

enum { CHUNK = 16384, SLOTS_FIRST = 65536, PREFIX_LEN = 4 };

// Entries in chunks, so that growing copies none of them; open-addressed slots hold position + 1.
struct AuditTable {
    AuditEntry **chunks;
    size_t chunk_count;
    size_t count;
    uint32_t *slots;
    size_t slot_mask;
    Map *tenants; // name -> its position + 1
    char **tenant_names;
    size_t tenant_count;
    Str only; // empty: every tenant
    int64_t since_us, until_us;
    int64_t kept_us;
};

// ---- ids ----

static const char crockford[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

// 26 characters of 5 bits are 130: the first one holds three.
static void read_ulid(Str text, uint8_t out[16])
{
    unsigned bits = 0;
    unsigned held = 0;
    size_t at = 0;
    for (size_t i = 0; i < ULID_LEN; i++) {
        const char *digit = memchr(crockford, text.ptr[i], sizeof crockford - 1);
        bits = (bits << 5 | (digit != NULL ? (unsigned)(digit - crockford) : 0)) & 0xffffu;
        held += i == 0 ? 3 : 5;
        if (held >= 8) {
            held -= 8;
            out[at++] = (uint8_t)(bits >> held);
        }
    }
}

static void write_ulid(const uint8_t ulid[16], char *out)
{
    unsigned bits = 0;
    unsigned held = 2; // two zero bits before the first one
    size_t at = 0;
    for (size_t i = 0; i < ULID_LEN; i++) {
        if (held < 5) {
            bits = (bits << 8 | ulid[at++]) & 0xffffu;
            held += 8;
        }
        held -= 5;
        out[i] = crockford[bits >> held & 31u];
    }
}

void audit_entry_id(const AuditEntry *entry, char out[AUDIT_ID_SIZE])
{
    memcpy(out, "ntf_", PREFIX_LEN);
    write_ulid(entry->ulid, out + PREFIX_LEN);
    out[PREFIX_LEN + ULID_LEN] = '\0';
}

int64_t audit_entry_created_us(const AuditEntry *entry)
{
    int64_t ms = 0;
    for (int i = 0; i < 6; i++) {
        ms = ms << 8 | entry->ulid[i];
    }
    return ms * 1000;
}

uint32_t audit_attempt_bit(int64_t attempt)
{
    if (attempt <= 0) {
        return 0;
    }
    return UINT32_C(1) << (attempt < AUDIT_ATTEMPT_LAST ? attempt : AUDIT_ATTEMPT_LAST);
}

// ---- the table ----

AuditTable *audit_table_new(void)
{
    AuditTable *table = xcalloc(1, sizeof *table);
    table->slots = xcalloc(SLOTS_FIRST, sizeof *table->slots);
    table->slot_mask = SLOTS_FIRST - 1;
    table->tenants = map_new(NULL);
    table->until_us = INT64_MAX;
    return table;
}

void audit_table_free(AuditTable *table)
{
    if (table == NULL) {
        return;
    }
    for (size_t i = 0; i < table->chunk_count; i++) {
        free(table->chunks[i]);
    }
    for (size_t i = 0; i < table->tenant_count; i++) {
        free(table->tenant_names[i]);
    }
    free(table->chunks);
    free(table->tenant_names);
    free(table->slots);
    map_free(table->tenants);
    free(table);
}

void audit_table_span(AuditTable *table, int64_t since_us, int64_t until_us)
{
    table->since_us = since_us;
    table->until_us = until_us;
}

void audit_table_kept(AuditTable *table, int64_t kept_us)
{
    table->kept_us = kept_us;
}

void audit_table_only(AuditTable *table, Str tenant)
{
    table->only = tenant;
}

size_t audit_table_count(const AuditTable *table)
{
    return table->count;
}

AuditEntry *audit_table_at(AuditTable *table, size_t index)
{
    return &table->chunks[index / CHUNK][index % CHUNK];
}

const char *audit_tenant(const AuditTable *table, uint32_t tenant)
{
    return table->tenant_names[tenant];
}

static AuditEntry *find_slot(
    AuditTable *table, const uint8_t ulid[16], uint32_t tenant, size_t *ret_slot)
{
    size_t slot = (size_t)(str_hash(str_of(ulid, 16)) ^ tenant) & table->slot_mask;
    for (; table->slots[slot] != 0; slot = (slot + 1) & table->slot_mask) {
        AuditEntry *entry = audit_table_at(table, table->slots[slot] - 1);
        if (entry->tenant == tenant && memcmp(entry->ulid, ulid, 16) == 0) {
            return entry;
        }
    }
    *ret_slot = slot;
    return NULL;
}

static void grow_slots(AuditTable *table)
{
    size_t size = 2 * (table->slot_mask + 1);
    free(table->slots);
    table->slots = xcalloc(size, sizeof *table->slots);
    table->slot_mask = size - 1;
    for (size_t i = 0; i < table->count; i++) {
        const AuditEntry *entry = audit_table_at(table, i);
        size_t slot = 0;
        (void)find_slot(table, entry->ulid, entry->tenant, &slot);
        table->slots[slot] = (uint32_t)(i + 1);
    }
}

static AuditEntry *add_entry(
    AuditTable *table, const uint8_t ulid[16], uint32_t tenant, size_t slot)
{
    assert(table->count < UINT32_MAX - 1);
    if (table->count == table->chunk_count * CHUNK) {
        table->chunks = xrealloc(table->chunks, (table->chunk_count + 1) * sizeof *table->chunks);
        table->chunks[table->chunk_count++] = xcalloc(CHUNK, sizeof(AuditEntry));
    }
    AuditEntry *entry = audit_table_at(table, table->count++);
    memcpy(entry->ulid, ulid, 16);
    entry->tenant = tenant;
    table->slots[slot] = (uint32_t)table->count;
    if (4 * table->count > 3 * (table->slot_mask + 1)) {
        grow_slots(table);
    }
    return entry;
}

// false: it is none, or not known and `make` is false.
static bool find_tenant(AuditTable *table, Str name, bool make, uint32_t *ret)
{
    const void *position = map_get(table->tenants, name);
    if (position != NULL) {
        *ret = (uint32_t)((uintptr_t)position - 1);
        return true;
    }
    if (!make || !id_is_tenant(name)) {
        return false;
    }
    table->tenant_names =
        xrealloc(table->tenant_names, (table->tenant_count + 1) * sizeof *table->tenant_names);
    char *copy = xmalloc(name.len + 1);
    (void)str_to_c(name, copy, name.len + 1);
    table->tenant_names[table->tenant_count++] = copy;
    map_put(table->tenants, name, (void *)(uintptr_t)table->tenant_count);
    *ret = (uint32_t)(table->tenant_count - 1);
    return true;
}

static AuditEntry *look_up(AuditTable *table, Str id, Str tenant, bool make)
{
    int64_t created_ms = 0;
    uint32_t number = 0;
    uint8_t ulid[16];
    if (!id_parse(id, "ntf_", &created_ms) || created_ms * 1000 < table->since_us ||
        created_ms * 1000 >= table->until_us ||
        (table->only.len > 0 && !str_eq(table->only, tenant)) ||
        !find_tenant(table, tenant, make, &number)) {
        return NULL;
    }
    read_ulid(str_slice(id, PREFIX_LEN, id.len), ulid);
    size_t slot = 0;
    AuditEntry *entry = find_slot(table, ulid, number, &slot);
    return entry != NULL || !make ? entry : add_entry(table, ulid, number, slot);
}

AuditEntry *audit_entry(AuditTable *table, Str id, Str tenant)
{
    int64_t created_ms = 0;
    bool kept = id_parse(id, "ntf_", &created_ms) && created_ms * 1000 >= table->kept_us;
    return look_up(table, id, tenant, kept);
}

AuditEntry *audit_accepted(AuditTable *table, Str id, Str tenant)
{
    return look_up(table, id, tenant, true);
}

AuditEntry *audit_find(AuditTable *table, Str id, Str tenant)
{
    return look_up(table, id, tenant, false);
}

void audit_table_reread(AuditTable *table)
{
    for (size_t i = 0; i < table->count; i++) {
        AuditEntry *entry = audit_table_at(table, i);
        AuditEntry fresh = {.tenant = entry->tenant, .before = entry->missing};
        memcpy(fresh.ulid, entry->ulid, 16);
        fresh.seen = entry->seen & SEEN_REPAIRED;
        *entry = fresh;
    }
}
