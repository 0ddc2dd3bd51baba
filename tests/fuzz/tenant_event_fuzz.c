// SPDX-License-Identifier: Apache-2.0
// links: svc_gateway
// Any bytes as an event of a tenant: refused with the reason, or settings that can be shown and read
// again; a repeat changes nothing. The first byte chooses the event.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/tenant_json.h"
#include "common/base/id.h"
#include "common/codec/event.h"
#include "services/gateway/tenants/tenant_event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_readable(const Stentor__V1__Tenant *tenant, Arena *arena)
{
    Buf out;
    ApiBody body = {0};
    Stentor__V1__Tenant again;
    unsigned named = 0;
    stentor__v1__tenant__init(&again);
    again.tenant = tenant->tenant;
    buf_init(&out, TENANT_JSON_MAX);
    tenant_json_print(tenant, &out);
    check(!out.full && api_body_parse(&body, buf_view(&out), arena));
    check(tenant_json_read(&body, &again, &named) && api_body_end(&body));
    api_body_free(&body);
    buf_done(&out);
}

static void apply_twice(const TenantFacts *facts, int64_t stored_at_us, Arena *arena)
{
    Stentor__V1__Tenant made[2];
    Str packed[2];
    Error err = {0};
    check(id_is_tenant(facts->tenant) && facts->at_us <= stored_at_us);
    if (!tenant_event_apply(facts, NULL, arena, &made[0], &err)) {
        check(err.kind == ERROR_PERMANENT && err.text[0] != '\0');
        return;
    }
    check_readable(&made[0], arena);
    check(tenant_event_apply(facts, &made[0], arena, &made[1], &err));
    for (int i = 0; i < 2; i++) {
        check(event_pack(&made[i].base, arena, &packed[i], NULL));
    }
    check(str_eq(packed[0], packed[1]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const types[] = {
        "TenantCreated", "tenant.updated.v1", "TenantSuspended", "TenantReactivated",
        "TenantDeleted"};
    if (size == 0) {
        return 0;
    }
    DomainInput input = {
        .tenant = STR("platform"),
        .type = str_from(types[data[0] % 5]),
        .payload = str_of(data + 1, size - 1),
        .message_id = STR("m"),
        .stream = "EVENTS",
        .sequence = 7,
        .stored_at_us = INT64_C(1795199136000000),
    };
    Arena *arena = arena_new(0);
    TenantMembers members = {.paths = {{NULL, 0}}};
    DomainEvent event;
    TenantFacts facts;
    Error err = {0};
    if (domain_event_read(&input, arena, &event, &err)) {
        if (tenant_event_read(&event, &members, arena, &facts, &err)) {
            apply_twice(&facts, input.stored_at_us, arena);
            tenant_facts_free(&facts);
        } else {
            check(err.kind == ERROR_PERMANENT && err.text[0] != '\0');
        }
        domain_event_free(&event);
    }
    arena_free(arena);
    return 0;
}
