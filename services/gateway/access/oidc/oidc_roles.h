// SPDX-License-Identifier: Apache-2.0
// STENTOR_OIDC_ROLES: which role in which tenant a group of the provider's gives. Pure. Law: who is
// in none of the groups gets nothing; the order of the rows decides, not that of the groups.
#pragma once

#include <jansson.h>

#include "common/base/arena.h"
#include "common/base/error.h"

enum { OIDC_ROLES_MAX = 256 };

typedef struct OidcRole {
    Str group, role, tenant;
} OidcRole;

typedef struct OidcRoles {
    OidcRole rows[OIDC_ROLES_MAX];
    size_t count;
} OidcRoles;

// "ops=operator@platform,acme-support=support@acme": slices of the text. A group's name may hold
// '=' and '@', and no comma. ERROR_CONFIG names the row.
bool oidc_roles_parse(Str text, OidcRoles *ret, Error *err);
// The first row that is of one of these groups (a list of texts, or one text) says the role, the
// rows of that role which are, too, the tenants. false: there is none.
bool oidc_roles_choose(
    const OidcRoles *roles, const json_t *groups, Arena *arena, Str *ret_role, Str *ret_tenants);
