// SPDX-License-Identifier: Apache-2.0
// What the vendors' builders share: checks that name what is wrong, URLs, request headers, JSON
// with the keys in the order in which they are put. Not a mail writer: MIME belongs to the
// dispatcher. Law: everything in a request lives in the arena, the JSON tree does not.
#pragma once

#include <jansson.h>

#include "common/vendor/vendor_api.h"

// ERROR_CONFIG names the setting: a secret, an id and what api->needs lists must be there, and a
// base_url must be a URL.
bool vendor_check_account(const VendorApi *api, const VendorAccount *account, Error *err);
// The same, and ERROR_PERMANENT names what of the mail is too much or no UTF-8: recipients,
// addresses, the whole message (api->whole) or its parts, headers that only the vendor writes.
bool vendor_check_mail(
    const VendorApi *api, const VendorMail *mail, const VendorAccount *account, Error *err);
// ERROR_PERMANENT when the mail's key is none (vendor_api.h), for vendors that know keys.
bool vendor_check_key(const VendorApi *api, const VendorMail *mail, Error *err);
// ERROR_PERMANENT when an attachment's name ends with one of `refused` (without the dot,
// lower-case, NULL at the end).
bool vendor_check_extensions(
    const VendorApi *api, const VendorMail *mail, const char *const *refused, Error *err);
// The setting; ERROR_CONFIG when a character of it does not belong into a host's name.
bool vendor_setting_host(const VendorAccount *account, Str name, Str *ret, Error *err);

// The credential's base_url or else `fallback`, and `path` behind it.
Str vendor_url(const VendorAccount *account, Str fallback, Str path, Arena *arena);
// Has its path a part ".." or "." (also one as a server reads it that decodes a slash or a dot
// first)? It would lead to another path of the same host, where the secret is as good.
bool vendor_url_leaves_path(Str url);
// Every byte but A-Z a-z 0-9 - _ . ~ as %XX: for a path's part or a query's value.
Str vendor_encode(Str text, Arena *arena);
void vendor_add_header(VendorRequest *request, Str name, Str value);
// "Authorization: <scheme> <value>"
void vendor_add_authorization(VendorRequest *request, const char *scheme, Str value, Arena *arena);
Str vendor_base64(Str bytes, Arena *arena);
// "bob@example.com", "Bob <bob@example.com>" or, with a name of more than atoms and blanks,
// "\"Bob, Jr.\" <bob@example.com>" (RFC 5322, 3.4).
Str vendor_mailbox(const VendorAddress *address, Arena *arena);
// The mail's return path when its domain is the setting bounce_domain, which the vendor knows; else
// empty: the vendor would reject any other.
Str vendor_return_path(const VendorMail *mail, const VendorAccount *account);
// The attempt in decimal.
Str vendor_attempt(const VendorMail *mail, Arena *arena);

// ---- JSON ----

// What is handed over is taken.
json_t *vendor_json_str(Str text); // checked UTF-8
void vendor_json_put(json_t *object, const char *name, json_t *value);
void vendor_json_put_str(json_t *object, const char *name, Str text);       // also when it is empty
void vendor_json_put_some(json_t *object, const char *name, Str text);      // unless it is empty
void vendor_json_put_list(json_t *object, const char *name, json_t *array); // unless it is empty
// An object of the mail's own headers.
json_t *vendor_json_headers(const VendorMail *mail, Arena *arena);
void vendor_json_add(json_t *array, json_t *value);
json_t *vendor_json_list(json_t *value);                                        // [value]
json_t *vendor_json_pair(const char *a, Str a_text, const char *b, Str b_text); // {a: .., b: ..}
// Frees the tree; the request gets its text and a Content-Type.
void vendor_set_json(VendorRequest *request, json_t *root, Arena *arena);
