// SPDX-License-Identifier: Apache-2.0
// A tenant's settings as JSON and back. Pure.
#pragma once

#include "common/api/api_json.h"
#include "common/base/buf.h"
#include "stentor/v1/config.pb-c.h"

enum {
    TENANT_TEXT_MAX = 512,
    TENANT_THEME_MAX = 32,
    TENANT_REGION_MAX = 64,
    TENANT_LIMIT_MAX = 1000000000,
    TENANT_JSON_MAX = 256 * 1024, // bytes that one's settings take
};

// The operator's fields; which of them a body names (also with null).
typedef enum TenantField {
    TENANT_SUSPENDED = 1,
    TENANT_SENDER_DOMAINS = 2,
    TENANT_LIMITS = 4,
    TENANT_RECIPIENT_LIMITS = 8,
    TENANT_OVER_LIMIT = 16,
    TENANT_RETENTION = 32,
    TENANT_REGION = 64,
    TENANT_POLICY = 128,
    TENANT_STATUS = 256, // which says more than `suspended`
    TENANT_OPERATOR_FIELDS = 511,
} TenantField;

// Takes the settings out of the body into *ret, which has only its head set; what a body does not
// name is empty. "tenant" must be ret->tenant. Call api_body_end after it.
bool tenant_json_read(ApiBody *body, Stentor__V1__Tenant *ret, unsigned *ret_named);
// "active", "suspended" or "deleting".
const char *tenant_status_name(const Stentor__V1__Tenant *tenant);
bool tenant_status_set(Stentor__V1__Tenant *tenant, Str name); // false: no such status
void tenant_json_print(const Stentor__V1__Tenant *tenant, Buf *out);
// The settings with a merge patch (RFC 7396) over them; tenant NULL: there are none yet. Of status
// and suspended, which say the same, the one that the patch names counts. New reference.
json_t *tenant_json_merge(const Stentor__V1__Tenant *tenant, const json_t *patch);
