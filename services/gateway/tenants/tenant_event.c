// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/tenants/tenant_event.h"

#include <string.h>

#include "common/api/tenant_json.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/names/member.h"
#include "common/trigger/trigger_path.h"

enum { USUAL_MAX = 4 };

// Their first paths are the columns of the documents' tenants_local.
static const struct {
    const char *name;    // in the option
    const char *setting; // of tenant_json.h; NULL: none
    TenantTimed field;
    const char *usual[USUAL_MAX];
} MEMBERS[TENANT_MEMBER_COUNT] = {
    [TENANT_MEMBER_ID] = {"tenant", NULL, TIMED_COUNT, {"tenant_id", "tenant.id", "tenant", "id"}},
    [TENANT_MEMBER_NAME] =
        {"name", "name", TIMED_NAME, {"name", "tenant.name", "display_name", "tenant_name"}},
    [TENANT_MEMBER_LOCALE] =
        {"locale",
         "locale",
         TIMED_LOCALE,
         {"default_locale", "locale", "tenant.default_locale", "tenant.locale"}},
    [TENANT_MEMBER_TIME_ZONE] =
        {"time_zone",
         "time_zone",
         TIMED_TIME_ZONE,
         {"default_timezone", "timezone", "tenant.default_timezone", "tenant.timezone"}},
    [TENANT_MEMBER_REGION] = {"region", "region", TIMED_REGION, {"region", "tenant.region"}},
    [TENANT_MEMBER_STATUS] = {"status", "status", TIMED_STATUS, {"status", "tenant.status"}},
    [TENANT_MEMBER_POLICY] =
        {"notification_policy",
         NULL,
         TIMED_POLICY,
         {"notification_policy", "tenant.notification_policy"}},
};

// The members of notification_policy that are settings.
static const char *const POLICY_SETTINGS[] = {
    "quiet_hours", "limits", "recipient_limits", "over_limit", "guardian_routing",
};
static const char *const POLICY_SWITCHES[] = {"channels", "categories"};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

// ---- the option ----

static bool take_member(Str pair, TenantMembers *ret, Error *err)
{
    Str path = pair;
    Str name = STR_EMPTY;
    bool shaped = str_find(pair, '=') > 0 && str_split(&path, '=', &name);
    for (int i = 0; shaped && i < TENANT_MEMBER_COUNT; i++) {
        if (!str_eq(str_trim(name), str_from(MEMBERS[i].name))) {
            continue;
        }
        path = str_trim(path);
        if (path.len > 0 ? !path_is(path) : i == TENANT_MEMBER_ID) {
            return error_set(
                err, ERROR_CONFIG, "'" STR_FMT "' is not a path such as tenant.id",
                STR_ARG(str_slice(path, 0, 64)));
        }
        ret->paths[i] = path.len > 0 ? path : STR("");
        return true;
    }
    return error_set(
        err, ERROR_CONFIG,
        "'" STR_FMT "': expected tenant, name, locale, time_zone, region, status or "
        "notification_policy, '=' and a path",
        STR_ARG(str_slice(pair, 0, 64)));
}

bool tenant_members_parse(Str text, TenantMembers *ret, Error *err)
{
    TenantMembers members = {.paths = {{NULL, 0}}};
    Str rest = text;
    Str pair = STR_EMPTY;
    while (str_split(&rest, ',', &pair)) {
        pair = str_trim(pair);
        if (pair.len > 0 && !take_member(pair, &members, err)) {
            return false;
        }
    }
    *ret = members;
    return true;
}

// ---- what the event says ----

// NULL: it does not say it.
static const json_t *find(const json_t *data, const TenantMembers *members, TenantMember which)
{
    Str own = members->paths[which];
    if (own.ptr != NULL) {
        return own.len > 0 ? path_find(data, own) : NULL;
    }
    for (size_t i = 0; i < USUAL_MAX && MEMBERS[which].usual[i] != NULL; i++) {
        const json_t *value = path_find(data, str_from(MEMBERS[which].usual[i]));
        if (value != NULL && (which == TENANT_MEMBER_POLICY || !json_is_object(value))) {
            return value;
        }
    }
    return NULL;
}

