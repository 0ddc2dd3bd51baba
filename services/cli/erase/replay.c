// SPDX-License-Identifier: Apache-2.0
// erase replay: after a restore of Postgres, the erasures that were done since are done again.
#include "common/erasure/erasure_replay.h"
#include "services/cli/erase/certificates.h"
#include "services/cli/erase/erase.h"

// The storage of STENTOR_STORAGE_URL; *ret NULL: none is set.
static bool open_storage(const Cli *cli, StorageWait **ret, Error *err)
{
    *ret = NULL;
    if (cli->settings.storage.url[0] == '\0') {
        return true;
    }
    *ret = storage_wait_open(&cli->settings.storage, err);
    return *ret != NULL || error_wrap(err, "STENTOR_STORAGE_URL");
}

static void on_warning(void *ctx, const char *text)
{
    cli_note(ctx, "%s", text);
}

// Storage, and the public key in `cli`'s arena.
static bool open_objects(Cli *cli, ErasureReplay *replay, Error *err)
{
    ErasureKey *key = NULL;
    replay->on_warning = on_warning;
    replay->ctx = cli;
    bool ok = erase_key(cli, &key, err) && open_storage(cli, &replay->storage, err);
    if (ok && key != NULL) {
        uint8_t *public_key = arena_alloc(cli->arena, ERASURE_PUBLIC_LEN);
        erasure_key_public(key, public_key);
        replay->public_key = public_key;
    }
    erasure_key_free(key);
    return ok;
}

static bool run(Cli *cli, ErasureReplay *replay, Error *err)
{
    bool ok = open_objects(cli, replay, err) && erasure_replay_run(replay, err);
    storage_wait_close(replay->storage);
    return ok;
}

int cmd_erase_replay(Cli *cli)
{
    Error err = {0};
    EraseLinks links;
    ErasureReplay replay = {.arena = cli->arena};
    bool ok = erase_open(cli, &links, &err);
    replay.pg = links.pg;
    replay.session = &links.session;
    ok = ok && run(cli, &replay, &err);
    erase_close(&links);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    const char *const pairs[] = {
        "known",
        arena_printf(cli->arena, "%zu", replay.known),
        "replayed",
        arena_printf(cli->arena, "%zu", replay.replayed),
        "certificates",
        arena_printf(cli->arena, "%zu", replay.certificates),
        "gate",
        "open",
        NULL};
    print_pairs(cli, pairs);
    return EXIT_DONE;
}

bool erase_close_gate(Cli *cli, Session *session, Error *err)
{
    ErasureReplay replay = {.arena = cli->arena, .session = session};
    bool ok = open_objects(cli, &replay, err);
    replay.pg = ok ? erasure_pg_open(cli->settings.database_url, err) : NULL;
    ok = replay.pg != NULL && erasure_replay_check(&replay, err);
    if (ok && replay.missing > 0) {
        const char *reason = arena_printf(
            cli->arena,
            "%zu erasures are not in this database, which was restored: run 'stentor erase replay'",
            replay.missing);
        AUTO(PGresult)
        done = erasure_pg_query(replay.pg, "SELECT keys.set_gate($1)", 1, &reason, err);
        ok = done != NULL;
        cli_step(cli, "erasures", reason);
    }
    PQfinish(replay.pg);
    storage_wait_close(replay.storage);
    return ok;
}
