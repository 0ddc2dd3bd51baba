// SPDX-License-Identifier: Apache-2.0
// GET /v1/audit-log: a tenant's entries of AUDIT, in their order, read from the stream itself:
// there is no table of them to keep equal. Law: a tenant sees entries of its own subjects only, by
// the filter of the read.
#pragma once

#include "common/api/api.h"
#include "common/bus/jetstream/bus.h"

enum {
    AUDIT_LOG_READS_MAX = 4,      // at once, of this process
    AUDIT_LOG_READ_MS = 10000,    // then 503
    AUDIT_LOG_LOOKED_MAX = 20000, // entries of the tenant that one page looks at
};

typedef struct AuditLogApi {
    Bus *bus;
    size_t reading; // readers not yet freed; 0 before the process may end
    struct AuditLogReading *under_way;
} AuditLogApi;

void audit_log_api_add(Api *api, AuditLogApi *log);
void audit_log_api_tick(AuditLogApi *log); // from the service's timer
