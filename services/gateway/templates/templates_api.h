// SPDX-License-Identifier: Apache-2.0
// /v1/templates: publish a version, list and read what is published, preview (templates_life.h
// changes a version's status). Names come from the
// catalog, words from CONFIG when they are asked for.
#pragma once

#include "common/api/api.h"
#include "common/bus/jetstream/bus.h"

typedef struct TemplatesApi {
    Bus *bus;
    Catalog *catalog;       // a published version is known here before the mirror brings it
    int64_t preview_cpu_us; // that one preview may take
} TemplatesApi;

// A version was stored: the next call must not meet what was before.
void templates_note(TemplatesApi *api, const Stentor__V1__TemplateVersion *version, Str payload);
// Where a version is in CONFIG. The key is a key and the version a semantic one.
char *templates_subject(Arena *arena, Str tenant, Str key, Str version);

void templates_api_add(Api *api, TemplatesApi *templates);
