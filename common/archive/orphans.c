// SPDX-License-Identifier: Apache-2.0
// Objects that a killed process left: put, and named by no row. Another zstd gives another name.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/archive/archive_run.h"
#include "common/archive/database.h"
#include "common/archive/owner.h"
#include "common/base/clock.h"
#include "common/base/id.h"

enum { BATCH = 500, NAMES_MAX = 1024 * 1024 };

typedef struct Search {
    Archive *archive;
    ArchiveOrphans *orphans;
    Buf *found;
    int64_t now_us;
    Buf names; // keys, a line each, that are not asked yet
    int count;
    Error err;
} Search;

// Not template-assets/: no row names those, and mails that were sent show them for ever.
static const char *const prefixes[] = {"archive/", "cold/",     "manifest/",
                                       "log/",     "rendered/", "webhooks/"};

// clang-format off
static const char unknown_sql[] =
    "SELECT k FROM string_to_table(rtrim($1, E'\\n'), E'\\n') AS k"
    " WHERE NOT EXISTS (SELECT FROM archive.objects o WHERE o.key = k AND o.state <> 'deleted')"
    " AND NOT EXISTS (SELECT FROM archive.manifests m WHERE m.key = k)"
    " AND NOT EXISTS (SELECT FROM archive.segments s WHERE s.key = k AND s.deleted_at IS NULL)";
// clang-format on

static bool is_old(const Search *search, const StorageInfo *info)
{
    return info->modified_us <= search->now_us - search->orphans->older_us;
}

static bool delete_orphan(
    const Search *search, const char *key, const StorageInfo *info, Error *err)
{
    return storage_wait_delete(search->archive->storage, str_from(key), info->version, err) ==
           STORAGE_DONE;
}

// Asked once more: the listing may be hours old, and a step that was cut short makes the same name.
static bool is_unknown(const Search *search, const char *key, bool *ret, Error *err)
{
    const char *params[] = {key};
    AUTO(PGresult) rows = archive_ask(search->archive->pg, "orphan", unknown_sql, params, 1, err);
    *ret = rows != NULL && PQntuples(rows) == 1;
    return rows != NULL;
}

static bool take_orphan(Search *search, const char *key, Error *err)
{
    StorageInfo info = {0};
    bool unknown = false;
    StorageOutcome outcome = storage_wait_head(search->archive->storage, str_from(key), &info, err);
    if (outcome == STORAGE_FAILED || !is_unknown(search, key, &unknown, err)) {
        return false;
    }
    if (outcome == STORAGE_ABSENT || !unknown || !is_old(search, &info) ||
        strcmp(info.installation, search->archive->installation) != 0) {
        return true; // gone or taken meanwhile, or another's
    }
    search->orphans->count++;
    search->orphans->bytes += info.bytes;
    buf_printf(search->found, "%s\t%" PRIu64 "\n", key, info.bytes);
    return !search->orphans->removes || delete_orphan(search, key, &info, err);
}

static bool ask_names(Search *search, Buf *unknown, Error *err)
{
    const char *params[] = {buf_c(&search->names)};
    AUTO(PGresult) rows = archive_ask(search->archive->pg, "orphans", unknown_sql, params, 1, err);
    if (rows == NULL) {
        return false;
    }
    for (int i = 0; i < PQntuples(rows); i++) {
        buf_printf(unknown, "%s\n", archive_text(rows, i, 0));
    }
    buf_clear(&search->names);
    search->count = 0;
    return true;
}

typedef struct Listing {
    Search *search;
    Buf unknown;
    bool ok;
} Listing;

static void on_entry(void *ctx, Str key, const StorageInfo *info)
{
    Listing *listing = ctx;
    Search *search = listing->search;
    if (!listing->ok || !is_old(search, info)) {
        return;
    }
    buf_str(&search->names, key);
    buf_char(&search->names, '\n');
    if (++search->count >= BATCH) {
        listing->ok = ask_names(search, &listing->unknown, &search->err);
    }
}

static bool take_unknown(Search *search, const Buf *unknown, Error *err)
{
    Str rest = buf_view(unknown);
    Str line;
    while (str_split(&rest, '\n', &line)) {
        char key[STORAGE_KEY_MAX + 1];
        if (line.len > 0 && str_to_c(line, key, sizeof key) && !take_orphan(search, key, err)) {
            return false;
        }
    }
    return true;
}

static bool search_prefix(Search *search, const char *prefix, Error *err)
{
    Listing listing = {.search = search, .ok = true};
    buf_init(&listing.unknown, 16 * NAMES_MAX);
    bool ok =
        storage_wait_list(search->archive->storage, str_from(prefix), on_entry, &listing, err) ==
        STORAGE_DONE;
    if (ok && !listing.ok) {
        *err = search->err;
        ok = false;
    }
    ok = ok && ask_names(search, &listing.unknown, err) &&
         take_unknown(search, &listing.unknown, err);
    buf_done(&listing.unknown);
    return ok;
}

bool archive_orphans(Archive *archive, ArchiveOrphans *orphans, Buf *found, Error *err)
{
    Search search = {
        .archive = archive, .orphans = orphans, .found = found, .now_us = clock_now_us()};
    int64_t least_us = INT64_C(3600000000) * ORPHAN_DELETE_HOURS;
    if (orphans->removes && orphans->older_us < least_us) {
        return error_set(
            err, ERROR_CONFIG,
            "orphans are deleted when they are a day old: the row of a younger one may be under "
            "way (HINT: --older-than 1d)");
    }
    bool ok = !orphans->removes || owner_may_delete(archive, search.now_us, err);
    buf_init(&search.names, NAMES_MAX);
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0] && ok; i++) {
        ok = search_prefix(&search, prefixes[i], err);
    }
    buf_done(&search.names);
    return ok;
}
