// SPDX-License-Identifier: Apache-2.0
// What the calls to /v1/templates have in common: the body, a stored version's content, and storing
// one in the place of just what was read. Each check answers the call when it fails.
#pragma once

#include "common/api/api.h"
#include "common/api/config_write.h"
#include "common/api/precondition.h"
#include "services/gateway/templates/templates_api.h"

#define PLATFORM STR("platform")

// One call on its way to its answer; lives in the request's arena.
typedef struct TemplateCall {
    ApiCall *base;
    TemplatesApi *api;
    json_t *body;                          // the arena's: answers quote it; NULL: none
    const char *subject;                   // of the version in CONFIG
    Stentor__V1__TemplateVersion *version; // what is published, previewed or moved on
    Str packed;
    Problem problem; // all faults of the body so far; status 0: none
    Precondition needs;
    Str locale;                     // of a preview
    Stentor__V1__TemplateStatus to; // of a move
    Str approved_by;                // of a move; empty: not said
    bool deprecates;                // a move that leaves the status
    int64_t deprecated_at_us;       // 0: withdrawn
    Channel channel;                // that was asked for; NONE: not said
    bool may_change_category;       // the caller said so
    const char *warning;            // for the answer; NULL: none
} TemplateCall;

TemplateCall *template_call_new(ApiCall *base);

// All but the last: false: answered.
bool template_call_read_body(TemplateCall *call);
// Nothing is wrong so far; else all faults at once.
bool template_call_good(TemplateCall *call);
// `name` of the query or of a body's member becomes the channel that was asked for; empty: any.
bool template_call_channel(TemplateCall *call, Str name);
// Which template of the tenant's key is meant: on the channel that was asked for, else the key's
// only one. No channel: answered; the key has several.
bool template_call_choose(TemplateCall *call, Str tenant, Str key, CatalogName *ret);
// The subject of the tenant's own, else the platform's. Empty version: the active one.
bool template_call_find(TemplateCall *call, Str key, Str version);
// What config_read brought becomes the version.
bool template_call_unpack(TemplateCall *call, Str payload, const Error *err);
// Stores the version as `subject`; replaces: the sequence that was read, 0: it must be new.
void template_call_store(TemplateCall *call, uint64_t replaces, ConfigWritten done);
// The answer once it is stored; this process's next call does not meet what was before.
void template_call_answer_stored(TemplateCall *call, int status, Str payload, uint64_t sequence);

// One more fault of the body; false.
bool template_call_fail(TemplateCall *call, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// `document` becomes the version, of the caller's tenant and by the caller's key; what is wrong
// with it is added to the faults. false: something is.
bool template_call_read_version(TemplateCall *call, const json_t *document);

// ---- the category (template_category.c) ----

// A document without a category: the version gets the one in force.
void template_category_keep(TemplateCall *call);
// Once the version has the status that it is to get: why it may not get it, because the category of
// the key's notifications would change and the caller did not allow that; NULL: it may. What
// changes (or will, when a draft becomes active) is a warning for the answer.
const char *template_category_change(TemplateCall *call);

// ---- assets (template_assets.c) ----

// Of the caller's tenant.
AssetLookup template_asset_lookup(const TemplateCall *call);
// Adds to `warnings` each asset that the packed version names and that no mail could show.
void template_asset_warnings(const TemplateCall *call, Str packed, json_t *warnings);

Str template_tenant_asked(const ApiCall *call); // "platform" with ?platform=true
// Where a version is in CONFIG; `there` NULL: where a new one is put. The key is a key and the
// version a semantic one.
const char *template_subject(
    Arena *arena, Str tenant, CatalogName name, Str version, const CatalogVersion *there);

// ---- the handlers ----

void templates_publish(ApiCall *base);   // POST /v1/templates (templates_publish.c)
void templates_preview(ApiCall *base);   // POST /v1/templates/preview (templates_preview.c)
void templates_diff(ApiCall *base);      // GET /v1/templates/{}/diff (templates_diff.c)
void templates_test_send(ApiCall *base); // POST /v1/templates/{}/{}/test-send
void templates_move(
    ApiCall *base); // POST /v1/templates/{}/{}/activate, /archive, /deprecate (templates_life.c)
