// SPDX-License-Identifier: Apache-2.0
// Resolver: the text by which a trigger says who gets its notification: a rule ("address:<path>"
// and the like), or a name that stands for several rules (named_resolvers.h). Pure.
#pragma once

#include "common/model/enums.h"
#include "common/request/request.h"

enum {
    RESOLVER_MAX = 200,       // bytes of a text
    RESOLVER_RULES_MAX = 16,  // that one name stands for
    RESOLVER_LABEL_MAX = 1000 // recipients that one event reaches by a label
};

typedef enum ResolverKind {
    RESOLVER_ADDRESS,    // "address:<path>": an inline address
    RESOLVER_RECIPIENT,  // "recipient:<path>": an rcp_ id
    RESOLVER_IDENTITY,   // "identity:<type>:<path>": the tenant's own id of a guest, user or vendor
    RESOLVER_RECIPIENTS, // "recipients:<path>": an array of rcp_ ids
    RESOLVER_LABEL,      // "label:<label>": every recipient of the tenant that has it
    RESOLVER_NAMED,      // "<name>": no rule
} ResolverKind;

typedef struct Resolver {
    ResolverKind kind;
    Identity identity; // of RESOLVER_IDENTITY
    Str path;          // or the label, or the name; points into the text
} Resolver;

// [a-z][a-z0-9_]{0,63}
bool resolver_is_name(Str text);
// false: not such a text; `why` gets what is wrong with the field "resolver".
bool resolver_parse(Str text, Resolver *ret, FieldError *why);

// What is built in: the rules of "primary_guest", "tenant_admins", "iam_subject",
// "vendor_assignee".
typedef struct BuiltIn {
    const char *name;
    const char *const *rules;
    size_t count;
} BuiltIn;
const BuiltIn *resolver_built_in(Str name);              // NULL: none
const BuiltIn *resolver_all_built_in(size_t *ret_count); // in the order of their names
