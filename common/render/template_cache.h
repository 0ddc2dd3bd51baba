// SPDX-License-Identifier: Apache-2.0
// Template cache: every template version that CONFIG holds, as the bytes it came in, and the most
// recently used of them compiled. A version is compiled at its first use, so a hundred thousand
// versions cost their bytes and no more. It does not choose versions: the one of a request was
// frozen at accept.
#pragma once

#include "common/render/version.h"

typedef struct TemplateCache TemplateCache;

TemplateCache *template_cache_new(size_t compiled_max);
void template_cache_free(TemplateCache *cache);

// cfg.template.<tenant>.<key>: `key` is the template's key, channel and version
// (common/model/template_key.h), or the older form without the channel. An empty payload removes
// what stands there. ERROR_PERMANENT when the payload is not a template version, or not the one
// that the subject speaks of. stored_at_us: when CONFIG stored it; of what is archived, since when.
bool template_cache_put(
    TemplateCache *cache, Str tenant, Str key, Str payload, int64_t stored_at_us, Error *err);

typedef struct TemplateName {
    Str tenant, key;
    Channel channel;
    Str version;
    int64_t asked_at_us; // when the request was frozen to it; 0: before all that is archived
} TemplateName;

// The tenant's own version, else the one of the tenant "platform", which also stands before a draft
// of the tenant's with its number, and before one that was archived when it was asked for; NULL:
// neither is there.
// Valid until the next call.
const CompiledVersion *template_cache_get(TemplateCache *cache, const TemplateName *wanted);

enum { TEMPLATE_VERSION_SIZE = 65 };

// The version that a new request for the template would take, whatever version is named: the
// highest active one of the tenant's own, else of the platform's. false: there is none. Looks
// through all names: for what is sent again, not for every request. `compare` orders versions.
bool template_cache_active(
    const TemplateCache *cache, const TemplateName *wanted, int (*compare)(Str a, Str b),
    char ret[TEMPLATE_VERSION_SIZE]);

size_t template_cache_count(const TemplateCache *cache);
size_t template_cache_compiled(const TemplateCache *cache);
