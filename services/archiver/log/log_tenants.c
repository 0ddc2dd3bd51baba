// SPDX-License-Identifier: Apache-2.0
#include "services/archiver/log/log_tenants.h"

#include <stdlib.h>

#include "common/base/arena.h"
#include "common/base/id.h"

enum { SLOTS = 2 * LOG_TENANTS_MAX, NAME_SIZE = 33 };

struct LogTenants {
    char names[SLOTS][NAME_SIZE]; // by hash, then the next free one
    size_t count;
    bool any;
};

LogTenants *log_tenants_new(void)
{
    return xcalloc(1, sizeof(LogTenants));
}

void log_tenants_free(LogTenants *tenants)
{
    free(tenants);
}

static size_t hash(Str name) // FNV-1a
{
    uint64_t value = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < name.len; i++) {
        value = (value ^ (unsigned char)name.ptr[i]) * UINT64_C(0x100000001b3);
    }
    return (size_t)(value % SLOTS);
}

void log_tenants_add(LogTenants *tenants, Str tenant)
{
    if (tenants->any || !id_is_tenant(tenant)) {
        tenants->any = true;
        return;
    }
    size_t at = hash(tenant);
    while (tenants->names[at][0] != '\0' && !str_eq(str_from(tenants->names[at]), tenant)) {
        at = (at + 1) % SLOTS;
    }
    if (tenants->names[at][0] == '\0') {
        tenants->any = tenants->count == LOG_TENANTS_MAX ||
                       !str_to_c(tenant, tenants->names[at], sizeof tenants->names[at]);
        tenants->count++;
    }
}

void log_tenants_print(const LogTenants *tenants, Buf *out)
{
    for (size_t i = 0; i < SLOTS && !tenants->any; i++) {
        if (tenants->names[i][0] != '\0') {
            buf_printf(out, "%s%s", out->len > 0 ? "," : "", tenants->names[i]);
        }
    }
}
