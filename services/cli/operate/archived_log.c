// SPDX-License-Identifier: Apache-2.0
#include "services/cli/operate/archived_log.h"

bool archived_log_open(const Cli *cli, bool passes_holes, ArchivedLog *ret, Error *err)
{
    const Settings *settings = &cli->settings;
    *ret = (ArchivedLog){.open = settings->storage.url[0] != '\0'};
    ret->past.passes_holes = passes_holes;
    if (!ret->open) {
        return true;
    }
    ret->past.storage = storage_wait_open(&settings->storage, err);
    if (ret->past.storage == NULL) {
        return error_wrap(err, "STENTOR_STORAGE_URL");
    }
    ret->past.catalog = log_catalog_open(settings->database_url, err);
    return ret->past.catalog != NULL;
}

void archived_log_close(ArchivedLog *log)
{
    storage_wait_close(log->past.storage);
    log_catalog_close(log->past.catalog);
}
