// SPDX-License-Identifier: Apache-2.0
// /v1/templates: publish a version, list and read what is published, preview (templates_life.h
// changes a version's status). Names come from the
// catalog, words from CONFIG when they are asked for.
#pragma once

#include "common/api/api.h"
#include "common/bus/jetstream/bus.h"

typedef struct TemplatesApi {
    Bus *bus;
    const Catalog *catalog;
    int64_t preview_cpu_us; // that one preview may take
} TemplatesApi;

// Where a version is in CONFIG. The key is a key and the version a semantic one.
char *templates_subject(Arena *arena, Str tenant, Str key, Str version);

void templates_api_add(Api *api, TemplatesApi *templates);
