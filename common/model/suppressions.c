// SPDX-License-Identifier: Apache-2.0
// Open addressing with linear probing; nothing is ever removed. The slots of one address are one
// run, whatever their categories, so one walk finds both entries that a notification can meet. Each
// tenant has its own table: hashes that were chosen so that they collide slow down no other tenant.
#include "common/model/suppressions.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/map.h"

enum { KEPT = 16, FIRST_SLOTS = 8, LOAD_NUMERATOR = 4, LOAD_DENOMINATOR = 5 };

#define SEQUENCE_MAX ((UINT64_C(1) << 44) - 1) // a thousand changes a second for 500 years

typedef struct Slot {
    uint8_t hash[KEPT];
    int64_t expires_at_us; // of a released one: its cause, for it expires no more
    int64_t changed_at_us;
    uint64_t sequence : 44; // of its message in CONFIG; 0: not known
    uint64_t channel : 6;
    uint64_t category : 6;
    uint64_t reason : 7; // SUPPRESSION_NONE: released
    uint64_t used : 1;
} Slot;

static_assert(sizeof(Slot) == 40, "millions of these are kept");
static_assert((int)CHANNEL_COUNT <= 64 && (int)CATEGORY_COUNT <= 64, "they fit in a slot");
static_assert((int)SUPPRESSION_COUNT <= 128, "it fits in a slot");

typedef struct Table {
    Slot *slots;
    size_t cap;
    size_t used;
    size_t released; // of them
} Table;

struct Suppressions {
    Map *tables;
    Table *platform; // also in `tables`; NULL: none
    size_t in_force;
    Map *readable; // key -> uint64_t, of one whose last message cannot be read: the last that can
};

static const Str PLATFORM = {"platform", 8};

static void free_table(void *value)
{
    Table *table = value;
    free(table->slots);
    free(table);
}

Suppressions *suppressions_new(void)
{
    Suppressions *s = xcalloc(1, sizeof *s);
    s->tables = map_new(free_table);
    s->readable = map_new(free);
    return s;
}

void suppressions_free(Suppressions *s)
{
    if (s != NULL) {
        map_free(s->tables);
        map_free(s->readable);
        free(s);
    }
}

// ---- one table ----

// An address hash is as good as random; a caller's own may not be, hence the mixing.
static size_t home_of(const Table *table, const uint8_t *hash)
{
    uint64_t a;
    uint64_t b;
    memcpy(&a, hash, sizeof a);
    memcpy(&b, hash + sizeof a, sizeof b);
    uint64_t h = (a ^ (b << 29 | b >> 35)) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 32;
    return (size_t)(((h & UINT32_MAX) * (uint64_t)table->cap) >> 32);
}

static size_t after(const Table *table, size_t at)
{
    return at + 1 == table->cap ? 0 : at + 1;
}

static bool is_key(const Slot *slot, Channel channel, Category category, const uint8_t *hash)
{
    return slot->channel == (unsigned)channel && slot->category == (unsigned)category &&
           memcmp(slot->hash, hash, KEPT) == 0;
}

// The key's slot, or the free one where it would go.
static Slot *find_slot(const Table *table, Channel channel, Category category, const uint8_t *hash)
{
    size_t at = home_of(table, hash);
    while (table->slots[at].used && !is_key(&table->slots[at], channel, category, hash)) {
        at = after(table, at);
    }
    return &table->slots[at];
}

static void grow(Table *table)
{
    Table old = *table;
    table->cap = old.cap == 0 ? FIRST_SLOTS : old.cap + old.cap / 2;
    assert(table->cap <= UINT32_MAX);
    table->slots = xcalloc(table->cap, sizeof *table->slots);
    for (size_t i = 0; i < old.cap; i++) {
        const Slot *slot = &old.slots[i];
        if (slot->used) {
            *find_slot(table, (Channel)slot->channel, (Category)slot->category, slot->hash) = *slot;
        }
    }
    free(old.slots);
}

// ---- all of them ----

static Table *table_of(Suppressions *s, Str tenant)
{
    Table *table = map_get(s->tables, tenant);
    if (table == NULL) {
        table = xcalloc(1, sizeof *table);
        map_put(s->tables, tenant, table);
        if (str_eq(tenant, PLATFORM)) {
            s->platform = table;
        }
    }
    return table;
}

