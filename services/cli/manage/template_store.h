// SPDX-License-Identifier: Apache-2.0
// The template versions that CONFIG holds, as the `template` commands read and write them.
#pragma once

#include "common/session/config_put.h"
#include "services/cli/cli.h"
#include "stentor/v1/config.pb-c.h"

typedef struct Semver {
    int64_t part[3];
} Semver;

bool parse_semver(Str text, Semver *ret); // X.Y.Z
int compare_semver(Semver a, Semver b);

// One version, without its words unless they were asked for.
typedef struct StoredVersion {
    const char *tenant;
    const char *key;
    const char *version;
    Semver semver; // 0.0.0 for one that is not X.Y.Z
    Stentor__V1__TemplateStatus status;
    Stentor__V1__Channel channel;
    Stentor__V1__Category category;
    int64_t published_at_us;
    const char *published_by;
    const char *approved_by;
    const char *source;
    const char *provenance;
    size_t locale_count;
    const Stentor__V1__TemplateVersion *whole; // NULL: not asked for
    uint64_t sequence;                         // of its message in CONFIG
} StoredVersion;

// In order of key, then version.
typedef struct TemplateStore {
    StoredVersion *items;
    size_t count;
} TemplateStore;

// key NULL: all of the tenant's. Everything lives in the command's arena.
bool template_store_read(
    Session *session, Cli *cli, const char *tenant, const char *key, bool words, TemplateStore *ret,
    Error *err);
const StoredVersion *template_store_find(const TemplateStore *store, const char *version);
// Opens the session and reads the tenant's versions of the key (NULL: all keys), else the
// platform's. --platform: only those. On failure the session is closed.
bool template_store_open(
    Session *session, Cli *cli, const char *key, bool words, TemplateStore *ret, Error *err);
int template_not_found(const char *key, const char *version); // prints it; EXIT_NOT_FOUND
// The highest active one, else the highest; NULL: there is none.
const StoredVersion *template_store_best(const TemplateStore *store);
char *template_store_next(Cli *cli, const TemplateStore *store); // one patch above the highest

// Publishes the version. One that `store` does not have must be new on the server too: two who
// publish the same version at the same moment cannot both succeed.
bool template_store_put(
    Session *session, Cli *cli, const TemplateStore *store,
    const Stentor__V1__TemplateVersion *version, Error *err);
