// SPDX-License-Identifier: Apache-2.0
#include "common/model/scope.h"

#include <assert.h>

static_assert(SCOPE_COUNT < 32, "a ScopeSet has no bit for each scope");

// clang-format off
static const char *const scope_names[SCOPE_COUNT] = {
    [SCOPE_NONE]                 = "",
    [SCOPE_NOTIFICATIONS_SEND]   = "notifications:send",
    [SCOPE_NOTIFICATIONS_READ]   = "notifications:read",
    [SCOPE_BATCHES_READ]         = "batches:read",
    [SCOPE_BATCHES_WRITE]        = "batches:write",
    [SCOPE_TEMPLATES_READ]       = "templates:read",
    [SCOPE_TEMPLATES_WRITE]      = "templates:write",
    [SCOPE_TEMPLATES_ACTIVATE]   = "templates:activate",
    [SCOPE_RECIPIENTS_READ]      = "recipients:read",
    [SCOPE_RECIPIENTS_WRITE]     = "recipients:write",
    [SCOPE_RECIPIENTS_REVEAL]    = "recipients:reveal",
    [SCOPE_SUPPRESSIONS_READ]    = "suppressions:read",
    [SCOPE_SUPPRESSIONS_WRITE]   = "suppressions:write",
    [SCOPE_SUPPRESSIONS_EXPORT]  = "suppressions:export",
    [SCOPE_SUPPRESSIONS_RELEASE] = "suppressions:release",
    [SCOPE_TRIGGERS_READ]        = "triggers:read",
    [SCOPE_TRIGGERS_WRITE]       = "triggers:write",
    [SCOPE_TENANT_READ]          = "tenant:read",
    [SCOPE_TENANT_WRITE]         = "tenant:write",
    [SCOPE_SUBSCRIPTIONS_READ]   = "subscriptions:read",
    [SCOPE_SUBSCRIPTIONS_WRITE]  = "subscriptions:write",
    [SCOPE_INBOX_TOKEN]          = "inbox:token",
    [SCOPE_DEAD_READ]            = "dead:read",
    [SCOPE_DEAD_RESEND]          = "dead:resend",
    [SCOPE_KEYS_MANAGE]          = "keys:manage",
    [SCOPE_CONTENT_REVEAL]       = "content:reveal",
    [SCOPE_AUDIT_READ]           = "audit:read",
    [SCOPE_OPS_READ]             = "ops:read",
    [SCOPE_TENANTS_OPERATE]      = "tenants:operate",
};

#define READ_ALL                                                                                   \
    (SCOPE_BIT(SCOPE_NOTIFICATIONS_READ) | SCOPE_BIT(SCOPE_BATCHES_READ) |                         \
     SCOPE_BIT(SCOPE_TEMPLATES_READ) | SCOPE_BIT(SCOPE_RECIPIENTS_READ) | SCOPE_BIT(SCOPE_SUPPRESSIONS_READ) |                       \
     SCOPE_BIT(SCOPE_TRIGGERS_READ) | SCOPE_BIT(SCOPE_TENANT_READ) | SCOPE_BIT(SCOPE_SUBSCRIPTIONS_READ) | \
     SCOPE_BIT(SCOPE_DEAD_READ))

#define SEND                                                                                       \
    (SCOPE_BIT(SCOPE_NOTIFICATIONS_SEND) | SCOPE_BIT(SCOPE_NOTIFICATIONS_READ) | SCOPE_BIT(SCOPE_BATCHES_READ) |                     \
     SCOPE_BIT(SCOPE_BATCHES_WRITE))
#define MANAGE                                                                                     \
    (READ_ALL | SCOPE_BIT(SCOPE_TEMPLATES_WRITE) | SCOPE_BIT(SCOPE_RECIPIENTS_WRITE) | SCOPE_BIT(SCOPE_SUPPRESSIONS_WRITE) |         \
     SCOPE_BIT(SCOPE_TRIGGERS_WRITE) | SCOPE_BIT(SCOPE_TENANT_WRITE) | SCOPE_BIT(SCOPE_SUBSCRIPTIONS_WRITE))
#define OWN (SCOPE_ALL | SCOPE_BIT(SCOPE_KEYS_MANAGE) | SCOPE_BIT(SCOPE_CONTENT_REVEAL) | SCOPE_BIT(SCOPE_AUDIT_READ))

static const struct Set {
    const char *name;
    ScopeSet scopes;
} sets[] = {
    {"send", SEND},
    {"read", READ_ALL},
    {"manage", MANAGE},
    {"admin", SCOPE_ALL},
    {"owner", OWN},
    {"developer", SEND | MANAGE | SCOPE_BIT(SCOPE_TEMPLATES_ACTIVATE) | SCOPE_BIT(SCOPE_INBOX_TOKEN) |
                      SCOPE_BIT(SCOPE_DEAD_RESEND)},
    {"template-writer", SCOPE_BIT(SCOPE_TEMPLATES_READ) | SCOPE_BIT(SCOPE_TEMPLATES_WRITE) | SCOPE_BIT(SCOPE_TRIGGERS_READ) |
                            SCOPE_BIT(SCOPE_TENANT_READ)},
    {"support", READ_ALL | SCOPE_BIT(SCOPE_RECIPIENTS_WRITE) |
                    SCOPE_BIT(SCOPE_RECIPIENTS_REVEAL) | SCOPE_BIT(SCOPE_SUPPRESSIONS_WRITE)},
    {"viewer", READ_ALL},
    {"operator", OWN | SCOPE_BIT(SCOPE_OPS_READ) | SCOPE_BIT(SCOPE_TENANTS_OPERATE)},
};
// clang-format on
enum { SET_COUNT = sizeof sets / sizeof sets[0] };

const char *scope_name(Scope scope)
{
    return scope < SCOPE_COUNT ? scope_names[scope] : "";
}

ScopeSet scope_set_from_name(Str name)
{
    for (size_t i = 0; i < SET_COUNT; i++) {
        if (str_eq(name, str_from(sets[i].name))) {
            return sets[i].scopes;
        }
    }
    for (Scope scope = SCOPE_NONE + 1; scope < SCOPE_COUNT; scope++) {
        if (str_eq(name, str_from(scope_names[scope]))) {
            return SCOPE_BIT(scope);
        }
    }
    return 0;
}

ScopeSet scope_set_from_names(char *const *names, size_t count)
{
    ScopeSet all = count == 0 ? SCOPE_ALL : 0;
    for (size_t i = 0; i < count; i++) {
        all |= scope_set_from_name(str_from(names[i]));
    }
    return all;
}

void scope_print_known(Buf *out, const char *between)
{
    for (size_t i = 0; i < SET_COUNT; i++) {
        buf_printf(out, "%s%s", i > 0 ? between : "", sets[i].name);
    }
    for (Scope scope = SCOPE_NONE + 1; scope < SCOPE_COUNT; scope++) {
        buf_printf(out, "%s%s", between, scope_names[scope]);
    }
}
