// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/access/oidc/oidc_roles.h"

#include "common/api/auth.h"
#include "common/api/callers/session.h"
#include "common/model/scope.h"

// The last one: a group may have the character in its name. -1: there is none.
static ptrdiff_t find_last(Str text, char c)
{
    ptrdiff_t at = (ptrdiff_t)text.len - 1;
    while (at >= 0 && text.ptr[at] != c) {
        at--;
    }
    return at;
}

static bool wrong(Str row, const char *why, Error *err)
{
    return error_set(
        err, ERROR_CONFIG, "'" STR_FMT "' %s; a row is group=role@tenant",
        STR_ARG(str_slice(row, 0, 80)), why);
}

static bool parse_row(Str text, OidcRole *ret, Error *err)
{
    ptrdiff_t equals = find_last(text, '='), at = find_last(text, '@');
    if (equals <= 0 || at < equals) {
        return wrong(text, "lacks a group, a role or a tenant", err);
    }
    *ret = (OidcRole){
        .group = str_slice(text, 0, (size_t)equals),
        .role = str_slice(text, (size_t)equals + 1, (size_t)at),
        .tenant = str_slice(text, (size_t)at + 1, text.len),
    };
    ScopeSet scopes = scope_set_from_name(ret->role);
    if (scopes == 0) {
        return wrong(text, "has no role such as support or viewer", err);
    }
    if (!id_is_tenant(ret->tenant)) {
        return wrong(text, "has no tenant's name", err);
    }
    bool operates = (scopes & SCOPE_BIT(SCOPE_TENANTS_OPERATE)) != 0;
    return !operates || str_eq(ret->tenant, AUTH_PLATFORM) ||
           wrong(text, "makes an operator of a tenant: only platform has operators", err);
}

static size_t rows_of(const OidcRoles *roles, Str role)
{
    size_t count = 0;
    for (size_t i = 0; i < roles->count; i++) {
        count += str_eq(roles->rows[i].role, role);
    }
    return count;
}

bool oidc_roles_parse(Str text, OidcRoles *ret, Error *err)
{
    Str rest = text, row = STR_EMPTY;
    *ret = (OidcRoles){.count = 0};
    while (text.len > 0 && str_split(&rest, ',', &row)) {
        if (ret->count == OIDC_ROLES_MAX) {
            return error_set(err, ERROR_CONFIG, "there are more than %d rows", OIDC_ROLES_MAX);
        }
        OidcRole *made = &ret->rows[ret->count];
        if (!parse_row(str_trim(row), made, err)) {
            return false;
        }
        ret->count++;
        if (rows_of(ret, made->role) > SESSION_TENANTS_MAX) {
            return error_set(
                err, ERROR_CONFIG, "role '" STR_FMT "' has more than %d rows", STR_ARG(made->role),
                SESSION_TENANTS_MAX);
        }
    }
    return ret->count > 0 || error_set(err, ERROR_CONFIG, "it has no row: group=role@tenant");
}

static bool is_text(const json_t *value, Str wanted)
{
    return json_is_string(value) &&
           str_eq(str_of(json_string_value(value), json_string_length(value)), wanted);
}

static bool is_in(const json_t *groups, Str group)
{
    bool found = is_text(groups, group);
    for (size_t i = 0; !found && i < json_array_size(groups); i++) {
        found = is_text(json_array_get(groups, i), group);
    }
    return found;
}

static bool has_tenant(const Str *tenants, size_t count, Str tenant)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(tenants[i], tenant)) {
            return true;
        }
    }
    return false;
}

bool oidc_roles_choose(
    const OidcRoles *roles, const json_t *groups, Arena *arena, Str *ret_role, Str *ret_tenants)
{
    Str role = STR_EMPTY, list = STR_EMPTY, tenants[SESSION_TENANTS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < roles->count; i++) {
        const OidcRole *row = &roles->rows[i];
        if ((role.len > 0 && !str_eq(row->role, role)) || !is_in(groups, row->group) ||
            has_tenant(tenants, count, row->tenant)) {
            continue;
        }
        role = row->role;
        tenants[count++] = row->tenant;
        list = str_from(arena_printf(
            arena, STR_FMT "%s" STR_FMT, STR_ARG(list), list.len > 0 ? "," : "",
            STR_ARG(row->tenant)));
    }
    *ret_role = role;
    *ret_tenants = list;
    return count > 0;
}
