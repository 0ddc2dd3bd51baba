// SPDX-License-Identifier: Apache-2.0
#include "services/cli/manage/suppress_entry.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/session/key_file.h"
#include "services/cli/config/config_walk.h"

// ---- whose list ----

static bool read_master(Suppress *suppress, Error *err)
{
    Cli *cli = suppress->cli;
    const char *path = cli->settings.master_key_file;
    suppress->master = cli_need(path, "STENTOR_MASTER_KEY_FILE", err)
                           ? keys_open(&suppress->session, path, cli->arena, err)
                           : NULL;
    return suppress->master != NULL || error_wrap(err, "addresses are kept as keyed hashes");
}

bool suppress_open(Suppress *suppress, Cli *cli, bool wants_key, Error *err)
{
    const char *tenant = args_flag(&cli->args, "tenant");
    tenant = tenant != NULL ? tenant : cli->settings.tenant;
    *suppress = (Suppress){.cli = cli};
    if (!cli_need(tenant, "STENTOR_TENANT (or --tenant)", err)) {
        return false;
    }
    if (!id_is_tenant(str_from(tenant))) {
        return error_set(
            err, ERROR_PERMANENT, "'%s' is not a tenant id: 1 to 32 of a-z 0-9 '_' '-'", tenant);
    }
    suppress->tenant = arena_cstr(cli->arena, str_from(tenant));
    if (!session_open(&suppress->session, &cli->settings.session, err)) {
        return false;
    }
    if (wants_key && !read_master(suppress, err)) {
        session_close(&suppress->session);
        return false;
    }
    return true;
}

void suppress_close(Suppress *suppress)
{
    session_close(&suppress->session);
    master_key_free(suppress->master);
}

// ---- flags ----

static Str flag(const Suppress *suppress, const char *name)
{
    return str_from(args_flag(&suppress->cli->args, name)); // NULL gives the empty slice
}

bool suppress_defaults(const Suppress *suppress, SuppressLine *ret, Error *err)
{
    Str channel = flag(suppress, "channel");
    Str category = flag(suppress, "category");
    Str reason = flag(suppress, "reason");
    Str expires = flag(suppress, "expires");
    *ret = (SuppressLine){
        .channel = CHANNEL_EMAIL,
        .reason = SUPPRESSION_MANUAL,
        .note = flag(suppress, "note"),
        .address = STR_EMPTY,
    };
    if (channel.len > 0 && !channel_from_name(channel, &ret->channel)) {
        return error_set(err, ERROR_PERMANENT, "--channel: not one such as 'email'");
    }
    bool one = category.len > 0 && !str_eq(category, STR("any"));
    if (one && !category_from_name(category, &ret->category)) {
        return error_set(err, ERROR_PERMANENT, "--category: not one such as 'marketing'");
    }
    if (reason.len > 0 && !suppression_reason_from_name(reason, &ret->reason)) {
        return error_set(
            err, ERROR_PERMANENT,
            "--reason: one of hard_bounce, complaint, invalid_address, opt_out, manual, "
            "compliance, rate_limit");
    }
    if (expires.len > 0 && !clock_parse(expires, &ret->expires_at_us)) {
        return error_set(
            err, ERROR_PERMANENT, "--expires: not a time such as '2026-11-20T18:25:36Z'");
    }
    if (ret->note.len > SUPPRESSION_NOTE_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "--note: longer than %d bytes", (int)SUPPRESSION_NOTE_MAX);
    }
    return true;
}

bool suppress_event(
    const Suppress *suppress, const SuppressLine *line, int64_t at_us, Arena *arena,
    Stentor__V1__Suppression **ret_entry, BusOut *ret, Error *err)
{
    SuppressionSpec spec = {
        .tenant = str_from(suppress->tenant),
        .channel = line->channel,
        .category = line->category,
        .hash = line->hash,
        .reason = line->reason,
        .at_us = at_us,
        .expires_at_us = line->expires_at_us,
        .by = STR("cli"),
        .note = line->note,
        .notification_id = STR_EMPTY,
        .address = line->address,
    };
    *ret_entry = suppression_make(&spec, arena);
    return suppression_event(*ret_entry, arena, ret, err);
}

// ---- reading the list ----

typedef struct Read {
    Suppress *suppress;
    SuppressEach each;
    void *ctx;
    Arena *arena;
} Read;

static bool is_wanted(const Suppress *suppress, const Stentor__V1__Suppression *entry)
{
    for (size_t i = 0; i < suppress->wanted_count; i++) {
        if (memcmp(suppress->wanted[i], entry->address_hash.data, SUPPRESSION_HASH_LEN) == 0) {
            return true;
        }
    }
    return suppress->wanted_count == 0;
}

static bool take(void *ctx, const BusMessage *message, const char *reason, Error *err)
{
    const Read *read = ctx;
    Str key = message->subject;
    Str token = STR_EMPTY;
    Str tenant = STR_EMPTY;
    Error ignored = {0}; // an entry that the services pass over too
    (void)err;
    arena_reset(read->arena);
    bool shaped = reason == NULL && str_split(&key, '.', &token) && str_split(&key, '.', &token) &&
                  str_split(&key, '.', &tenant);
    Stentor__V1__Suppression *entry =
        shaped ? suppression_read(tenant, key, message->payload, read->arena, &ignored) : NULL;
    return entry == NULL || !is_wanted(read->suppress, entry) ||
           read->each(read->ctx, entry, message->sequence);
}

bool suppress_each(Suppress *suppress, const char *filter, SuppressEach each, void *ctx, Error *err)
{
    Read read = {.suppress = suppress, .each = each, .ctx = ctx, .arena = arena_new(0)};
    ConfigPart part = {
        .filter =
            arena_printf(suppress->cli->arena, "cfg.suppression.%s.%s", suppress->tenant, filter)};
    bool ok = config_walk(&suppress->session, &part, take, &read, err);
    arena_free(read.arena);
    return ok || error_wrap(err, "the suppressions of '%s'", suppress->tenant);
}
