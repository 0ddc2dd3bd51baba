// SPDX-License-Identifier: Apache-2.0
// NamedResolvers: every tenant's named resolvers in memory (cfg.resolver.<tenant>.<name>). Law: a
// tenant's own one takes the place of the platform's of the same name, and that of the one that is
// built in (resolver.h).
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/trigger/resolver.h"
#include "stentor/v1/config.pb-c.h"

enum { NAMED_RESOLVERS_MAX = 100 }; // of one tenant; the API refuses more

typedef struct NamedResolvers NamedResolvers;

NamedResolvers *named_resolvers_new(void);
void named_resolvers_free(NamedResolvers *map);

// The rules of an entry, which need no other entry. Field names are those of the API.
bool named_resolver_check(const Stentor__V1__NamedResolver *entry, FieldError *err);
// An entry of CONFIG and its sequence there; an empty payload removes it. ERROR_PERMANENT when it
// keeps no rules or names another tenant or name than its subject: the entry before it stays.
bool named_resolvers_changed(
    NamedResolvers *map, Str tenant, Str name, Str payload, uint64_t sequence, Error *err);
// Its entry cannot be read: what is known of it stays, and when nothing is known it finds no
// recipient, so that no other resolver of the name takes its place.
void named_resolvers_unreadable(NamedResolvers *map, Str tenant, Str name);

typedef enum ResolverScope {
    RESOLVER_OF_TENANT,
    RESOLVER_OF_PLATFORM,
    RESOLVER_BUILT_IN
} ResolverScope;

// Texts are valid until the map changes.
typedef struct NamedRules {
    const char *name;
    ResolverScope scope;
    const char *const *rules;
    size_t count;
    const Stentor__V1__NamedResolver *entry; // NULL: built in, or it cannot be read
    uint64_t sequence;                       // of the entry
    bool in_force;                           // no other of the name comes before it
} NamedRules;

// The one in force for the tenant. false: there is none. map NULL: only what is built in.
bool named_resolvers_find(const NamedResolvers *map, Str tenant, Str name, NamedRules *ret);
// The tenant's own one alone.
bool named_resolvers_own(const NamedResolvers *map, Str tenant, Str name, NamedRules *ret);
// All that the tenant can name: its own, the platform's, the built-in ones, each in the order of
// their names.
size_t named_resolvers_list(const NamedResolvers *map, Str tenant, Arena *arena, NamedRules **ret);
// "guest_desk, iam_subject, primary_guest": those in force, for a message.
const char *named_resolvers_text(const NamedResolvers *map, Str tenant, Arena *arena);
