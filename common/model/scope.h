// SPDX-License-Identifier: Apache-2.0
// Scopes: what an API key may do, one bit each, and named sets of them. Each route of the API asks
// for one; some answers (whole addresses, a complaint's release, a version that goes out) for one
// more. Pure. Law: what is not known grants nothing, but for a key without any names: it was made
// before there were scopes and keeps what it could.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"

typedef enum Scope {
    SCOPE_NONE = 0, // no route has it
    SCOPE_NOTIFICATIONS_SEND,
    SCOPE_NOTIFICATIONS_READ,
    SCOPE_BATCHES_READ,
    SCOPE_BATCHES_WRITE,
    SCOPE_TEMPLATES_READ,
    SCOPE_TEMPLATES_WRITE,
    SCOPE_TEMPLATES_ACTIVATE, // what is sent from now on: activate, archive, publish as active
    SCOPE_RECIPIENTS_READ,    // masked
    SCOPE_RECIPIENTS_WRITE,
    SCOPE_RECIPIENTS_REVEAL, // whole names and addresses
    SCOPE_SUPPRESSIONS_READ,
    SCOPE_SUPPRESSIONS_WRITE,
    SCOPE_SUPPRESSIONS_EXPORT,
    SCOPE_SUPPRESSIONS_RELEASE, // of those that a complaint made
    SCOPE_TRIGGERS_READ,
    SCOPE_TRIGGERS_WRITE,
    SCOPE_TENANT_READ,
    SCOPE_TENANT_WRITE,
    SCOPE_SUBSCRIPTIONS_READ,  // webhook endpoints and what was delivered to them
    SCOPE_SUBSCRIPTIONS_WRITE, // where the tenant's events go
    SCOPE_INBOX_TOKEN,         // tokens with which a recipient's client reads an inbox
    SCOPE_DEAD_READ,           // dead letters, without their events
    SCOPE_DEAD_RESEND,         // sends them again, past all limits, or drops them
    // Named by themselves only: neither `admin` nor a key without names has them.
    SCOPE_KEYS_MANAGE,    // of keys that may no more than this one
    SCOPE_CONTENT_REVEAL, // what was sent to a recipient, unsealed
    SCOPE_AUDIT_READ,     // who wrote what, and who was shown what
    SCOPE_OPS_READ,       // how the installation works: streams, consumers and processes, which all
                          // tenants share
    SCOPE_TENANTS_OPERATE, // the operator: any tenant, and what only the operator sets; of a key of
                           // tenant `platform` only (auth.h)
    SCOPE_COUNT,
} Scope;

typedef uint32_t ScopeSet;

#define SCOPE_BIT(scope) ((ScopeSet)1 << (scope))
#define SCOPE_ALL (SCOPE_BIT(SCOPE_KEYS_MANAGE) - 2) // `admin`: what a tenant does with its own

const char *scope_name(Scope scope); // "recipients:reveal"
// A scope's name or a set's: by what it is for (send, read, manage, admin, operator) or by whom
// (owner, developer, template-writer, support, viewer). 0: neither.
ScopeSet scope_set_from_name(Str name);
// What all the names together grant; no names: SCOPE_ALL.
ScopeSet scope_set_from_names(char *const *names, size_t count);
// All names, the sets first.
void scope_print_known(Buf *out, const char *between);