static const Slot *look_up(
    const Suppressions *s, Str tenant, Channel channel, Category category, const uint8_t *hash)
{
    const Table *table = map_get(s->tables, tenant);
    if (table == NULL || table->used == 0) {
        return NULL;
    }
    const Slot *slot = find_slot(table, channel, category, hash);
    return slot->used ? slot : NULL;
}

// The key's slot, which becomes a used one when it is not.
static Slot *claim_slot(
    Suppressions *s, Str tenant, Channel channel, Category category, const uint8_t *hash,
    Table **ret_table)
{
    Table *table = table_of(s, tenant);
    if ((table->used + 1) * LOAD_DENOMINATOR > table->cap * LOAD_NUMERATOR) {
        grow(table);
    }
    Slot *slot = find_slot(table, channel, category, hash);
    *ret_table = table;
    if (!slot->used) {
        table->used++;
        table->released++; // until it has a reason
        memcpy(slot->hash, hash, KEPT);
        slot->used = 1;
        slot->channel = (unsigned)channel & 63;
        slot->category = (unsigned)category & 63;
        slot->reason = SUPPRESSION_NONE;
    }
    return slot;
}

static void set_reason(Suppressions *s, Table *table, Slot *slot, SuppressionReason reason)
{
    bool was_released = slot->reason == SUPPRESSION_NONE;
    table->released -= was_released ? 1 : 0;
    s->in_force -= was_released ? 0 : 1;
    slot->reason = (unsigned)reason & 127;
    table->released += reason == SUPPRESSION_NONE ? 1 : 0;
    s->in_force += reason == SUPPRESSION_NONE ? 0 : 1;
}

enum { KEY_SIZE = 2 + KEPT + 64 };

// Of `readable`: few, so they have the whole key each.
static Str key_of(
    char out[KEY_SIZE], Str tenant, Channel channel, Category category, const uint8_t *hash)
{
    size_t len = tenant.len < 64 ? tenant.len : 64;
    out[0] = (char)channel;
    out[1] = (char)category;
    memcpy(out + 2, hash, KEPT);
    memcpy(out + 2 + KEPT, tenant.ptr, len);
    return str_of(out, 2 + KEPT + len);
}

void suppressions_note(
    Suppressions *s, Str tenant, Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN], const SuppressionEntry *entry)
{
    Table *table = NULL;
    Slot *slot = claim_slot(s, tenant, channel, category, hash, &table);
    set_reason(s, table, slot, entry->reason);
    slot->expires_at_us =
        entry->reason == SUPPRESSION_NONE ? (int64_t)entry->cause : entry->expires_at_us;
    slot->changed_at_us = entry->changed_at_us;
    slot->sequence = entry->sequence & SEQUENCE_MAX;
    if (map_count(s->readable) > 0) {
        char key[KEY_SIZE];
        (void)map_remove(s->readable, key_of(key, tenant, channel, category, hash));
    }
}

void suppressions_note_unreadable(
    Suppressions *s, Str tenant, Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN], uint64_t sequence)
{
    char key[KEY_SIZE];
    Str spoiled = key_of(key, tenant, channel, category, hash);
    bool known = look_up(s, tenant, channel, category, hash) != NULL;
    Table *table = NULL;
    Slot *slot = claim_slot(s, tenant, channel, category, hash, &table);
    if (!known) {
        set_reason(s, table, slot, SUPPRESSION_UNREADABLE);
    }
    if (map_get(s->readable, spoiled) == NULL) {
        uint64_t *there = xmalloc(sizeof *there);
        *there = slot->sequence;
        map_put(s->readable, spoiled, there);
    }
    slot->sequence = sequence & SEQUENCE_MAX;
}

uint64_t suppressions_readable(
    const Suppressions *s, Str tenant, Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN])
{
    char key[KEY_SIZE];
    const uint64_t *there =
        map_count(s->readable) == 0
            ? NULL
            : map_get(s->readable, key_of(key, tenant, channel, category, hash));
    return there != NULL ? *there : suppressions_sequence(s, tenant, channel, category, hash);
}

bool suppressions_stands(
    const Suppressions *s, Str tenant, Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN], SuppressionReason reason, int64_t expires_at_us)
{
    const Slot *slot = look_up(s, tenant, channel, category, hash);
    return slot != NULL && slot->reason == (unsigned)reason &&
           slot->expires_at_us == expires_at_us && slot->sequence > 0 &&
           suppressions_readable(s, tenant, channel, category, hash) == slot->sequence;
}

uint64_t suppressions_sequence(
    const Suppressions *s, Str tenant, Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN])
{
    const Slot *slot = look_up(s, tenant, channel, category, hash);
    return slot == NULL ? 0 : slot->sequence;
}

