// SPDX-License-Identifier: Apache-2.0
// Whose events a segment holds, so that a hold keeps it. Pure.
#pragma once

#include "common/base/buf.h"
#include "common/base/str.h"

enum { LOG_TENANTS_MAX = 512 };

typedef struct LogTenants LogTenants;

LogTenants *log_tenants_new(void);
void log_tenants_free(LogTenants *tenants); // NULL-safe
// Not a tenant, or one too many: any tenant's from then on, and any hold keeps the segment.
void log_tenants_add(LogTenants *tenants, Str tenant);
// "acme,beta"; nothing: any tenant's.
void log_tenants_print(const LogTenants *tenants, Buf *out);
