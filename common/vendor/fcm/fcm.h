// SPDX-License-Identifier: Apache-2.0
// Firebase Cloud Messaging, HTTP v1: one push a call, as JSON, over HTTP/2 or HTTP/1.1. The secret
// is the service account's JSON file; an access token is asked for with a JWT that its key signs
// (RFC 7523) and lasts an hour. Doubles of a notification show as one: its id is the tag of Android
// and the web and the collapse id of APNs. (Not collapse_key: a device keeps four of these.)
// Source: firebase.google.com/docs (send v1, REST reference of projects.messages, ErrorCode,
// throttling and quotas), developers.google.com/identity/protocols/oauth2/service-account.
#pragma once

#include "common/vendor/vendor_api.h"

extern const VendorApi fcm_api;

bool fcm_build(
    const VendorMail *push, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
// A message to a topic without devices, with validate_only.
bool fcm_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err);
void fcm_read(const VendorAnswer *answer, Arena *arena, SendResult *ret);
bool fcm_grant(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err);
bool fcm_granted(const VendorAnswer *answer, Arena *arena, VendorBearer *ret, Error *err);
bool fcm_stale(const VendorAnswer *answer, Arena *arena);

// What the service account's file says. Slices live in the arena.
typedef struct FcmAccount {
    Str project, email, key, key_id, token_url;
} FcmAccount;
// ERROR_CONFIG names the member that is missing, never its value.
bool fcm_account(const VendorAccount *account, Arena *arena, FcmAccount *ret, Error *err);
