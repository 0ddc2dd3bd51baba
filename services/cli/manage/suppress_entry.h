// SPDX-License-Identifier: Apache-2.0
// What `stentor suppress ...` shares: whose list, the key that addresses are hashed with, reading
// the list from CONFIG.
#pragma once

#include "common/codec/seal.h"
#include "common/session/session.h"
#include "services/cli/cli.h"
#include "services/cli/import/suppress_line.h"

typedef struct Suppress {
    Cli *cli;
    char *tenant;
    MasterKey *master;                                     // NULL: not needed
    uint8_t wanted[MASTER_KEYS_MAX][SUPPRESSION_HASH_LEN]; // under each hash key
    size_t wanted_count;                                   // 0: whatever address
    Session session;
} Suppress;

// wants_key: the command takes addresses. After a success: suppress_close.
bool suppress_open(Suppress *suppress, Cli *cli, bool wants_key, Error *err);
void suppress_close(Suppress *suppress);

// The flags --channel, --category, --reason, --note, --expires as a line's defaults.
bool suppress_defaults(const Suppress *suppress, SuppressLine *ret, Error *err);

// Called for each entry of the tenant, released ones too, with its message's sequence; false:
// enough.
typedef bool (*SuppressEach)(void *ctx, Stentor__V1__Suppression *entry, uint64_t sequence);
// Of the address that suppress->wanted names only.
// filter: what follows "cfg.suppression.<tenant>.". The entries live until the next.
bool suppress_each(
    Suppress *suppress, const char *filter, SuppressEach each, void *ctx, Error *err);

// What a line asks for, as an event in `arena`.
bool suppress_event(
    const Suppress *suppress, const SuppressLine *line, int64_t at_us, Arena *arena,
    Stentor__V1__Suppression **ret_entry, BusOut *ret, Error *err);
