// SPDX-License-Identifier: Apache-2.0
// links: svc_gateway
// The bodies of /v1/recipients, of an import's lines and of /v1/tenant.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "common/api/tenant_json.h"
#include "common/model/channel_address.h"
#include "services/gateway/recipients/recipient_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int64_t NOW_US = INT64_C(1795199136000000);

static void check_record(const PersonRecord *r, Arena *arena)
{
    assert(r->quiet_start < 1440 && r->quiet_end < 1440);
    assert(!str_has_control(r->name) && !str_has_control(r->identity_id));
    assert(r->time_zone.len == 0 || api_is_zone(r->time_zone));
    assert(r->address_count <= PERSON_ADDRESSES_MAX);
    for (size_t i = 0; i < r->address_count; i++) {
        const PersonAddress *a = &r->addresses[i];
        char reason[ADDRESS_REASON_SIZE];
        Str again = STR_EMPTY;
        assert(!str_has_control(a->address));
        assert(people_address_check(a->channel, a->address, arena, &again, reason));
        assert(str_eq(again, a->address)); // normal is normal
    }
}

static void check_problem(const Problem *problem)
{
    assert(problem->status == 400 || problem->status == 422);
    assert(problem->detail[0] != '\0');
}

static void try_line(Str text)
{
    Arena *arena = arena_new(0);
    PersonLine line;
    Problem problem = {0};
    if (person_line_read(text, NOW_US, arena, &line, &problem)) {
        check_record(&line.record, arena);
        for (size_t i = 0; i < line.preference_count; i++) {
            assert(line.preferences[i].at_minute < 1440 && line.preferences[i].on_weekday <= 7);
        }
    } else {
        check_problem(&problem);
    }
    arena_free(arena);
}

static void try_tenant(Str text)
{
    Arena *arena = arena_new(0);
    ApiBody body = {0};
    Stentor__V1__Tenant tenant;
    unsigned named = 0;
    stentor__v1__tenant__init(&tenant);
    if (api_body_parse(&body, text, arena) && tenant_json_read(&body, &tenant, &named) &&
        api_body_end(&body)) {
        Buf out;
        ApiBody printed = {0};
        Stentor__V1__Tenant again;
        stentor__v1__tenant__init(&again);
        again.tenant = tenant.tenant;
        buf_init(&out, 1024 * 1024);
        tenant_json_print(&tenant, &out);
        assert(!out.full && api_body_parse(&printed, buf_view(&out), arena));
        assert(tenant_json_read(&printed, &again, &named) && api_body_end(&printed));
        api_body_free(&printed);
        buf_done(&out);
    } else {
        check_problem(&body.problem);
    }
    api_body_free(&body);
    arena_free(arena);
}

static void try_array(Str text)
{
    Arena *arena = arena_new(0);
    ApiBody body = {0};
    PersonPreference *preferences = NULL;
    size_t count = 0;
    bool given = false;
    if (!person_body_parse(&body, "preferences", text, arena) ||
        !person_preferences_read(&body, &preferences, &count, &given) || !api_body_end(&body)) {
        check_problem(&body.problem);
    }
    api_body_free(&body);
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Str text = str_of(data, size);
    try_line(text);
    try_tenant(text);
    try_array(text);
    return 0;
}
