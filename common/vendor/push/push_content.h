// SPDX-License-Identifier: Apache-2.0
// What the vendors of pushes share: checks that name the field, the application's data as JSON, how
// long a push is good for, the text of claims.
#pragma once

#include <jansson.h>

#include "common/base/buf.h"
#include "common/vendor/vendor_build.h"

enum { PUSH_TTL_MAX_S = 28 * 86400, PUSH_TOKEN_MAX = 4096 };

// And the bearer, which is TRANSIENT: it will be there.
bool push_check_account(const VendorApi *api, const VendorAccount *account, Error *err);
// The account, and that the push has something to say, in UTF-8 and within the vendor's bound; its
// token is the vendor's to check.
bool push_check(
    const VendorApi *api, const VendorMail *push, const VendorAccount *account, Error *err);
// A new object, which the caller owns; NULL: 'data' is no JSON object; ERROR_PERMANENT.
json_t *push_data(const VendorMail *push, Error *err);
bool push_has_alert(const VendorMail *push); // a title or a body: it is to be seen
// Seconds, at least 0, at most 28 days; without an end 28 days.
int64_t push_ttl_s(const VendorMail *push, int64_t now_us);
// What makes doubles of a notification one on the device: the first 32 bytes of its id.
Str push_collapse_id(const VendorMail *push);
// A member of a JSON object; the first begins it, the caller ends it with '}'.
void push_claim(Buf *claims, const char *name, Str value);
void push_claim_int(Buf *claims, const char *name, int64_t value);