static bool take_id(
    const json_t *data, const TenantMembers *members, Arena *arena, Str *ret, Error *err)
{
    const json_t *value = find(data, members, TENANT_MEMBER_ID);
    Str text = str_of(json_string_value(value), json_string_length(value));
    if (value == NULL) {
        return error_set(
            err, ERROR_PERMANENT,
            "the event names no tenant: member 'tenant_id' (HINT: another one is named by "
            "STENTOR_GATEWAY_TENANT_MEMBERS=tenant=PATH)");
    }
    if (!json_is_string(value) || !id_is_tenant(text)) {
        return error_set(
            err, ERROR_PERMANENT,
            "member 'tenant_id': '" STR_FMT "' is not a tenant id: 1 to 32 of a-z 0-9 '_' '-' "
            "(HINT: another member is named by STENTOR_GATEWAY_TENANT_MEMBERS=tenant=PATH)",
            STR_ARG(str_slice(text, 0, 64)));
    }
    *ret = arena_str(arena, text);
    return str_eq(text, STR("platform"))
               ? error_set(err, ERROR_PERMANENT, "tenant 'platform' has no events of its own")
               : true;
}

// TenantSuspended and its like say it by their name; `status` of the others in the documents'
// words.
static json_t *status_of(TenantEventKind kind, const json_t *named)
{
    Str text = str_of(json_string_value(named), json_string_length(named));
    switch ((int)kind) {
    case TENANT_EVENT_SUSPENDED:
        return json_string("suspended");
    case TENANT_EVENT_REACTIVATED:
        return json_string("active");
    case TENANT_EVENT_DELETED:
        return json_string("deleting");
    default:
        break;
    }
    static const char *const words[][2] = {
        {"active", "active"},
        {"suspended", "suspended"},
        {"deleting", "deleting"},
        {"deleted", "deleting"},
    };
    for (size_t i = 0; i < COUNT(words); i++) {
        if (str_eq_nocase(text, str_from(words[i][0]))) {
            return json_string(words[i][1]);
        }
    }
    return json_incref((json_t *)(uintptr_t)named); // refused, with the words that there are
}

static bool is_one_of(Str name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (member_is_alike(str_from(names[i]), name)) {
            return true;
        }
    }
    return false;
}

static void note_passed(const json_t *policy, Arena *arena, TenantFacts *ret)
{
    json_t *members = (json_t *)(uintptr_t)policy; // jansson's iterators want it so
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(members, name, value)
    {
        (void)value;
        Str key = str_slice(str_from(name), 0, 40);
        if (!is_one_of(key, POLICY_SETTINGS, COUNT(POLICY_SETTINGS)) &&
            !is_one_of(key, POLICY_SWITCHES, COUNT(POLICY_SWITCHES)) &&
            (ret->passed == NULL || strlen(ret->passed) < 200)) {
            ret->passed = arena_printf(
                arena, "%s%s" STR_FMT, ret->passed == NULL ? "" : ret->passed,
                ret->passed == NULL ? "" : ", ", STR_ARG(key));
        }
    }
}

static bool take_policy(const json_t *policy, Arena *arena, TenantFacts *ret, Error *err)
{
    if (!json_is_object(policy)) {
        return error_set(err, ERROR_PERMANENT, "member 'notification_policy' must be an object");
    }
    json_t *switches = json_object();
    for (size_t i = 0; i < COUNT(POLICY_SWITCHES); i++) {
        json_t *value = member_value(policy, POLICY_SWITCHES[i]);
        if (value != NULL) {
            (void)json_object_set(switches, POLICY_SWITCHES[i], value);
        }
    }
    if (json_object_size(switches) > 0) {
        (void)json_object_set(ret->says, "notification_policy", switches);
    }
    json_decref(switches);
    for (size_t i = 0; i < COUNT(POLICY_SETTINGS); i++) {
        json_t *value = member_value(policy, POLICY_SETTINGS[i]);
        if (value != NULL) {
            (void)json_object_set(ret->says, POLICY_SETTINGS[i], value);
        }
    }
    note_passed(policy, arena, ret);
    return true;
}

// A clock that is ahead counts as the stream's: its event must not outlast all later ones.
static int64_t time_of(const DomainEvent *event)
{
    int64_t at_us = event->produced_at_us;
    const json_t *updated = member_value(event->data, "updated_at");
    if (at_us == event->stored_at_us && json_is_string(updated)) { // it names no other time
        Str text = str_of(json_string_value(updated), json_string_length(updated));
        (void)clock_parse(text, &at_us);
    }
    return at_us < event->stored_at_us ? at_us : event->stored_at_us;
}

