// SPDX-License-Identifier: Apache-2.0
// Definition: a vendor that the code does not know, described by a JSON document of the operator's:
// its request as templates, what its answers mean as pointers and tables, how it signs what it
// calls back. A vendor's name says its channel: "<channel>-<word>", such as "sms-acme". Compiled
// once; all that is wrong is found then and named by its place in the document. Pure. Law: a
// template has no text but its values', and each value is escaped for the place where it stands;
// the origin of the URL is written out, so a value never chooses the host.
#pragma once

#include <jansson.h>

#include "common/vendor/vendor_api.h"
#include "common/vendor/vendor_callback.h"

enum {
    DEFINITION_MAX = 32 * 1024, // bytes of the document
    DEFINITION_DEPTH_MAX = 16,  // levels of it
    DEFINITION_TEMPLATES_MAX = 64,
    DEFINITION_HEADERS_MAX = 16,
    DEFINITION_ROWS_MAX = 64, // of one table
    DEFINITION_KEY_MAX_S = 30 * 86400,
};

typedef struct VendorDefinition VendorDefinition;

// "sms-acme" is of CHANNEL_SMS; CHANNEL_NONE: not such a name.
Channel definition_channel(Str vendor);
// The interface of the channel's vendors by definition; its name is none of theirs.
const VendorApi *definition_api(Channel channel);
const VendorCallback *definition_callback(Channel channel);

// ERROR_PERMANENT: "definition.request.url: ...". Counted: the caller holds it once.
VendorDefinition *definition_compile(Str document, Channel channel, Error *err);
// Before it is put: no header of a name such as Authorization or X-Api-Key has a secret in clear,
// and none has control characters. ERROR_PERMANENT names the header. Not of one that is stored: a
// channel goes on.
bool definition_check_clear(const json_t *document, Error *err);
VendorDefinition *definition_hold(VendorDefinition *definition); // NULL-safe, as the next
void definition_drop(VendorDefinition *definition);
bool definition_is(const VendorDefinition *definition, Str document); // made of this text?
int64_t definition_key_known_s(const VendorDefinition *definition);   // 0: it knows no keys
bool definition_calls_back(const VendorDefinition *definition);
// "https://api.acme.example"; empty: the address is the URL, and the setting address_prefix says
// with what it begins.
Str definition_origin(const VendorDefinition *definition);
// The request for a sample of every field, with the account's settings: what would fail at each
// message fails here. Its secret may be empty.
bool definition_try(
    VendorDefinition *definition, const VendorAccount *account, Arena *arena, VendorRequest *ret,
    Error *err);

// The header of the callbacks' signature; NULL: it does not call back.
const char *definition_signature_header(const VendorDefinition *definition);
// As VendorCallback's, by the definition.
bool definition_verify(
    const VendorDefinition *definition, const CallbackRequest *request, const CallbackKey *keys,
    size_t key_count, CallbackVerdict *ret, size_t *ret_key);
bool definition_events(
    const VendorDefinition *definition, Str body, Arena *arena, CallbackBatch *ret, Error *err);
