// SPDX-License-Identifier: Apache-2.0
// Suppressions: the addresses that must not be written to, in memory, by tenant, channel, category
// and address hash. A table a tenant, 40 bytes a slot (55 to 75 bytes an entry), so that millions
// fit. Pure; time is an argument. Released entries stay, for what is known of an address from
// before its release must not suppress it again. Each entry knows the sequence of its message in
// CONFIG, so that who writes the next one says which one it replaces.
#pragma once

#include "common/model/enums.h"

enum { SUPPRESSION_HASH_LEN = 32 };

// In the place of an address's hash: the entry is about every address of its tenant, channel and
// category (guard rails). No address has it but by breaking SHA-256.
extern const uint8_t SUPPRESSION_EVERY_ADDRESS[SUPPRESSION_HASH_LEN];

typedef struct Suppressions Suppressions;

Suppressions *suppressions_new(void);
void suppressions_free(Suppressions *suppressions); // NULL-safe

// category CATEGORY_NONE: every category. expires_at_us 0: never. Replaces the key's entry. The
// hash is made with the tenant's name (for "platform": with "platform"); its first 16 bytes are
// kept.
void suppressions_put(
    Suppressions *suppressions, Str tenant, Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN], SuppressionReason reason, int64_t expires_at_us);

// What is in force at now_us for the category: its own entry or that of every category, of the two
// the one that also holds for transactional mail. SUPPRESSION_NONE: nothing.
SuppressionReason suppressions_find(
    const Suppressions *suppressions, Str tenant, Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN], int64_t now_us);

// What is in force of exactly this entry: neither another category's nor that of every category.
SuppressionReason suppressions_of_entry(
    const Suppressions *suppressions, Str tenant, Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN], int64_t now_us);

// As suppressions_find, asked of the tenant's list and then of the platform's (whose hash is
// another); NULL: the platform's is not asked. The tenant's entry about every address counts too.
// An opt-out does not count for a category that ignores it.
SuppressionReason suppressions_classify(
    const Suppressions *suppressions, Str tenant, Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN], const uint8_t *platform_hash, int64_t now_us);

// transactional, security and compliance are written whatever the recipient chose.
bool category_ignores_opt_out(Category category);

// Entries in force or expired; released ones are not counted.
size_t suppressions_count(const Suppressions *suppressions);
size_t suppressions_count_of_platform(const Suppressions *suppressions);

// ---- what happened to an entry, for those that make suppressions by themselves ----

typedef struct SuppressionEntry {
    SuppressionReason reason; // SUPPRESSION_NONE: released
    int64_t expires_at_us;    // 0: never
    int64_t changed_at_us;    // when it was made or released
    uint64_t sequence;        // of its message in CONFIG; 0: not known
    uint64_t cause;           // of a released one: a digest of the event that had made it; 0: none
} SuppressionEntry;

// As suppressions_put; reason SUPPRESSION_NONE notes a release.
void suppressions_note(
    Suppressions *suppressions, Str tenant, Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN], const SuppressionEntry *entry);

// The key's last message in CONFIG cannot be read: what is known of it stays, and when nothing is
// known it counts as suppressed (SUPPRESSION_UNREADABLE, for ever) until a readable one comes.
void suppressions_note_unreadable(
    Suppressions *suppressions, Str tenant, Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN], uint64_t sequence);

// Of the key's last message in CONFIG; 0: none is known.
uint64_t suppressions_sequence(
    const Suppressions *suppressions, Str tenant, Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN]);
// Of its last message that can be read, which is what is known of it; 0: there is none.
uint64_t suppressions_readable(
    const Suppressions *suppressions, Str tenant, Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN]);
// The key is suppressed for just that reason until just that time, by a message that can be read.
bool suppressions_stands(
    const Suppressions *suppressions, Str tenant, Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN], SuppressionReason reason, int64_t expires_at_us);

// May something that happened at `at_us` make an entry of that reason? Not when the key was
// released since or is released of the entry that the same event had made (its vendor gives no
// time, so `at_us` of a repeat is later; cause 0: it is no such event), and not when it is
// suppressed already for a reason that holds at least as much: a repeat changes nothing, and an
// opt-out does not replace a hard bounce. A complaint replaces all but another one and compliance,
// for only it takes a right of its own to release. What cannot be read is replaced by all but an
// opt-out, which may hold for less.
bool suppressions_wants(
    const Suppressions *suppressions, Str tenant, Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN], SuppressionReason reason, int64_t at_us,
    uint64_t cause);