bool tenant_event_read(
    const DomainEvent *event, const TenantMembers *members, Arena *arena, TenantFacts *ret,
    Error *err)
{
    TenantEventKind kind = event_type_of_tenant(event->type);
    TenantFacts facts = {.at_us = time_of(event)};
    if (!take_id(event->data, members, arena, &facts.tenant, err)) {
        return false;
    }
    facts.says = json_object();
    for (int i = 0; i < TENANT_MEMBER_COUNT; i++) {
        const json_t *value = find(event->data, members, (TenantMember)i);
        bool by_name = kind != TENANT_EVENT_CREATED && kind != TENANT_EVENT_UPDATED;
        if (i == TENANT_MEMBER_STATUS && (by_name || value != NULL)) {
            (void)json_object_set_new(facts.says, "status", status_of(kind, value));
        } else if (value != NULL && MEMBERS[i].setting != NULL) {
            (void)json_object_set(facts.says, MEMBERS[i].setting, (json_t *)(uintptr_t)value);
        }
    }
    const json_t *policy = find(event->data, members, TENANT_MEMBER_POLICY);
    if (policy != NULL && !take_policy(policy, arena, &facts, err)) {
        json_decref(facts.says);
        return false;
    }
    *ret = facts;
    return true;
}

void tenant_facts_free(TenantFacts *facts)
{
    json_decref(facts->says);
    facts->says = NULL;
}

// ---- merging ----

static TenantTimed field_of(const char *setting)
{
    for (int i = 0; i < TENANT_MEMBER_COUNT; i++) {
        if (MEMBERS[i].setting != NULL && strcmp(MEMBERS[i].setting, setting) == 0) {
            return MEMBERS[i].field;
        }
    }
    return TIMED_POLICY;
}

// What the event says over what is there: a value as a whole, of the policy its members.
static void put_setting(json_t *settings, const char *name, const json_t *says)
{
    json_t *value = json_deep_copy(says); // a body is read by taking it apart
    json_t *there = json_object_get(settings, name);
    if (strcmp(name, "notification_policy") == 0 && json_is_object(there)) {
        (void)json_object_update(there, value);
    } else {
        (void)json_object_set(settings, name, value);
    }
    if (strcmp(name, "status") == 0) {
        (void)json_object_del(settings, "suspended"); // it says the same
    }
    json_decref(value);
}

static json_t *merge(
    const TenantFacts *facts, const Stentor__V1__Tenant *stored,
    Stentor__V1__TenantFieldTimes *times)
{
    json_t *nothing = json_object();
    json_t *settings = tenant_json_merge(stored, nothing);
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(facts->says, name, value)
    {
        int64_t *at_us = tenant_field_time(times, field_of(name));
        if (facts->at_us >= *at_us) {
            put_setting(settings, name, value);
        }
    }
    json_object_foreach(facts->says, name, value)
    {
        int64_t *at_us = tenant_field_time(times, field_of(name));
        *at_us = facts->at_us > *at_us ? facts->at_us : *at_us;
    }
    json_decref(nothing);
    return settings;
}

bool tenant_event_apply(
    const TenantFacts *facts, const Stentor__V1__Tenant *stored, Arena *arena,
    Stentor__V1__Tenant *ret, Error *err)
{
    Stentor__V1__Tenant tenant;
    unsigned named = 0;
    stentor__v1__tenant__init(&tenant);
    tenant.tenant = arena_cstr(arena, facts->tenant);
    tenant.field_times = tenant_field_times(stored, arena);
    ApiBody body = {.arena = arena, .at = ""};
    body.root = merge(facts, stored, tenant.field_times);
    (void)tenant_json_read(&body, &tenant, &named);
    bool ok =
        api_body_end(&body) ||
        error_set(err, ERROR_PERMANENT, "field '%s': %s", body.problem.field, body.problem.detail);
    api_body_free(&body);
    if (ok) {
        // As it will be read, so that a repeat makes the same bytes.
        (void)tenant_status_set(&tenant, str_from(tenant_status_name(&tenant)));
        tenant.updated_at_us = stored == NULL ? 0 : stored->updated_at_us;
        *ret = tenant;
    }
    return ok;
}
