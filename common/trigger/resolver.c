// SPDX-License-Identifier: Apache-2.0
#include "common/trigger/resolver.h"

#include "common/base/id.h"
#include "common/trigger/trigger_path.h"

enum { NAME_MAX_BYTES = 64 };

#define KINDS                                                                                      \
    "'address:PATH', 'recipient:PATH', 'identity:TYPE:PATH', 'recipients:PATH' or 'label:LABEL'"

static bool take_word(Str *text, Str word)
{
    if (!str_starts(*text, word)) {
        return false;
    }
    *text = str_slice(*text, word.len, text->len);
    return true;
}

static bool parse_identity(Str *rest, Resolver *ret, FieldError *why)
{
    Str type = STR_EMPTY;
    (void)str_split(rest, ':', &type);
    if (!identity_from_name(type, &ret->identity) || ret->identity == IDENTITY_ANONYMOUS) {
        return field_error(
            why, "resolver", "'%.*s' is not a kind of identity: guest, user or vendor",
            STR_ARG(str_slice(type, 0, 40)));
    }
    return true;
}

bool resolver_is_name(Str text)
{
    return id_is_key(text) && text.len <= NAME_MAX_BYTES && text.ptr[0] >= 'a' &&
           text.ptr[0] <= 'z' && str_find(text, '-') < 0;
}

static bool take_kind(Str text, Resolver *r, FieldError *why)
{
    static const struct {
        const char *word;
        ResolverKind kind;
    } words[] = {
        {"address:", RESOLVER_ADDRESS},       {"recipient:", RESOLVER_RECIPIENT},
        {"recipients:", RESOLVER_RECIPIENTS}, {"identity:", RESOLVER_IDENTITY},
        {"label:", RESOLVER_LABEL},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (take_word(&r->path, str_from(words[i].word))) {
            r->kind = words[i].kind;
            return true;
        }
    }
    r->kind = RESOLVER_NAMED;
    return resolver_is_name(text) ||
           field_error(why, "resolver", "not " KINDS ", nor a name such as 'tenant_admins'");
}

bool resolver_parse(Str text, Resolver *ret, FieldError *why)
{
    Resolver r = {.path = text};
    if (text.len > RESOLVER_MAX) {
        return field_error(why, "resolver", "longer than %d bytes", RESOLVER_MAX);
    }
    if (!take_kind(text, &r, why) ||
        (r.kind == RESOLVER_IDENTITY && !parse_identity(&r.path, &r, why))) {
        return false;
    }
    if (r.kind == RESOLVER_LABEL && !id_is_key(r.path)) {
        return field_error(
            why, "resolver",
            "'%.*s' is not a label such as 'admin': a-z, 0-9, '_', '-', at most 64",
            STR_ARG(str_slice(r.path, 0, 60)));
    }
    if (r.kind != RESOLVER_LABEL && r.kind != RESOLVER_NAMED && !path_is(r.path)) {
        return field_error(
            why, "resolver", "'%.*s' is not a path such as 'guest.email'",
            STR_ARG(str_slice(r.path, 0, 60)));
    }
    *ret = r;
    return true;
}

// ---- built in ----

// The most particular member first; a member in any of its spellings (guestId, guest_id).
static const char *const iam_subject[] = {
    "identity:user:iam_subject", "identity:user:subject_id", "identity:user:subject.id",
    "identity:user:subject",     "identity:user:actor_id",   "identity:user:actor.id",
    "identity:user:actor",       "identity:user:user_id",    "identity:user:user.id",
};
static const char *const primary_guest[] = {
    "identity:guest:primary_guest_id",
    "identity:guest:primary_guest.id",
    "identity:guest:guest_id",
    "identity:guest:guest.id",
    "identity:guest:guests.0.id",
    "address:primary_guest_email",
    "address:primary_guest.email",
    "address:guest_email",
    "address:guest.email",
    "address:guests.0.email",
};
static const char *const tenant_admins[] = {"label:admin"};
static const char *const vendor_assignee[] = {
    "identity:vendor:vendor_assignee_id", "identity:vendor:vendor_assignee.id",
    "identity:vendor:vendor_assignee",    "identity:vendor:vendor_id",
    "identity:vendor:vendor.id",          "identity:vendor:vendor",
    "identity:vendor:assignee_id",        "identity:vendor:assignee.id",
    "identity:vendor:assignee",
};

#define BUILT_IN(name)                                                                             \
    {                                                                                              \
#name, name, sizeof name / sizeof name[0]                                                  \
    }
static const BuiltIn built_in[] = {
    BUILT_IN(iam_subject), BUILT_IN(primary_guest), BUILT_IN(tenant_admins),
    BUILT_IN(vendor_assignee)};

const BuiltIn *resolver_all_built_in(size_t *ret_count)
{
    *ret_count = sizeof built_in / sizeof built_in[0];
    return built_in;
}

const BuiltIn *resolver_built_in(Str name)
{
    for (size_t i = 0; i < sizeof built_in / sizeof built_in[0]; i++) {
        if (str_eq(name, str_from(built_in[i].name))) {
            return &built_in[i];
        }
    }
    return NULL;
}