void suppressions_put(
    Suppressions *s, Str tenant, Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN], SuppressionReason reason, int64_t expires_at_us)
{
    SuppressionEntry entry = {.reason = reason, .expires_at_us = expires_at_us};
    suppressions_note(s, tenant, channel, category, hash, &entry);
}

// ---- asking ----

bool category_ignores_opt_out(Category category)
{
    return category == CATEGORY_TRANSACTIONAL || category == CATEGORY_SECURITY ||
           category == CATEGORY_COMPLIANCE;
}

static bool in_force(const Slot *slot, int64_t now_us)
{
    return slot->reason != SUPPRESSION_NONE &&
           (slot->expires_at_us == 0 || slot->expires_at_us > now_us);
}

// Of two reasons the one that holds for more: a choice yields to a fact.
static SuppressionReason stricter(SuppressionReason a, SuppressionReason b)
{
    if (a == SUPPRESSION_NONE || (a == SUPPRESSION_OPT_OUT && b != SUPPRESSION_NONE)) {
        return b;
    }
    return a;
}

SuppressionReason suppressions_find(
    const Suppressions *s, Str tenant, Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN], int64_t now_us)
{
    const Table *table = map_get(s->tables, tenant);
    SuppressionReason found = SUPPRESSION_NONE;
    if (table == NULL || table->used == table->released) {
        return found;
    }
    for (size_t at = home_of(table, hash); table->slots[at].used; at = after(table, at)) {
        const Slot *slot = &table->slots[at];
        bool asked =
            is_key(slot, channel, CATEGORY_NONE, hash) || is_key(slot, channel, category, hash);
        if (asked && in_force(slot, now_us)) {
            found = stricter(found, (SuppressionReason)slot->reason);
        }
    }
    return found;
}

SuppressionReason suppressions_of_entry(
    const Suppressions *s, Str tenant, Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN], int64_t now_us)
{
    const Slot *slot = look_up(s, tenant, channel, category, hash);
    return slot != NULL && in_force(slot, now_us) ? (SuppressionReason)slot->reason
                                                  : SUPPRESSION_NONE;
}

const uint8_t SUPPRESSION_EVERY_ADDRESS[SUPPRESSION_HASH_LEN] = {
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
};

SuppressionReason suppressions_classify(
    const Suppressions *s, Str tenant, Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN], const uint8_t *platform_hash, int64_t now_us)
{
    SuppressionReason reason = suppressions_find(s, tenant, channel, category, hash, now_us);
    if (reason == SUPPRESSION_NONE) {
        reason = suppressions_find(s, tenant, channel, category, SUPPRESSION_EVERY_ADDRESS, now_us);
    }
    if (platform_hash != NULL) {
        SuppressionReason other =
            suppressions_find(s, PLATFORM, channel, category, platform_hash, now_us);
        reason = stricter(reason, other);
    }
    bool ignored = reason == SUPPRESSION_OPT_OUT && category_ignores_opt_out(category);
    return ignored ? SUPPRESSION_NONE : reason;
}

static bool holds_for_more(SuppressionReason reason, SuppressionReason there)
{
    switch (there) {
    case SUPPRESSION_OPT_OUT:
    case SUPPRESSION_UNREADABLE:
        return reason != SUPPRESSION_OPT_OUT;
    case SUPPRESSION_COMPLAINT:
    case SUPPRESSION_COMPLIANCE:
        return false;
    default:
        return reason == SUPPRESSION_COMPLAINT;
    }
}

bool suppressions_wants(
    const Suppressions *s, Str tenant, Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN], SuppressionReason reason, int64_t at_us,
    uint64_t cause)
{
    const Slot *slot = look_up(s, tenant, channel, category, hash);
    if (slot == NULL) {
        return true;
    }
    if (slot->reason == SUPPRESSION_NONE) {
        bool same = cause != 0 && (int64_t)cause == slot->expires_at_us;
        return at_us > slot->changed_at_us && !same;
    }
    if (!in_force(slot, at_us)) {
        return true;
    }
    bool forever = slot->expires_at_us == 0;
    return !forever || holds_for_more(reason, (SuppressionReason)slot->reason);
}

size_t suppressions_count(const Suppressions *s)
{
    return s->in_force;
}

size_t suppressions_count_of_platform(const Suppressions *s)
{
    return s->platform == NULL ? 0 : s->platform->used - s->platform->released;
}
